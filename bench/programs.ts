// The compiled programs of one bench run: sloop itself, held fast while others build, and its rivals.

import { copyFileSync, linkSync } from "node:fs";
import { dirname, join } from "node:path";

const project = dirname(import.meta.dir);

/** Compiles one of our rivals the way build.ts compiles sloop. Throws when that fails. */
async function compile(source: string, outfile: string): Promise<string> {
  const made = await Bun.build({
    entrypoints: [join(import.meta.dir, source)],
    target: "bun",
    format: "esm",
    bytecode: true,
    minify: { whitespace: true, syntax: true, identifiers: false },
    compile: { outfile, autoloadDotenv: false, autoloadBunfig: false },
  });
  if (!made.success) throw new AggregateError(made.logs, `cannot compile ${source}`);
  return outfile;
}

/** `$SLOOP_BIN`, else `dist/sloop`, built now. Throws when the build fails. */
function binaryUnderTest(): string {
  const given = process.env["SLOOP_BIN"];
  if (given !== undefined && given !== "") return given;
  const built = Bun.spawnSync([process.execPath, "build.ts"], { cwd: project, stdout: "ignore", stderr: "pipe" });
  if (built.exitCode !== 0) throw new Error(`bun build.ts failed:\n${built.stderr}`);
  return join(project, "dist/sloop");
}

/** The binary at a path of its own: a build that happens meanwhile replaces `dist/sloop`, not this. */
function holdFast(dir: string): string {
  const held = join(dir, "sloop");
  const source = binaryUnderTest();
  try {
    linkSync(source, held);
  } catch {
    // Another file system.
    copyFileSync(source, held);
  }
  return held;
}

export type Programs = { bin: string; empty: string; echo: string };

export async function makePrograms(dir: string): Promise<Programs> {
  return {
    bin: holdFast(dir),
    empty: await compile("empty-program.ts", join(dir, "empty")),
    echo: await compile("echo-program.ts", join(dir, "echo")),
  };
}
