// What the operating system calls a failure.

/** The `code` of a failed system call (`ENOENT`, ...), or null when `error` is something else. */
export function systemCode(error: unknown): string | null {
  if (!(error instanceof Error) || !("code" in error)) return null;
  return typeof error.code === "string" ? error.code : null;
}
