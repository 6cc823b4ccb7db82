// `restart`: finish what is going, then become whatever program stands at our path now; same pid.

import { appendEvent } from "../store/journal.ts";
import { countUnsettled } from "../store/runs.ts";
import { readFlags, setFlags } from "../store/scheduler.ts";
import type { Handler } from "./handler.ts";

export const restart: Handler<"restart"> = (daemon) => {
  const now = daemon.clock.now();
  const { active, first } = daemon.store.write((tx) => {
    const unsettled = countUnsettled(tx);
    if (readFlags(tx).draining) return { active: unsettled, first: false };
    setFlags(tx, { draining: true }, now);
    appendEvent(tx, { kind: "daemon_restart_requested", data: { active_runs: unsettled } }, now);
    return { active: unsettled, first: true };
  });
  if (first) daemon.log.info("sloop::daemon", "restart_drain_started", { active_runs: active });
  return { draining: true, active_runs: active, pid: daemon.pid };
};
