// Output that is more than a pipe holds: it arrives whole, and a reader that leaves in the middle ends the command quietly.

import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { bin, command } from "../support/bin.ts";
import { newScene } from "../support/scene.ts";

setDefaultTimeout(60_000);

const body = "A line of a ticket that somebody wrote at length, äöü 日本.\n".repeat(6000);
const scene = await newScene();
afterAll(async () => await scene[Symbol.asyncDispose]());
scene.ticket("big", "", body);
await scene.data(["post", ".agents/sloop/tickets/big.md", "--manual"]);

/** A shell line in the repository, `$1` being the binary. */
async function shell(line: string) {
  return await command(["bash", "-c", line, "bash", await bin()], { cwd: scene.root, env: scene.env });
}

test("far more than 64 KiB arrives whole, however late the reader comes", async () => {
  const whole = await scene.sloop(["show", "TICK-1"]);
  expect(whole.code).toBe(0);
  expect(Buffer.byteLength(whole.stdout)).toBeGreaterThan(5 * 65_536);
  expect(whole.stdout).toEndWith(`\n\n${body}`);
  // The pause only makes it likely that the pipe fills; nothing depends on it.
  const late = await shell('"$1" show TICK-1 | { sleep 0.2; wc -c; }');
  expect(Number(late.stdout)).toBe(Buffer.byteLength(whole.stdout));
  const json = await shell('"$1" --json show TICK-1 | { sleep 0.2; cat; }');
  expect(JSON.parse(json.stdout).data.value.body).toContain("at length, äöü 日本.\n");
});

test.each([
  ["show TICK-1", "a page"],
  ["--json show TICK-1", "an envelope"],
])("a reader that leaves in the middle of `%s`: exit 1 and not a word", async (args) => {
  const ran = await shell(`"$1" ${args} | head -c 100 >/dev/null; echo "\${PIPESTATUS[0]}"`);
  expect(ran).toEqual({ code: 0, stdout: "1\n", stderr: "" });
});

test("a closed standard error loses the message and not the exit code", async () => {
  expect((await shell('"$1" shwo 2>&-')).code).toBe(2);
  expect((await shell('"$1" hold TICK-99 2>/dev/full')).code).toBe(1);
});

test("wide letters are aligned in what the binary prints", async () => {
  await scene.post("plain-name", "", ["--manual"]);
  scene.write(".agents/sloop/tickets/wide.md", "---\nid: 日本-1\nname: 表を分ける\nblocked_by: []\n---\nDo it.\n");
  const posted = await scene.sloop(["post", ".agents/sloop/tickets/wide.md", "--manual"]);
  expect(posted).toMatchObject({ code: 0 });
  const lines = (await scene.sloop(["list"])).stdout.trimEnd().split("\n");
  expect(lines).toHaveLength(3);
  // Where the state begins, in columns of a terminal.
  const starts = lines.map((line) => Bun.stringWidth(line.slice(0, line.indexOf("ready"))));
  expect(new Set(starts).size).toBe(1);
  expect(lines.some((line) => line.startsWith("日本-1  ready  表を分ける  — "))).toBe(true);
});
