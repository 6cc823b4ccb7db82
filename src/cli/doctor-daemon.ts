// What `sloop doctor` asks a daemon that runs: only its version. None is started.

import { SloopError } from "../core/errors.ts";
import type { Finding } from "./finding.ts";
import { inWorker } from "./inside.ts";
import { openClient, type Repository } from "./repository.ts";
import type { Session } from "./session.ts";
import { version } from "./version.ts";

/** Nothing when no daemon runs, or inside a run, where none may be asked. */
export async function checkDaemon(repository: Repository, session: Session): Promise<Finding[]> {
  if (inWorker(session.env)) return [];
  try {
    const reply = await openClient(repository, { kind: "stop" }).call("daemon", {});
    if (!reply.ok || reply.data.version === version) return [];
    return [
      {
        check: "daemon version",
        severity: "warning",
        message: `the running daemon is ${reply.data.version}, this sloop is ${version}`,
        why: "the daemon goes on with the old program until it is restarted",
        fix: "sloop daemon restart",
      },
    ];
  } catch (error) {
    if (error instanceof SloopError) return [];
    throw error;
  }
}
