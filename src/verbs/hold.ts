// `hold`: keep a ready ticket from being dispatched.

import type { Handler } from "./handler.ts";
import { override } from "./override.ts";

export const hold: Handler<"hold"> = (daemon, args) => override(daemon, args.ticket, { from: "ready", to: "held" });
