// What a loader refused with, for tables of bad input.

import { SloopError } from "../../src/core/errors.ts";

/** The message of the `invalid_arguments` refusal `action` throws; null when it returns. Anything else thrown is a bug. */
export function refusal(action: () => unknown): string | null {
  try {
    action();
    return null;
  } catch (error) {
    if (error instanceof SloopError && error.code === "invalid_arguments") return error.message;
    throw error;
  }
}
