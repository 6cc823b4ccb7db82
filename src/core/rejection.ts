// Recognises a vendor's rejection in an agent's output, chunk by chunk, without ever holding the output (engine.md 12.2).

import type { VendorRule } from "./catalogue.ts";

type Stream = "stdout" | "stderr";

/** One condition on text: found once, found for good. `margin` is how much of the past it must see again. */
type Search = { found: boolean; margin: number; look(text: string, final: boolean): void };

function signatureSearch(signature: string): Search {
  const search: Search = {
    found: false,
    margin: signature.length - 1,
    look(text) {
      search.found ||= text.includes(signature);
    },
  };
  return search;
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

/** A pattern that must not be followed by more of the same: a match at the very end is decided by what comes next. */
function patternSearch(source: string, margin: number): Search {
  const pattern = new RegExp(source, "gi");
  const search: Search = {
    found: false,
    margin,
    look(text, final) {
      if (search.found) return;
      for (const match of text.matchAll(pattern)) {
        if (final || match.index + match[0].length < text.length) search.found = true;
      }
    },
  };
  return search;
}

function statusSearch(status: number): Search {
  const n = String(status);
  const plain = `status(?: |: |=)${n}`;
  const keyed = `"(?:status|status_code|statuscode)": ?${n}`;
  return patternSearch(`(?:${plain}|${keyed})(?![0-9])`, n.length + 20);
}

function codeSearch(code: string): Search {
  const name = escaped(code);
  const plain = `code(?: |: |=)${name}`;
  const keyed = `"(?:code|error_code)": ?"${name}"`;
  return patternSearch(`(?:${plain}|${keyed})(?![A-Za-z0-9_-])`, code.length + 20);
}

function searchesOf(rule: VendorRule): Search[] {
  return [
    ...(rule.status === undefined ? [] : [statusSearch(rule.status)]),
    ...(rule.error_code === undefined ? [] : [codeSearch(rule.error_code)]),
    ...rule.signatures.map(signatureSearch),
  ];
}

/** Text that arrives in pieces, searched with an overlap as long as the longest pattern. */
class Overlapping {
  private tail = "";
  private readonly searches: readonly Search[];
  private readonly margin: number;

  constructor(searches: readonly Search[]) {
    this.searches = searches;
    this.margin = Math.max(...searches.map((search) => search.margin)) + 1;
  }

  feed(text: string, final = false): void {
    const seen = this.tail + text;
    for (const search of this.searches) search.look(seen, final);
    this.tail = seen.slice(-this.margin);
  }

  /** What comes next does not continue what was there. */
  cut(): void {
    this.feed("", true);
    this.tail = "";
  }
}

/** An unfinished framed line longer than this is dropped, not searched. */
const longestLine = 8 * 1024 * 1024;

function parsedObject(line: string): Record<string, unknown> | null {
  if (!line.startsWith("{")) return null;
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : null;
  } catch {
    return null;
  }
}

function fits(predicate: Record<string, unknown>, fields: Record<string, unknown>): boolean {
  return Object.entries(predicate).every(([key, value]) => Object.hasOwn(fields, key) && fields[key] === value);
}

/** Lines of a stream; one that is a JSON object is searched only if a predicate of the rule fits its top-level fields. */
class Framed {
  private parts: string[] = [];
  private length = 0;
  private dropping = false;
  private readonly text: Overlapping;
  private readonly predicates: readonly Record<string, unknown>[];

  constructor(text: Overlapping, predicates: readonly Record<string, unknown>[]) {
    this.text = text;
    this.predicates = predicates;
  }

  feed(chunk: string): void {
    let from = 0;
    for (let at = chunk.indexOf("\n"); at >= 0; at = chunk.indexOf("\n", from)) {
      this.keep(chunk.slice(from, at));
      this.take();
      from = at + 1;
    }
    this.keep(chunk.slice(from));
  }

  private keep(part: string): void {
    this.length += part.length;
    if (this.length > longestLine) {
      this.dropping = true;
      this.parts = [];
    } else if (!this.dropping) this.parts.push(part);
  }

  /** Judges the line that is complete now. */
  take(): void {
    const line = this.parts.join("").trim();
    const fields = this.dropping ? {} : parsedObject(line);
    const searched = fields === null || this.predicates.some((predicate) => fits(predicate, fields));
    if (!this.dropping && searched) {
      this.text.feed(line);
      this.text.cut();
    }
    this.parts = [];
    this.length = 0;
    this.dropping = false;
  }
}

type Scan = { rule: VendorRule; stream: Stream; searches: Search[]; text: Overlapping; framed: Framed | null };

function newScan(rule: VendorRule, stream: Stream): Scan {
  const searches = searchesOf(rule);
  const text = new Overlapping(searches);
  return {
    rule,
    stream,
    searches,
    text,
    framed: rule.framing === undefined ? null : new Framed(text, rule.records ?? []),
  };
}

/** One agent execution's output being watched for rejections. Text is bytes as Latin-1: every pattern is ASCII. */
export class RejectionScanner {
  private readonly scans: readonly Scan[];

  constructor(rules: readonly VendorRule[]) {
    const streams: Stream[] = ["stdout", "stderr"];
    this.scans = rules.flatMap((rule) =>
      streams.filter((stream) => (rule.stream ?? stream) === stream).map((stream) => newScan(rule, stream)),
    );
  }

  feed(stream: Stream, text: string): void {
    for (const scan of this.scans) {
      if (scan.stream !== stream) continue;
      if (scan.framed === null) scan.text.feed(text);
      else scan.framed.feed(text);
    }
  }

  /** The first rule, in their order, whose conditions all held within one stream; null when none did. Ends the scan. */
  finish(exitCode: number | null): VendorRule | null {
    for (const { framed, text } of this.scans) {
      if (framed === null) text.cut();
      else framed.take();
    }
    const hit = this.scans.find(
      ({ rule, searches }) =>
        searches.every((search) => search.found) && (rule.exit_status === undefined || rule.exit_status === exitCode),
    );
    return hit?.rule ?? null;
  }
}
