// `bun picture.ts`: makes docs/demo.svg from what `dist/sloop demo` really prints.

import { join } from "node:path";

const columns = 96;
const lineHeight = 19;
const charWidth = 8.4;
const padding = 18;
const colours: Record<string, string> = { "31": "#f47067", "32": "#6bc46d", "33": "#e0b050", "2": "#8b949e" };

type Span = { text: string; colour: string | null };

/** A line's text by colour, from its SGR escapes. */
function spansOf(line: string): Span[] {
  const spans: Span[] = [];
  let colour: string | null = null;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: escapes begin with one
  for (const part of line.split(/(\x1b\[[0-9;]*m)/)) {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: escapes begin with one
    const code = /^\x1b\[([0-9;]*)m$/.exec(part);
    if (code !== null) colour = colours[code[1] ?? ""] ?? null;
    else if (part !== "") spans.push({ text: part, colour });
  }
  return spans;
}

function escapeXml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function renderLine(line: string, index: number): string {
  const y = padding + 34 + index * lineHeight;
  const spans = spansOf(line).map(({ text, colour }) =>
    colour === null ? escapeXml(text) : `<tspan fill="${colour}">${escapeXml(text)}</tspan>`,
  );
  return `  <text x="${padding}" y="${y}" xml:space="preserve">${spans.join("")}</text>`;
}

function renderPicture(lines: readonly string[]): string {
  const width = Math.ceil(columns * charWidth) + 2 * padding;
  const height = padding * 2 + 34 + lines.length * lineHeight;
  const dots = ["#f47067", "#e0b050", "#6bc46d"].map(
    (fill, n) => `  <circle cx="${padding + n * 18}" cy="${padding}" r="6" fill="${fill}"/>`,
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"`,
    `     font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="14" fill="#d1d7e0">`,
    `  <title>sloop demo: two tickets being merged</title>`,
    `  <rect width="${width}" height="${height}" rx="10" fill="#151b23"/>`,
    ...dots,
    ...lines.map(renderLine),
    "</svg>",
    "",
  ].join("\n");
}

const root = import.meta.dir;
const ran = Bun.spawnSync([join(root, "dist/sloop"), "--color", "always", "demo"], {
  stdout: "pipe",
  stderr: "inherit",
});
if (ran.exitCode !== 0) throw new Error(`the demo failed with ${ran.exitCode}`);
const printed = ran.stdout
  .toString()
  .trimEnd()
  .replaceAll(/\/tmp\/\S+/g, "/tmp/sloop-demo");
await Bun.write(join(root, "docs/demo.svg"), renderPicture(["$ sloop demo", ...printed.split("\n")]));
