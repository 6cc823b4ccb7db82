// `pause`: dispatch nothing new until `resume`; survives a restart.

import { setFlags } from "../store/scheduler.ts";
import type { Handler } from "./handler.ts";

export const pause: Handler<"pause"> = (daemon) => {
  daemon.store.write((tx) => setFlags(tx, { paused: true }, daemon.clock.now()));
  return { paused: true };
};
