// When the daemon acts next by itself, and which timed work comes next (protocol.md 6.7).

import type { World } from "../core/gate.ts";
import { nextOpening } from "../core/hours.ts";
import { formatInstant } from "../core/instant.ts";
import { type Dispatch, nextDispatch, nextWake, type WakeInput } from "../core/select.ts";
import type { Trigger } from "../core/trigger.ts";
import type { Daemon } from "../daemon/context.ts";
import { silenceDeadlines } from "../daemon/watchdog.ts";
import { cleanupDeadlines } from "../daemon/world.ts";
import type { DispatchWire } from "../protocol/rows.ts";

function wakeInput(daemon: Daemon, world: World, triggers: readonly Trigger[]): WakeInput {
  const hours = daemon.config.runningHours;
  return {
    now: world.now,
    triggers,
    hoursOpen: world.hoursOpen,
    nextOpening: hours === null || world.hoursOpen ? null : nextOpening(hours, world.now),
    cooldownEnds: [...world.cooldowns.values()].map((cooldown) => cooldown.untilMs),
    cleanups: cleanupDeadlines(daemon, world.now),
    silences: silenceDeadlines(daemon),
  };
}

function dispatchWire(dispatch: Dispatch): DispatchWire {
  const at = formatInstant(dispatch.at);
  switch (dispatch.cause) {
    case "running_hours":
      return { at, cause: "running_hours", waiting: dispatch.waiting };
    case "cooldown":
      return { at, cause: "cooldown" };
    case "scheduled_trigger":
      return { at, cause: "scheduled_trigger", trigger: dispatch.trigger };
  }
}

export type Wake = {
  /** Epoch ms. */
  atMs: number | null;
  wire: { next_wake?: string; dispatch?: DispatchWire };
};

/** `triggers`: every queued one. */
export function readWake(daemon: Daemon, world: World, triggers: readonly Trigger[]): Wake {
  const input = wakeInput(daemon, world, triggers);
  const atMs = nextWake(input);
  const dispatch = nextDispatch(input);
  return {
    atMs,
    wire: {
      ...(atMs === null ? {} : { next_wake: formatInstant(atMs) }),
      ...(dispatch === null ? {} : { dispatch: dispatchWire(dispatch) }),
    },
  };
}
