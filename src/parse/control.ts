// The `control` section of the user-level file: where daemons listen, and where remote daemons' tokens are kept.

import { type MapNode, member, type Node } from "./node.ts";
import { asBoolean, asLooseText, asMap, refuse, type Source } from "./shape.ts";

type Listen = { bind: string; advertise: string | null; workers: boolean };

/** `listen` by canonical repository root, `remotes` by `host:port`. `tokenFile` as written, `~/` not expanded. */
export type Control = { listen: Map<string, Listen>; remotes: Map<string, { tokenFile: string }> };

export const noControl: Control = { listen: new Map(), remotes: new Map() };

const ipv4 = /^(?:(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])(?:\.(?!$)|$)){4}$/;

/** Reads `ADDR:PORT`: an IPv4 literal, a bracketed IPv6 literal or `localhost`; null for anything else. */
export function parseBind(text: string): { host: string; port: number } | null {
  const match = /^(\[[0-9A-Fa-f:.]{2,45}\]|[^:[\]]+):([0-9]{1,5})$/.exec(text);
  const host = match?.[1] ?? "";
  const port = Number(match?.[2] ?? "65536");
  if (port > 65_535) return null;
  if (host.startsWith("[") && host.includes(":")) return { host: host.slice(1, -1), port };
  if (host === "localhost") return { host: "127.0.0.1", port };
  return ipv4.test(host) ? { host, port } : null;
}

function only(source: Source, map: MapNode, key: string, allowed: string[]): void {
  const stranger = map.entries.find((entry) => !allowed.includes(entry.key));
  if (stranger === undefined) return;
  const expected = allowed.map((name) => `\`${name}\``).join(", ");
  refuse(source, stranger.keyAt, `${key}: unknown field \`${stranger.key}\`, expected ${expected}`);
}

function required(source: Source, map: MapNode, name: string, key: string): string {
  const value = member(map, name);
  return value === null
    ? refuse(source, map.at, `${key}: missing field \`${name}\``)
    : asLooseText(source, value, `${key}.${name}`);
}

function listen(source: Source, node: Node, key: string): Listen {
  const map = asMap(source, node, key);
  only(source, map, key, ["bind", "advertise", "workers"]);
  const advertise = member(map, "advertise");
  const workers = member(map, "workers");
  return {
    bind: required(source, map, "bind", key),
    advertise: advertise === null ? null : asLooseText(source, advertise, `${key}.advertise`),
    workers: workers === null ? false : asBoolean(source, workers, `${key}.workers`),
  };
}

function remote(source: Source, node: Node, key: string): { tokenFile: string } {
  const map = asMap(source, node, key);
  only(source, map, key, ["token_file"]);
  return { tokenFile: required(source, map, "token_file", key) };
}

function members(source: Source, map: MapNode, name: string): MapNode["entries"] {
  const value = member(map, name);
  return value === null ? [] : asMap(source, value, `control.${name}`).entries;
}

/** Reads a `control` section. An unknown member is an error: a misspelt one here could leave a door open. */
export function readControl(source: Source, node: Node): Control {
  const map = asMap(source, node, "control");
  only(source, map, "control", ["listen", "remotes"]);
  const control: Control = { listen: new Map(), remotes: new Map() };
  for (const { key, value } of members(source, map, "listen")) {
    control.listen.set(key, listen(source, value, `control.listen.${key}`));
  }
  for (const { key, value } of members(source, map, "remotes")) {
    control.remotes.set(key, remote(source, value, `control.remotes.${key}`));
  }
  return control;
}
