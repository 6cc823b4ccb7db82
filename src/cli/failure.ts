// How an error is printed: one envelope under --json, else a line for people with what to do next (cli.md 13.12).

import type { ErrorCode } from "../core/errors.ts";
import { SloopError } from "../core/errors.ts";
import { type Failure, failure } from "../protocol/envelope.ts";
import { ClosedStream, writeError } from "./output.ts";
import { Refusal } from "./refusal.ts";
import { visible } from "./style.ts";
import { errorIsTerminal } from "./terminal.ts";

function humanText(error: Failure["error"], hint: string | null): string {
  const lines = [`error (${error.code}): ${error.message}`];
  if (Object.keys(error.details ?? {}).length > 0) lines.push(JSON.stringify(error.details));
  if (hint !== null) lines.push(`  hint: ${hint}`);
  return lines.join("\n");
}

/** Prints a refused request on standard error; `hint` is for people only. */
export async function sayFailure(reply: Failure, json: boolean, hint: string | null): Promise<void> {
  if (json) {
    await writeError(`${JSON.stringify({ id: reply.id, ok: false, error: reply.error })}\n`);
    return;
  }
  const text = humanText(reply.error, hint);
  await writeError(`${errorIsTerminal() ? visible(text) : text}\n`);
}

function describe(error: unknown): { code: ErrorCode; message: string; details: Record<string, unknown> } {
  if (error instanceof SloopError) return { code: error.code, message: error.message, details: error.details };
  return { code: "internal", message: error instanceof Error ? error.message : String(error), details: {} };
}

/** Prints whatever ended a command and returns its exit code; a closed pipe is left without a word. */
export async function endWith(error: unknown, json: boolean): Promise<number> {
  if (error instanceof ClosedStream) return 1;
  const hint = error instanceof SloopError ? error.hint : null;
  await sayFailure(failure(null, describe(error)), json, hint);
  return error instanceof Refusal ? error.exitCode : 1;
}
