// `bun run examples`: records docs/reference/protocol-examples.json anew, from the compiled binary's real replies.

import { writeFileSync } from "node:fs";
import { examplesFile, recordExamples } from "./examples.ts";

const examples = await recordExamples();
writeFileSync(examplesFile, `[\n${examples.map((example) => JSON.stringify(example)).join(",\n")}\n]\n`);
console.log(`${examples.length} examples in ${examplesFile}`);
