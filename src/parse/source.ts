// One YAML document as nodes, or one problem with its place. Hostile input gets an ordinary problem, never a crash.

import type * as Yaml from "yaml";
import { parseSimple } from "./fast.ts";
import type { Node } from "./node.ts";
import { convertDocument, Refusal } from "./tree.ts";

/** `at` is an offset in the parsed text. `root` is null for a document with nothing in it. */
export type Parsed = { ok: true; root: Node | null } | { ok: false; problem: string; at: number };

type Library = { yaml: typeof Yaml; schema: Yaml.Schema };
let library: Library | null = null;

/** The library costs a CLI call more than the rest of its start, and plain files do not need it: loaded on first use. */
function load(): Library {
  if (library === null) {
    const yaml = require("yaml") as typeof Yaml;
    // Every scalar stays text: what a bare word means is decided in node.ts.
    library = { yaml, schema: new yaml.Schema({ schema: "failsafe", merge: false }) };
  }
  return library;
}

function oneLine(message: string): string {
  const line = message.replace(/\s+/g, " ").trim();
  return line.length > 200 ? `${line.slice(0, 200)}…` : line;
}

/** What people most often meant who wrote something that the library gives up on with one of its codes. */
const advice = new Map([
  ["TAB_AS_INDENT", "; indent with spaces"],
  ["BAD_SCALAR_START", "; put the value in quotes"],
  ["BLOCK_AS_IMPLICIT_KEY", "; put a value with `: ` in it in quotes, and a mapping inside a line in `{ }`"],
  ["UNEXPECTED_TOKEN", "; put the whole value in quotes if it is a text"],
]);

function wording(error: { code: string; message: string }, line: string): string {
  if (error.code === "MULTIPLE_DOCS")
    return "the file holds more than one document; keep one and remove the `---` after it";
  if (/call stack/i.test(error.message)) return "values are nested too deeply";
  const code = /^ *\t/.test(line) ? "TAB_AS_INDENT" : error.code;
  return `the YAML cannot be read: ${oneLine(error.message)}${advice.get(code) ?? ""}`;
}

/** The line that holds an offset. */
function lineAt(text: string, at: number): string {
  const end = text.indexOf("\n", at);
  return text.slice(text.lastIndexOf("\n", at - 1) + 1, end < 0 ? undefined : end);
}

/** Far beyond what is accepted, and little enough for the library to read at once. */
const bracketLimit = 1_000;
const entryChain = /(?:[-?][ \t]+){1000}/;

/** Where the text nests so deeply that the library would take long to give up on it; null when it does not. */
function hopelessAt(text: string): number | null {
  let depth = 0;
  for (const { 0: bracket, index } of text.matchAll(/[[\]{}]/g)) {
    depth = bracket === "[" || bracket === "{" ? depth + 1 : Math.max(0, depth - 1);
    if (depth > bracketLimit) return index;
  }
  const chain = text.search(entryChain);
  return chain < 0 ? null : chain;
}

/** Characters of YAML that are read: the library takes seconds for a few megabytes, and nobody writes a tenth of this. */
const textLimit = 262_144;

function tooLong(text: string): Parsed | null {
  if (text.length <= textLimit) return null;
  return { ok: false, problem: `the YAML is too large: more than ${textLimit} characters`, at: textLimit };
}

/** Parses with the YAML library whatever the text looks like; `parseYaml` is the same and faster. */
export function parseYamlFully(text: string): Parsed {
  const long = tooLong(text);
  if (long !== null) return long;
  const hopeless = hopelessAt(text);
  if (hopeless !== null) return { ok: false, problem: "values are nested too deeply", at: hopeless };
  try {
    const { yaml, schema } = load();
    // "error" and not "silent": the latter also drops the error about a second document. Nothing is logged either way.
    const options = { schema, logLevel: "error", prettyErrors: false, uniqueKeys: false } as const;
    const document = yaml.parseDocument(text, options);
    const first = document.errors[0];
    if (first !== undefined) {
      const at = Math.max(0, first.pos[0]);
      return { ok: false, problem: wording(first, lineAt(text, at)), at };
    }
    return { ok: true, root: document.contents === null ? null : convertDocument(yaml, document.contents) };
  } catch (error) {
    if (error instanceof Refusal) return { ok: false, problem: error.message, at: error.at };
    // The parser itself gave up; with hostile nesting that is a stack overflow.
    return { ok: false, problem: wording({ code: "", message: String(error) }, ""), at: 0 };
  }
}

/** Parses one YAML document by the profile of files.md 2.1. Offsets and positions are those of `text`. */
export function parseYaml(text: string): Parsed {
  const long = tooLong(text);
  if (long !== null) return long;
  const simple = parseSimple(text);
  return simple === null ? parseYamlFully(text) : { ok: true, root: simple.root };
}

/** Line and column, both from 1, of an offset. */
function position(text: string, at: number): { line: number; column: number } {
  let line = 1;
  let start = 0;
  for (let next = text.indexOf("\n"); next >= 0 && next < at; next = text.indexOf("\n", start)) {
    line += 1;
    start = next + 1;
  }
  return { line, column: at - start + 1 };
}

/** ` (line L, column C)`, to end a message with. */
export function place(text: string, at: number): string {
  const { line, column } = position(text, at);
  return ` (line ${line}, column ${column})`;
}

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Text of a file's bytes; null unless they are valid UTF-8. A byte-order mark stays: in a ticket it matters. */
export function decodeUtf8(bytes: Uint8Array): string | null {
  try {
    return strict.decode(bytes);
  } catch {
    return null;
  }
}
