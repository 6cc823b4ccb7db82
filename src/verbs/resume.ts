// `resume`: dispatch again; calls off a restart that was still draining.

import { readFlags, setFlags } from "../store/scheduler.ts";
import type { Handler } from "./handler.ts";

export const resume: Handler<"resume"> = (daemon) => {
  const cancelled = daemon.store.write((tx) => {
    const { draining } = readFlags(tx);
    setFlags(tx, { paused: false, draining: false }, daemon.clock.now());
    return draining;
  });
  if (cancelled) daemon.log.info("sloop::daemon", "restart_cancelled");
  return { paused: false, restart_cancelled: cancelled };
};
