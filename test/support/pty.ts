// Runs the binary in a terminal, so that colours, progress lines and Ctrl-C can be seen.

import { bin, type RunOptions } from "./bin.ts";
import { until } from "./until.ts";

export type PtyOptions = RunOptions & { columns?: number };

export type PtyRun = {
  /** Everything the terminal has shown so far, escapes included. */
  text(): string;
  /** Waits until the terminal has shown `part`. */
  shows(part: string): Promise<void>;
  write(keys: string): void;
  exited: Promise<number>;
};

/** Starts `args` of the binary with all three streams on a terminal, of 100 columns unless told. Ends with the process. */
export async function openPty(args: string[], options: PtyOptions = {}): Promise<PtyRun> {
  return openPtyCommand([await bin(), ...args], options);
}

/** The same for any command. */
export function openPtyCommand(argv: string[], options: PtyOptions = {}): PtyRun {
  let text = "";
  const decoder = new TextDecoder();
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries({ ...process.env, TERM: "xterm", TZ: "UTC", ...options.env })) {
    if (value !== undefined) env[name] = value;
  }
  const child = Bun.spawn(argv, {
    env,
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    timeout: options.timeoutMs ?? 60_000,
    killSignal: "SIGKILL",
    terminal: {
      cols: options.columns ?? 100,
      rows: 30,
      data(_terminal, bytes) {
        text += decoder.decode(bytes, { stream: true });
      },
    },
  });
  const exited = child.exited.then(async (code) => {
    // What the process wrote last may still be on its way.
    let before = -1;
    await until(async () => {
      const same = before === text.length;
      before = text.length;
      await Bun.sleep(20);
      return same;
    }, "the terminal to fall silent");
    child.terminal?.close();
    return code;
  });
  return {
    text: () => text,
    shows: async (part) => void (await until(() => text.includes(part), `the terminal to show ${part}, got ${text}`)),
    write: (keys) => child.terminal?.write(keys),
    exited,
  };
}
