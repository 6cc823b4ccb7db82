// The version this program was built as.

/** From package.json, stamped in by build.ts; `0.0.0-source` when run from source. */
export const version: string = typeof SLOOP_VERSION === "string" ? SLOOP_VERSION : "0.0.0-source";
