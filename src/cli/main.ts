// argv -> exit code: the CLI's switchboard (cli.md 1, 2). Version and help are answered without loading anything else.

import { readAhead } from "./ahead.ts";
import { parseCommandLine, wantsJson } from "./args.ts";
import { sayLocal } from "./say.ts";
import type { Session } from "./session.ts";
import { version } from "./version.ts";

export { wantsJson };

export type ServeOptions = {
  root: string;
  env: Session["env"];
  version: string;
  executable: string;
};

export type Program = {
  /** Without the program's own name. */
  argv: readonly string[];
  env: Session["env"];
  /** argv that starts this very program. */
  self: readonly string[];
  executable: string;
  /** Becomes the daemon; given by main.ts, because the CLI must not load the daemon's modules. */
  serve(options: ServeOptions): Promise<number>;
};

/** Runs one command line and gives its exit code. Throws what main.ts prints: SloopError, ClosedStream, or a bug. */
export async function runCli(program: Program): Promise<number> {
  const parsed = parseCommandLine(program.argv);
  switch (parsed.kind) {
    case "version":
      await sayLocal(parsed.json, { kind: "version", version }, `sloop ${version}`);
      return 0;
    case "help":
      return await (await import("./local.ts")).sayHelp(parsed.page, parsed.json, program.env);
    case "command":
      if (parsed.command.kind === "operator") readAhead();
      return await (await import("./run.ts")).runParsed(program, parsed);
  }
}
