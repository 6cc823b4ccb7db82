// What a command is given besides its arguments: how to speak, the environment, the clock, and who we are.

import type { Clock } from "../system/clock.ts";
import type { Values } from "./args.ts";
import type { View } from "./render.ts";
import type { Style } from "./style.ts";
import { outIsTerminal } from "./terminal.ts";
import { version } from "./version.ts";

export type Session = {
  /** The command's word. */
  name: string;
  values: Values;
  json: boolean;
  style: Style;
  env: Readonly<Record<string, string | undefined>>;
  clock: Clock;
  /** argv that starts this very program. */
  self: readonly string[];
};

/** How replies are shown in this session. */
export function viewOf(session: Session, extra: Partial<View> = {}): View {
  return {
    style: session.style,
    now: session.clock.now(),
    terminal: outIsTerminal(),
    version,
    ref: null,
    filtered: false,
    ...extra,
  };
}
