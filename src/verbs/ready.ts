// `ready`: release a held ticket, whoever held it.

import type { Handler } from "./handler.ts";
import { override } from "./override.ts";

export const ready: Handler<"ready"> = (daemon, args) => override(daemon, args.ticket, { from: "held", to: "ready" });
