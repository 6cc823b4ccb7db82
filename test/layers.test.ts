// The layer rule of ARCHITECTURE.md: import only from a lower rank or your own folder, and the fences around what is pure.

import { expect, test } from "bun:test";
import { join } from "node:path";

const src = join(import.meta.dir, "..", "src");

/** What each folder may import of ours besides itself. */
const allowed: Readonly<Record<string, readonly string[]>> = {
  core: [],
  // The one exception: directories and process starts are named by the core's hash, which imports nothing.
  system: ["core/hash.ts"],
  protocol: ["core"],
  parse: ["core"],
  git: ["core", "system"],
  store: ["core", "system"],
  daemon: ["core", "system", "protocol", "parse", "git", "store"],
  client: ["core", "system", "protocol"],
  supervisor: ["core", "system"],
  verbs: ["core", "system", "protocol", "parse", "git", "store", "daemon"],
  server: ["core", "system", "protocol", "parse", "git", "store", "daemon", "verbs"],
  cli: ["core", "system", "protocol", "parse", "client"],
};

/** Packages and runtimes a folder may import; absent: any. */
const packages: Readonly<Record<string, RegExp>> = {
  core: /^@sinclair\/typebox(\/|$)/,
  protocol: /^@sinclair\/typebox(\/|$)/,
  parse: /^yaml$/,
};

const pure = ["core", "protocol", "parse"];

/** Statements with `from`, bare imports, and calls of `import` and `require`. */
const importPattern =
  /^(?:import|export)\s[^;"]*\bfrom\s+"([^"]+)"|^import\s+"([^"]+)"|\b(?:import|require)\("([^"]+)"\)/gm;

/** Runtime, clock and chance, by the names they are used by. */
const impure =
  /\b(process\.(env|argv|pid|exit|cwd|platform|hrtime|std\w+|on|kill)\b|Date\.now|new Date\(\)|Math\.random|console\.|Bun\.|crypto\.|performance\.|setTimeout|setInterval)/;

type Source = { file: string; folder: string; text: string; code: string; imports: string[] };

/** Comments out, so that a word in one is no use of it. Strings stay: none of ours hold what is looked for. */
function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/^\s*\/\/.*$/gm, "");
}

async function sources(): Promise<Source[]> {
  const found: Source[] = [];
  for (const file of new Bun.Glob("**/*.ts").scanSync({ cwd: src })) {
    const text = await Bun.file(join(src, file)).text();
    const code = withoutComments(text);
    // A regular expression and not Bun.Transpiler: that one drops imports of types.
    const imports = [...code.matchAll(importPattern)].map((match) => match[1] ?? match[2] ?? match[3]!);
    found.push({ file, folder: file.includes("/") ? file.slice(0, file.indexOf("/")) : "", text, code, imports });
  }
  return found.sort((a, b) => (a.file < b.file ? -1 : 1));
}

function pathOf(from: string, specifier: string): string {
  return join("/", from, "..", specifier).slice(1);
}

function folderOf(from: string, specifier: string): string {
  const path = pathOf(from, specifier);
  return path.includes("/") ? path.slice(0, path.indexOf("/")) : "";
}

/** `file -> specifier` for every import that `wrong` says is one. */
function violations(all: Source[], wrong: (source: Source, specifier: string) => boolean): string[] {
  return all.flatMap((source) =>
    source.imports
      .filter((specifier) => wrong(source, specifier))
      .map((specifier) => `src/${source.file} -> ${specifier}`),
  );
}

const matching = (all: Source[], pattern: RegExp, except: RegExp = /^$/) =>
  all.filter(({ file, code }) => pattern.test(code) && !except.test(file)).map(({ file }) => `src/${file}`);

const all = await sources();

test("there is something to look at, in known folders only", () => {
  expect(all.length).toBeGreaterThan(80);
  const folders = new Set(all.map(({ folder }) => folder).filter((folder) => folder !== ""));
  expect([...folders].filter((folder) => !Object.hasOwn(allowed, folder))).toEqual([]);
  expect(all.flatMap(({ imports }) => imports).length).toBeGreaterThan(200);
});

test("imports go down the ranks, or stay in their folder", () => {
  const wrong = violations(all, ({ file, folder }, specifier) => {
    if (folder === "" || !specifier.startsWith(".")) return false;
    const to = folderOf(file, specifier);
    const outside = to === "" || specifier.includes("/templates/") || specifier.includes("/migrations/");
    const may = allowed[folder] ?? [];
    return !outside && to !== folder && !may.includes(to) && !may.includes(pathOf(file, specifier));
  });
  expect(wrong).toEqual([]);
});

test("the entry loads each of the program's three lives only when it is asked for", () => {
  const main = all.find(({ file }) => file === "main.ts")!;
  expect([...main.code.matchAll(/^import\s/gm)]).toEqual([]);
  for (const life of ["./cli/main.ts", "./server/serve.ts", "./supervisor/main.ts"]) {
    expect(main.code).toContain(`import("${life}")`);
  }
});

test("pure folders know no runtime, no clock and no chance", () => {
  const inside = all.filter(({ folder }) => pure.includes(folder));
  expect(violations(inside, (_source, specifier) => /^(bun|bun:.*|node:.*)$/.test(specifier))).toEqual([]);
  expect(matching(inside, impure)).toEqual([]);
});

test("folders import only the packages that are theirs", () => {
  const wrong = violations(all, ({ folder }, specifier) => {
    const rule = packages[folder];
    return rule !== undefined && !specifier.startsWith(".") && !rule.test(specifier);
  });
  expect(wrong).toEqual([]);
});

test("processes are started in few places", () => {
  // What the machine offers, git, a stage's command, and the supervisor that outlives the daemon.
  const allowedHere = /^(system|supervisor)\/|^git\/run\.ts$|^daemon\/supervise\.ts$/;
  expect(matching(all, /\bBun\.spawn(Sync)?\b|child_process|\bspawnSync?\(/, allowedHere)).toEqual([]);
});

test("only lines.ts writes to a socket", () => {
  expect(matching(all, /\bsocket\.write\(/, /^system\/lines\.ts$/)).toEqual([]);
});

test("only the store touches SQL; the lock is a database of its own", () => {
  const sql = violations(all, ({ folder, file }, specifier) => {
    return /^(bun:sqlite|drizzle-orm)/.test(specifier) && folder !== "store" && file !== "system/lock.ts";
  });
  expect(sql).toEqual([]);
});

test("no default exports, no numbered or catch-all names, no index but the verbs'", () => {
  expect(matching(all, /^export default/m, /^globals\.d\.ts$/)).toEqual([]);
  const names = /(^|\/)(utils?|helpers?|common|types|managers?|services?|base|misc)\.ts$/;
  expect(all.map(({ file }) => file).filter((file) => names.test(file))).toEqual([]);
  expect(all.map(({ file }) => file).filter((file) => /(^|\/)index\.ts$/.test(file))).toEqual(["verbs/index.ts"]);
});

test("every file says in its first line what it is for", () => {
  expect(all.filter(({ text }) => !text.startsWith("// ")).map(({ file }) => file)).toEqual([]);
});
