// The one entry of the program: a supervisor, the daemon or the CLI, by its arguments; and the last catch of all three.

const argv = process.argv.slice(2);

/** argv that starts this very program again: the executable alone when compiled, with its source when not. */
const self = Bun.isStandaloneExecutable ? [process.execPath] : [process.execPath, Bun.main];

/** The same for a supervisor: on Linux the image we run, whatever stands at its path by now (engine.md 10.4). */
const image = Bun.isStandaloneExecutable && process.platform === "linux" ? ["/proc/self/exe"] : self;

async function main(): Promise<number> {
  // Started for every stage process, so it must not load the CLI.
  if (argv[0] === "__supervise") return await (await import("./supervisor/main.ts")).superviseMain();
  const { runCli, wantsJson } = await import("./cli/main.ts");
  try {
    return await runCli({
      argv,
      env: process.env,
      self,
      executable: process.execPath,
      serve: async (options) => await (await import("./server/serve.ts")).serve({ ...options, self: image }),
    });
  } catch (error) {
    return await (await import("./cli/failure.ts")).endWith(error, wantsJson(argv));
  }
}

export {};

process.exit(await main());
