// `note`: a worker leaves a remark; it moves nothing.

import { recordNote } from "../store/notes.ts";
import type { Handler } from "./handler.ts";

export const note: Handler<"note"> = (daemon, args, caller) => {
  const run = caller.scope.runId;
  const id = daemon.store.write((tx) => recordNote(tx, run, args.text, daemon.clock.now()));
  return { note: { id, run, text: args.text } };
};
