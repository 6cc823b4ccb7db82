// The supervisor alone, run from source: what `main.ts` does for its hidden word.

import { superviseMain } from "../../src/supervisor/main.ts";

process.exit(await superviseMain());
