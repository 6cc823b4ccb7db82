// install.sh for real: a local server hands out releases, good ones and bad ones; every failure leaves what was there.

import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { command, projectRoot, type Ran } from "../support/bin.ts";
import { newWorld, type World } from "../support/repo.ts";
import { until } from "../support/until.ts";

setDefaultTimeout(60_000);

const program = (version: string) => `#!/bin/sh
case $1 in --version) echo "sloop ${version}";; demo) echo "demo ran";; esac
`;

const assets = ["linux-x64", "linux-arm64", "linux-x64-musl", "darwin-arm64"].map((name) => `sloop-${name}`);
const sha256 = (text: string) => new Bun.CryptoHasher("sha256").update(text).digest("hex");
const sums = (text: string) => assets.map((name) => `${sha256(text)}  ${name}\n`).join("");

let hung = 0;

/** `/good/…` is a release, `/v1.2.3/…` another; the rest is what a bad day looks like. */
const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch(request) {
    const [, kind = "", ...rest] = new URL(request.url).pathname.split("/");
    const file = rest.at(-1) ?? "";
    const text = program(kind.startsWith("v") ? kind.slice(1) : "9.9.9");
    if (kind === "missing") return new Response("no", { status: 404 });
    if (file === "SHA256SUMS") return new Response(kind === "empty" ? "" : sums(text));
    if (kind === "damaged") return new Response(text.replace("sloop", "slooq"));
    if (kind === "truncated") return new Response(text.slice(0, 20));
    if (kind === "useless") return new Response("exit 1\n");
    if (kind === "hanging") {
      hung += 1;
      return new Response(
        new ReadableStream({ start: (stream) => stream.enqueue(new TextEncoder().encode("#!/bin")) }),
      );
    }
    return assets.includes(file) ? new Response(text) : new Response("no", { status: 404 });
  },
});
const base = `http://127.0.0.1:${server.port}`;
afterAll(async () => await server.stop(true));

type Place = World & { bin: string; tmp: string; install(args: string[], env?: Record<string, string>): Promise<Ran> };

/** A home of its own, a temporary directory of its own, and a copy of install.sh that lies in no checkout. */
async function place(): Promise<Place> {
  const world = await newWorld({ git: "none", name: "with spaces" });
  const tmp = join(world.dir, "t");
  mkdirSync(tmp);
  cpSync(join(projectRoot, "install.sh"), join(world.root, "install.sh"));
  const env = { ...world.env, TMPDIR: tmp, PATH: "/usr/local/bin:/usr/bin:/bin" };
  return {
    ...world,
    tmp,
    bin: join(world.dir, "home/.local/bin/sloop"),
    install: (args, more = {}) =>
      command(["sh", "install.sh", ...args], {
        cwd: world.root,
        env: { ...env, SLOOP_INSTALL_BASE: `${base}/good`, ...more },
      }),
  };
}

/** Puts commands in front of the PATH that answer with fixed text. */
function fakes(world: Place, commands: Record<string, string>): string {
  const folder = join(world.dir, "fakes");
  mkdirSync(folder, { recursive: true });
  for (const [name, script] of Object.entries(commands)) {
    writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`);
    chmodSync(join(folder, name), 0o755);
  }
  return `${folder}:/usr/local/bin:/usr/bin:/bin`;
}

test("installs the release, says where, and warns that it is not on the PATH", async () => {
  await using world = await place();
  const ran = await world.install([]);
  expect(ran).toMatchObject({ code: 0, stderr: "" });
  expect(ran.stdout).toContain(`installed sloop 9.9.9 to ${world.bin}\n`);
  expect(ran.stdout).toContain("is not on your PATH");
  expect(statSync(world.bin).mode & 0o777).toBe(0o755);
  expect(readdirSync(join(world.bin, ".."))).toEqual(["sloop"]);
  expect(readdirSync(world.tmp)).toEqual([]);
  const onPath = await world.install([], { PATH: `${join(world.bin, "..")}:/usr/bin:/bin` });
  expect(onPath.stdout).not.toContain("PATH");
});

test("--prefix, with spaces and relative; --demo; --uninstall", async () => {
  await using world = await place();
  const prefix = join(world.dir, "my programs");
  const ran = await world.install(["--prefix", prefix, "--demo"]);
  expect(ran.code).toBe(0);
  expect(ran.stdout).toEndWith("demo ran\n");
  expect(existsSync(join(prefix, "bin/sloop"))).toBe(true);
  await world.install(["--prefix=here/bin"]);
  expect(existsSync(join(world.root, "here/bin/sloop"))).toBe(true);
  expect((await world.install(["--uninstall", "--prefix", prefix])).stdout).toStartWith(
    `removed ${join(prefix, "bin/sloop")}\n`,
  );
  expect(existsSync(join(prefix, "bin/sloop"))).toBe(false);
  const again = await world.install(["--uninstall", "--prefix", prefix]);
  expect(again).toMatchObject({ code: 0, stdout: `nothing is installed at ${join(prefix, "bin/sloop")}\n` });
});

test("--version takes that release, and nothing else that is served under its name", async () => {
  await using world = await place();
  const ran = await world.install(["--version", "v1.2.3"], { SLOOP_INSTALL_BASE: base });
  expect(ran.stdout).toContain("installed sloop 1.2.3 to ");
  const wrong = await world.install(["--version", "1.2.3"], { SLOOP_INSTALL_BASE: `${base}/mislabelled` });
  expect(wrong).toMatchObject({ code: 1 });
  expect(wrong.stderr).toContain("asked for 1.2.3, got sloop 9.9.9; nothing was installed");
  expect(readFileSync(world.bin, "utf8")).toContain("1.2.3");
});

const failures: [string, string, string][] = [
  ["a damaged download", "damaged", "the download is damaged"],
  ["a truncated download", "truncated", "the download is damaged"],
  ["no release there", "missing", "cannot download"],
  ["a release without this machine", "empty", "there is no release for this machine"],
];

test.each(failures)("%s: an error, and what was installed stays", async (_name, kind, message) => {
  await using world = await place();
  await world.install(["--version", "1.0.0"], { SLOOP_INSTALL_BASE: base });
  const before = readFileSync(world.bin, "utf8");
  const ran = await world.install([], { SLOOP_INSTALL_BASE: `${base}/${kind}` });
  expect(ran.code).toBe(1);
  expect(ran.stderr).toContain(`install.sh: `);
  expect(ran.stderr).toContain(message);
  expect(readFileSync(world.bin, "utf8")).toBe(before);
  expect(readdirSync(join(world.bin, ".."))).toEqual(["sloop"]);
  expect(readdirSync(world.tmp)).toEqual([]);
});

test("a program that does not run here is not installed", async () => {
  await using world = await place();
  const path = fakes(world, { sha256sum: `cat >/dev/null; echo "${sha256(program("9.9.9"))}  -"` });
  const ran = await world.install([], { SLOOP_INSTALL_BASE: `${base}/useless`, PATH: path });
  expect(ran).toMatchObject({ code: 1 });
  expect(ran.stderr).toContain("does not run on this machine");
  expect(existsSync(world.bin)).toBe(false);
});

test.each([
  ["Linux", "x86_64", "ldd (GNU libc) 2.36", "sloop-linux-x64"],
  ["Linux", "aarch64", "ldd (GNU libc) 2.36", "sloop-linux-arm64"],
  ["Linux", "x86_64", "musl libc (x86_64)", "sloop-linux-x64-musl"],
  ["Darwin", "arm64", "", "sloop-darwin-arm64"],
])("%s on %s with %s takes %s", async (system, machine, libc, asset) => {
  await using world = await place();
  const path = fakes(world, {
    uname: `case $1 in -s) echo ${system};; *) echo ${machine};; esac`,
    ldd: `echo "${libc}" >&2; exit 1`,
  });
  const ran = await world.install([], { PATH: path });
  expect(ran.stdout).toStartWith(`downloading ${asset} from ${base}/good\n`);
  expect(ran.code).toBe(0);
});

test.each([
  ["SunOS", "x86_64", "there is no release for SunOS"],
  ["Linux", "riscv64", "there is no release for riscv64 processors"],
])("%s on %s is refused before anything is fetched", async (system, machine, message) => {
  await using world = await place();
  const path = fakes(world, { uname: `case $1 in -s) echo ${system};; *) echo ${machine};; esac` });
  const ran = await world.install([], { PATH: path });
  expect(ran).toMatchObject({ code: 1, stdout: "" });
  expect(ran.stderr).toContain(message);
});

test("a place that cannot be written to is named, and nothing is left", async () => {
  await using world = await place();
  writeFileSync(join(world.dir, "file"), "");
  const ran = await world.install(["--prefix", join(world.dir, "file/below")]);
  expect(ran.code).toBe(1);
  expect(ran.stderr).toContain(
    `cannot make ${join(world.dir, "file/below/bin")}; choose another place with --prefix DIR`,
  );
  expect(readdirSync(world.tmp)).toEqual([]);
  mkdirSync(join(world.dir, "taken/bin/sloop"), { recursive: true });
  const taken = await world.install(["--prefix", join(world.dir, "taken")]);
  expect(taken.code).toBe(1);
  expect(taken.stderr).toContain("is a directory");
  expect(readdirSync(join(world.dir, "taken/bin"))).toEqual(["sloop"]);
});

test("ended in the middle of a download it cleans up after itself", async () => {
  await using world = await place();
  const before = hung;
  const child = Bun.spawn(["setsid", "sh", "install.sh"], {
    cwd: world.root,
    env: {
      ...(world.env as Record<string, string>),
      TMPDIR: world.tmp,
      PATH: "/usr/bin:/bin",
      SLOOP_INSTALL_BASE: `${base}/hanging`,
    },
    stdout: "ignore",
    stderr: "ignore",
  });
  await until(() => hung > before, "the download to begin");
  process.kill(-child.pid, "SIGTERM");
  expect(await child.exited).toBe(143);
  expect(readdirSync(world.tmp)).toEqual([]);
  expect(existsSync(join(world.bin, ".."))).toBe(false);
});

test.each([
  [["--bogus"], 2, "unknown argument --bogus"],
  [["--prefix"], 2, "--prefix needs a value"],
  [["--version"], 2, "--version needs a value"],
  [["--version", "../../x"], 2, "is not a version"],
  [["--from-source"], 1, "works inside a checkout"],
  [["--bun"], 1, "works inside a checkout"],
])("%j is refused", async (args, code, message) => {
  await using world = await place();
  const ran = await world.install(args);
  expect(ran).toMatchObject({ code, stdout: "" });
  expect(ran.stderr).toContain(message);
});

test("--help names every option", async () => {
  await using world = await place();
  const help = (await world.install(["--help"])).stdout;
  for (const option of ["--prefix", "--version", "--from-source", "--demo", "--uninstall", "SLOOP_INSTALL_BASE"]) {
    expect(help).toContain(option);
  }
});

test("without HOME a prefix is needed", async () => {
  await using world = await place();
  const ran = await world.install([], { HOME: "" });
  expect(ran).toMatchObject({ code: 1 });
  expect(ran.stderr).toContain("use --prefix DIR");
});
