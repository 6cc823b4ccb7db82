// What vendors' agents print when they reject a request: rules as data, checked before a daemon starts (engine.md 12.2).

import { type Static, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { SloopError } from "./errors.ts";
import { vendorClasses } from "./evidence.ts";
import claude from "./vendors/claude.json" with { type: "json" };
import codex from "./vendors/codex.json" with { type: "json" };
import opencode from "./vendors/opencode.json" with { type: "json" };

const Text = Type.String({ minLength: 1, pattern: "\\S" });
/** Top-level fields a record must have, with exactly these values. */
const Predicate = Type.Record(Text, Type.Union([Type.String(), Type.Number(), Type.Boolean()]), { minProperties: 1 });

const Rule = Type.Object(
  {
    id: Text,
    class: Type.Union(vendorClasses.map((name) => Type.Literal(name))),
    diagnostic: Text,
    exit_status: Type.Optional(Type.Integer()),
    stream: Type.Optional(Type.Union([Type.Literal("stdout"), Type.Literal("stderr")])),
    /** An HTTP-like status code that must be named as one. */
    status: Type.Optional(Type.Integer({ minimum: 0 })),
    error_code: Type.Optional(Text),
    framing: Type.Optional(Type.Literal("ndjson")),
    records: Type.Optional(Type.Array(Predicate, { minItems: 1 })),
    /** Exact substrings; every one must occur. */
    signatures: Type.Array(Text, { minItems: 1 }),
  },
  { additionalProperties: false },
);

const Catalogue = Type.Object(
  { version: Type.Literal(1), vendor: Text, rules: Type.Array(Rule) },
  { additionalProperties: false },
);

export type VendorRule = Static<typeof Rule> & { vendor: string };

function refuse(vendor: string, problem: string): never {
  throw new SloopError("internal", `vendor catalogue ${vendor}: ${problem}`);
}

function checkCatalogue(value: unknown): VendorRule[] {
  const named = typeof value === "object" && value !== null && "vendor" in value ? String(value.vendor) : "?";
  if (!Value.Check(Catalogue, value)) {
    const first = Value.Errors(Catalogue, value).First();
    refuse(named, `${first?.path ?? ""}: ${first?.message ?? "is not a catalogue"}`);
  }
  for (const rule of value.rules) {
    if (rule.records !== undefined && rule.framing === undefined) {
      refuse(named, `rule ${rule.id} has record predicates but no framing`);
    }
  }
  return value.rules.map((rule) => ({ ...rule, vendor: value.vendor }));
}

/** Rules of several catalogues in their order. Throws SloopError for anything the format does not know, and for an id given twice. */
export function checkCatalogues(values: readonly unknown[]): VendorRule[] {
  const rules = values.flatMap(checkCatalogue);
  const ids = new Set<string>();
  for (const rule of rules) {
    if (ids.has(rule.id)) refuse(rule.vendor, `rule ${rule.id} is defined twice`);
    ids.add(rule.id);
  }
  return rules;
}

/** The built-in rules, in the order they are tried for every target. Throws SloopError when one of them is broken. */
export function loadRules(): VendorRule[] {
  return checkCatalogues([codex, opencode, claude]);
}
