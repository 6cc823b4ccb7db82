// The v1 envelope: one request line in, one reply line out (protocol.md 3).

import type { ErrorCode } from "../core/errors.ts";

export const protocolVersion = 1;

/** One request or reply line may not be longer than this, its newline counted. */
export const lineLimitBytes = 1_048_576;

export type Success<T = unknown> = { id: string | null; ok: true; data: T };

export type Failure = {
  id: string | null;
  ok: false;
  error: { code: ErrorCode; message: string; details: Record<string, unknown> };
};

export type Reply<T = unknown> = Success<T> | Failure;

/** A failure envelope; `details` is `{}` unless protocol.md 3.3 says otherwise. */
export function failure(
  id: string | null,
  error: { code: ErrorCode; message: string; details?: Record<string, unknown> },
): Failure {
  return { id, ok: false, error: { code: error.code, message: error.message, details: error.details ?? {} } };
}
