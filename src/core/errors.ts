// The closed list of error codes and the one error class a caller is refused with.

/** Every code that may stand in an envelope's `error.code` (protocol.md 3.4). */
export const errorCodes = [
  "invalid_request",
  "unsupported_version",
  "unknown_verb",
  "unauthorized",
  "invalid_arguments",
  "not_found",
  "conflict",
  "internal",
  "daemon_unavailable",
  "cooldown_active",
] as const;

export type ErrorCode = (typeof errorCodes)[number];

export type ErrorExtras = {
  /** One sentence naming the next step; shown to people only, never in an envelope. */
  hint?: string;
  /** The envelope's `details`; `{}` unless protocol.md says otherwise. */
  details?: Record<string, unknown>;
};

/** A refusal to a caller: what is wrong, where, and what to do next. Anything else thrown is a bug. */
export class SloopError extends Error {
  readonly code: ErrorCode;
  readonly hint: string | null;
  readonly details: Record<string, unknown>;

  constructor(code: ErrorCode, message: string, extras: ErrorExtras = {}) {
    super(message);
    this.name = "SloopError";
    this.code = code;
    this.hint = extras.hint ?? null;
    this.details = extras.details ?? {};
  }
}
