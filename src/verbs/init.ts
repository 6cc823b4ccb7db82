// `init`: a known verb that no daemon performs.

import { SloopError } from "../core/errors.ts";
import type { Handler } from "./handler.ts";

/** Always refuses: a repository is set up by the command, before there is a daemon to ask. */
export const init: Handler<"init"> = () => {
  throw new SloopError("invalid_request", "verb `init` is not implemented by the daemon", {
    hint: "run `sloop init` in the repository",
    details: { verb: "init" },
  });
};
