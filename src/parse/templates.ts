// The files sloop can print or write for a person to start from; test/parse feeds each to the loader it is meant for.

import config from "../../templates/config.yaml" with { type: "text" };
import flow from "../../templates/flow.yaml" with { type: "text" };
import initConfig from "../../templates/init-config.yaml" with { type: "text" };
import initDefault from "../../templates/init-default.yaml" with { type: "text" };
import initProject from "../../templates/init-project.md" with { type: "text" };
import initTrain from "../../templates/init-train.yaml" with { type: "text" };
import project from "../../templates/project.md" with { type: "text" };
import review from "../../templates/review.md" with { type: "text" };
import ticket from "../../templates/ticket.md" with { type: "text" };
import { isBlank } from "../core/blank.ts";
import { member, type Node } from "./node.ts";
import { parseYaml } from "./source.ts";

/** What `sloop template <kind>` prints, each ending in one newline. */
export const templates: Record<"ticket" | "flow" | "project" | "config", string> = { ticket, flow, project, config };

const placeholder = '["cargo","test"]';

/** The files `sloop init` writes, in the order it reports them; paths are relative to the repository. */
export function scaffold(testCommand: string[]): { path: string; text: string }[] {
  const train = initTrain.replace(placeholder, () => JSON.stringify(testCommand));
  const base = ".agents/sloop";
  return [
    { path: `${base}/config.yaml`, text: initConfig },
    { path: `${base}/projects/default.md`, text: initProject },
    { path: `${base}/flows/default.yaml`, text: initDefault },
    { path: `${base}/flows/train.yaml`, text: train },
    { path: `${base}/prompts/review.md`, text: review },
  ];
}

function commandIn(root: Node | null): string[] | null {
  const flowNode = root?.kind === "map" ? member(root, "flow") : null;
  const list = flowNode?.kind === "map" ? member(flowNode, "test_cmd") : null;
  if (list?.kind !== "list") return null;
  const words: string[] = [];
  for (const item of list.items) {
    if (item.kind === "null" || item.kind === "list" || item.kind === "map") return null;
    words.push(item.text);
  }
  return words[0] === undefined || isBlank(words[0]) ? null : words;
}

/** The lines of the top-level key `flow`, cut out of a file whose other parts may be broken. */
function flowSection(text: string): string | null {
  const lines = text.split("\n");
  const start = lines.findIndex((line) => /^(?:flow|"flow"|'flow')\s*:/.test(line));
  if (start < 0) return null;
  const length = lines.slice(start + 1).findIndex((line) => /^[^\s#]/.test(line));
  return lines.slice(start, length < 0 ? undefined : start + 1 + length).join("\n");
}

/** `flow.test_cmd` of a configuration file in which anything else may be wrong; null unless it is a list that names a command. */
export function rawTestCommand(configText: string): string[] | null {
  const text = configText.replace(/^\ufeff/, "").replace(/\r\n/g, "\n");
  const whole = parseYaml(text);
  if (whole.ok) return commandIn(whole.root);
  const section = flowSection(text);
  const parsed = section === null ? null : parseYaml(section);
  return parsed?.ok ? commandIn(parsed.root) : null;
}
