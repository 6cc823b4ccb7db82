// `daemon`: who answers here, and where its files are.

import type { Handler } from "./handler.ts";

export const daemon: Handler<"daemon"> = (context) => ({
  pid: context.pid,
  socket: context.paths.operatorSocket,
  state_dir: context.paths.stateDir,
  log: context.paths.logFile,
  version: context.version,
  started: false,
});
