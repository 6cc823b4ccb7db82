// docs/reference/protocol.md, made of the verb table, the guide and recorded exchanges: `bun build.ts docs` writes it.

import { KindGuard, type TSchema } from "@sinclair/typebox";
import { guide, verdictEcho } from "./guide.ts";
import * as objects from "./guide-objects.ts";
import { errorMeanings, opening } from "./guide-text.ts";
import { type Verb, verbs } from "./verbs.ts";

/** One recorded exchange; `name` begins with the verb. */
export type RecordedExample = { name: string; request: unknown; reply: unknown };

const widest = 110;

/** JSON that a person can read: what fits on a line stays on one. */
export function prettyJson(value: unknown, indent = ""): string {
  const flat = flatJson(value);
  if (typeof value !== "object" || value === null || indent.length + flat.length <= widest) return flat;
  const inner = `${indent}  `;
  const parts = Array.isArray(value)
    ? value.map((item) => prettyJson(item, inner))
    : Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}: ${prettyJson(item, inner)}`);
  const [open, close] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  return `${open}\n${parts.map((part) => inner + part).join(",\n")}\n${indent}${close}`;
}

function flatJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(flatJson).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}: ${flatJson(item)}`);
  return `{${members.join(", ")}}`;
}

function row(...cells: string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
}

function table(head: string[], rows: string[][]): string {
  return [row(...head), row(...head.map(() => "---")), ...rows.map((cells) => row(...cells))].join("\n");
}

function fieldTable(fields: Readonly<Record<string, string>>): string {
  return table(
    ["field", ""],
    Object.entries(fields).map(([name, text]) => [`\`${name}\``, text]),
  );
}

function kindText(schema: TSchema): string {
  const { kind, ...rest } = schema["properties"] as Record<string, TSchema>;
  const members = Object.entries(rest).map(([name, part]) => `, "${name}": <${typeText(part)}>`);
  return `\`{"kind": ${JSON.stringify(kind?.["const"])}${members.join("")}}\``;
}

function integerText(schema: TSchema): string {
  return schema.description ?? `an integer from ${schema["minimum"]} to ${schema["maximum"]}`;
}

/** What a schema allows, in words. */
function typeText(schema: TSchema): string {
  if (KindGuard.IsUnion(schema)) {
    const parts = schema.anyOf.filter((part) => !KindGuard.IsBigInt(part)).map(typeText);
    return [...new Set(parts)].join(" or ");
  }
  if (KindGuard.IsNull(schema)) return "null";
  if (KindGuard.IsLiteral(schema)) return `\`${schema.const}\``;
  if (KindGuard.IsString(schema)) return "a string";
  if (KindGuard.IsBoolean(schema)) return "true or false";
  if (KindGuard.IsInteger(schema)) return integerText(schema);
  if (KindGuard.IsArray(schema)) return `an array of ${typeText(schema.items).replace(/^an? /, "")}s`;
  return kindText(schema);
}

function argumentTable(schema: TSchema): string {
  const properties = schema["properties"] as Record<string, TSchema>;
  const required = (schema["required"] ?? []) as string[];
  const rows = Object.entries(properties).map(([name, part]) => [
    `\`${name}\``,
    required.includes(name) ? "required" : "optional",
    typeText(part),
  ]);
  return rows.length === 0 ? "No arguments; `args` is `{}`." : table(["argument", "", "type"], rows);
}

const lineWidth = 120;

function wrapped(text: string): string {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > lineWidth) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines.join("\n");
}

const callers = {
  operator: "the operator",
  worker: "a worker, on its run's socket with its token",
  both: "the operator; a worker about its own ticket",
};

function exampleText({ request, reply }: RecordedExample): string {
  return `\`\`\`json\n${prettyJson(request)}\n${prettyJson(reply)}\n\`\`\``;
}

function verbSection(verb: Verb, examples: readonly RecordedExample[]): string[] {
  const { who, params, summary, read } = verbs[verb];
  const { about, reply, refusals } = guide[verb];
  const recorded = examples.filter(({ name }) => name === verb || name.startsWith(`${verb}, `));
  const refused = refusals.map(([code, when]) => [`\`${code}\``, when]);
  const fields = Object.keys(reply).length === 0 ? [] : ["The reply's `data`:", fieldTable(reply)];
  return [
    `### ${verb}`,
    wrapped(`${summary} ${about}`),
    `Asked by ${callers[who]}. ${read ? "It changes nothing and may be sent again." : "Do not send it twice."}`,
    argumentTable(params),
    ...fields,
    ...(refused.length === 0 ? [] : ["Refused with:", table(["code", "when"], refused)]),
    ...recorded.flatMap((example) => [
      example.name === verb ? "Example:" : `Example${example.name.slice(verb.length)}:`,
      exampleText(example),
    ]),
  ];
}

function sharedSections(): string[] {
  const project =
    "`id`, `title`, `file` or null, `tickets` by id as text. Each ticket: `id`, `name`, `state` as stored,";
  const parts = "`reason`, `classification`, `notes` (`id`, `run`, `run_id`, `text`, `recorded_at_ms`), `commits`";
  return [
    "## Objects",
    ...(
      [
        ["Ticket row", objects.ticketRow],
        ["Run summary", objects.activeRun],
        ["The gate", objects.gate],
        ["Dispatch", objects.dispatch],
        ["Ticket detail", objects.ticketDetail],
        ["Run detail", objects.runDetail],
        ["Stage row", objects.stageRow],
        ["Log entry", objects.logEntry],
        ["Event", objects.feedEvent],
        ["Verdict echo", verdictEcho],
      ] as const
    ).flatMap(([title, fields]) => [`### ${title}`, fieldTable(fields)]),
    "### Project detail",
    `${project}\n${parts} (\`run\`, \`run_id\`, \`hash\`, \`message\`).`,
    "### Event kinds",
    table(
      ["kind", "`data`"],
      Object.entries(objects.eventData).map(([kind, data]) => [`\`${kind}\``, data]),
    ),
    "### States",
    table(["ticket", ""], stateRows(objects.ticketMeanings)),
    table(["run", ""], stateRows(objects.runMeanings)),
  ];
}

function stateRows(meanings: Readonly<Record<string, string>>): string[][] {
  return Object.entries(meanings).map(([state, text]) => [`\`${state}\``, text]);
}

/** The whole page as Markdown, ending in one newline. */
export function renderProtocol(examples: readonly RecordedExample[]): string {
  const names = Object.keys(verbs) as Verb[];
  const codes = Object.entries(errorMeanings).map(([code, text]) => [`\`${code}\``, text]);
  return [
    ...opening,
    "## Errors",
    table(["code", "when"], codes),
    "## Verbs",
    table(
      ["verb", "asked by", ""],
      names.map((verb) => [
        `[\`${verb}\`](#${verb})`,
        verbs[verb].who === "both" ? "both" : verbs[verb].who,
        verbs[verb].summary,
      ]),
    ),
    ...names.flatMap((verb) => verbSection(verb, examples)),
    ...sharedSections(),
    "",
  ]
    .join("\n\n")
    .replace(/\n+$/, "\n");
}
