// Compiles the binary: `bun build.ts` for this machine, `--all` for every release target, `docs` writes docs/reference.

import { mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";

const projectDir = import.meta.dir;
const distDir = join(projectDir, "dist");

const releaseTargets = [
  ["bun-linux-x64", "linux-x64"],
  ["bun-linux-arm64", "linux-arm64"],
  ["bun-linux-x64-musl", "linux-x64-musl"],
  ["bun-linux-arm64-musl", "linux-arm64-musl"],
  ["bun-darwin-x64", "darwin-x64"],
  ["bun-darwin-arm64", "darwin-arm64"],
] as const;

type Target = (typeof releaseTargets)[number][0];

async function packageVersion(): Promise<string> {
  const text: { version: string } = await Bun.file(join(projectDir, "package.json")).json();
  return text.version;
}

/** Compiles into a directory of its own and renames, so that nobody ever runs half a file. */
async function compile(outfile: string, target: Target | null): Promise<void> {
  const scratch = join(distDir, `.build-${process.pid}-${basename(outfile)}`);
  mkdirSync(scratch, { recursive: true });
  mkdirSync(dirname(outfile), { recursive: true });
  try {
    const made = await Bun.build({
      entrypoints: [join(projectDir, "src/main.ts")],
      root: projectDir,
      target: "bun",
      format: "esm",
      bytecode: true,
      splitting: true,
      // Readable stack traces need the names; measured, shorter ones start no faster.
      minify: { whitespace: true, syntax: true, identifiers: false },
      sourcemap: "inline",
      define: { SLOOP_VERSION: JSON.stringify(await packageVersion()) },
      compile: {
        outfile: join(scratch, "sloop"),
        // A repository's .env or bunfig.toml must never reach the program that is started in it.
        autoloadDotenv: false,
        autoloadBunfig: false,
        ...(target === null ? {} : { target }),
      },
    });
    if (!made.success) throw new AggregateError(made.logs, "the build failed");
    renameSync(join(scratch, "sloop"), outfile);
  } finally {
    // Map files are written beside the binary even when they are inline.
    rmSync(scratch, { recursive: true, force: true });
  }
}

async function checksums(directory: string): Promise<void> {
  const names = readdirSync(directory)
    .filter((name) => name.startsWith("sloop-"))
    .sort();
  const lines: string[] = [];
  for (const name of names) {
    const bytes = await Bun.file(join(directory, name)).bytes();
    lines.push(`${new Bun.CryptoHasher("sha256").update(bytes).digest("hex")}  ${name}\n`);
  }
  await Bun.write(join(directory, "SHA256SUMS"), lines.join(""));
}

async function buildAll(): Promise<void> {
  const directory = join(distDir, "release");
  rmSync(directory, { recursive: true, force: true });
  for (const [target, name] of releaseTargets) {
    await compile(join(directory, `sloop-${name}`), target);
    console.log(`dist/release/sloop-${name}`);
  }
  await checksums(directory);
  console.log("dist/release/SHA256SUMS");
}

async function writeDocs(): Promise<void> {
  const { renderReference } = await import("./src/cli/reference.ts");
  await Bun.write(join(projectDir, "docs/reference/cli.md"), renderReference());
  console.log("docs/reference/cli.md");
  const { renderProtocol } = await import("./src/protocol/reference.ts");
  const examples = await Bun.file(join(projectDir, "docs/reference/protocol-examples.json")).json();
  await Bun.write(join(projectDir, "docs/reference/protocol.md"), renderProtocol(examples));
  console.log("docs/reference/protocol.md");
}

const [mode] = process.argv.slice(2);
if (mode === "docs") await writeDocs();
else if (mode === "--all") await buildAll();
else if (mode === undefined) {
  await compile(join(distDir, "sloop"), null);
  console.log("dist/sloop");
} else {
  console.error("usage: bun build.ts [--all | docs]");
  process.exit(2);
}
