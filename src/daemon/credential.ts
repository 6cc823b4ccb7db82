// A run's one live credential: minted for a stage execution or a panel seat, dead when the next one is.

import { storeCredential } from "../store/runs.ts";
import { workerSocket } from "../system/paths.ts";
import type { Credential, Daemon, LiveRun, TokenScope } from "./context.ts";

const tokenBytes = 32;

function mintToken(): string {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(tokenBytes))).toString("base64url");
}

/** Registers a credential, then serves its socket: a fast worker cannot race its own token. Throws when it cannot listen. */
function serve(daemon: Daemon, live: LiveRun, credential: Credential): void {
  live.door?.close();
  live.door = null;
  live.credential = credential;
  live.door = daemon.openWorkerDoor(credential.socketPath, live.runId);
}

/** Mints the run's next credential; the previous one is void from here on. Throws when the socket cannot be served. */
export function mintCredential(daemon: Daemon, live: LiveRun, scope: TokenScope): Credential {
  const credential = { token: mintToken(), socketPath: workerSocket(daemon.paths, live.runId), scope };
  daemon.store.write((tx) => storeCredential(tx, live.runId, credential, daemon.clock.now()));
  serve(daemon, live, credential);
  return credential;
}

/** Serves the credential of a process that outlived its daemon again: same path, same token. Throws as `mintCredential` does. */
export function restoreCredential(daemon: Daemon, live: LiveRun, credential: Credential): void {
  serve(daemon, live, credential);
}

/** The run is settled: its socket goes, its token is worth nothing. */
export function closeCredential(live: LiveRun): void {
  live.door?.close();
  live.door = null;
  live.credential = null;
}
