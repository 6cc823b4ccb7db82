// The one system call that no API of the runtime reaches: exchanging what two names stand for, in one step.

import { dlopen } from "bun:ffi";

/** Names the C library may have. */
const cLibraries: readonly string[] =
  process.platform === "darwin"
    ? ["libSystem.B.dylib"]
    : ["libc.so.6", "libc.musl-x86_64.so.1", "libc.musl-aarch64.so.1", "libc.so"];

/** What `load` gives for the first name that it can use; null without one. A name that is missing costs a look into dozens of folders. */
export function fromC<Call>(load: (library: string) => Call | null): Call | null {
  for (const library of cLibraries) {
    const call = load(library);
    if (call !== null) return call;
  }
  return null;
}

/** Gives 0 for success. */
type Exchange = (left: Buffer, right: Buffer) => number;

/** `AT_FDCWD` and `RENAME_EXCHANGE` of Linux, `RENAME_SWAP` of macOS. */
const here = -100;
const linuxExchange = 2;
const macSwap = 2;

function loadExchange(library: string): Exchange | null {
  try {
    if (process.platform === "darwin") {
      const { symbols } = dlopen(library, { renamex_np: { args: ["ptr", "ptr", "u32"], returns: "i32" } });
      return (left, right) => symbols.renamex_np(left, right, macSwap);
    }
    const { symbols } = dlopen(library, { renameat2: { args: ["i32", "ptr", "i32", "ptr", "u32"], returns: "i32" } });
    return (left, right) => symbols.renameat2(here, left, here, right, linuxExchange);
  } catch {
    // Another C library, or one that is too old.
    return null;
  }
}

/** Loaded at the first use: most processes never need it. */
let exchange: Exchange | null | undefined;

function terminated(path: string): Buffer {
  return Buffer.from(`${path}\0`);
}

/** Makes each of two paths name what the other named, in one step. False, and nothing changed, when that cannot be done here. */
export function exchangeNames(left: string, right: string): boolean {
  if (exchange === undefined) exchange = fromC(loadExchange);
  return exchange?.(terminated(left), terminated(right)) === 0;
}
