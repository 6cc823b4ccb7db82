// Which sections of protocol.md the conformance tests cover, read from their names; prints the table.

import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const sections: [number: string, title: string][] = [
  ["1", "verbs"],
  ["2", "transport"],
  ["2.1", "paths and modes"],
  ["3.1", "request"],
  ["3.2", "validation order"],
  ["3.4", "error codes"],
  ["4", "two sockets"],
  ["5.2", "run references"],
  ["5.3", "show references, patterns"],
  ["6.2", "ticket row"],
  ["6.3", "why a ticket is not running"],
  ["6.4", "run summary"],
  ["6.5", "stage rows"],
  ["6.6", "classification"],
  ["6.7", "gate, wake, dispatch"],
  ["6.8", "derived reason, halt"],
  ["6.9", "silence"],
  ["7.1", "daemon"],
  ["7.2", "restart"],
  ["7.3", "stop"],
  ["7.4", "pause, resume"],
  ["7.5", "post"],
  ["7.6", "run"],
  ["7.7", "hold, ready"],
  ["7.8", "retry"],
  ["7.9", "status, list, wait"],
  ["7.10", "show"],
  ["7.11", "cancel"],
  ["7.12", "logs"],
  ["7.13", "events"],
  ["7.14", "reindex"],
  ["8.1", "brief"],
  ["8.2", "worker show"],
  ["8.3", "note"],
  ["8.4", "verdict"],
  ["9.1", "records"],
  ["9.2", "log pages"],
  ["10", "activity feed"],
  ["12", "what the CLI sends"],
  ["13", "compatibility"],
  ["14", "not obvious"],
];

/** The section numbers that a test's name begins with: `6.3 A-I: …`, `4, 8.1: …`, `3.2 rung 5: …`. */
function sectionsOf(name: string): string[] {
  const [head = ""] = name.split(/(?:: | rung )/);
  return [...head.matchAll(/(?<![\d.])(\d+(?:\.\d+)?)(?![\d-])/g)].map(([, number = ""]) => number);
}

function namesOf(source: string): string[] {
  const called = /\b(?:test|describe)(?:\.each[\s\S]*?\]\))?\(\s*(["`])((?:\\.|(?!\1).)*)\1/g;
  return [...source.matchAll(called)].map(([, , name = ""]) => name);
}

test("1: every section of the page has its tests", () => {
  const files = readdirSync(import.meta.dir).filter((file) => file.endsWith(".test.ts"));
  const counts = new Map<string, { tests: number; files: Set<string> }>();
  for (const file of files) {
    for (const name of namesOf(readFileSync(join(import.meta.dir, file), "utf8"))) {
      for (const number of sectionsOf(name)) {
        const keys = number.startsWith("14.") ? ["14"] : [number];
        for (const key of keys) {
          const count = counts.get(key) ?? { tests: 0, files: new Set() };
          count.tests += 1;
          count.files.add(file.replace(".test.ts", ""));
          counts.set(key, count);
        }
      }
    }
  }
  const rows = sections.map(([number, title]) => {
    const { tests, files: where } = counts.get(number) ?? { tests: 0, files: new Set<string>() };
    return `${number.padEnd(5)} ${title.padEnd(28)} ${String(tests).padStart(3)}  ${[...where].join(" ")}`;
  });
  console.log(`protocol.md  section              tests  in\n${rows.join("\n")}`);
  expect(sections.filter(([number]) => !counts.has(number))).toEqual([]);
});
