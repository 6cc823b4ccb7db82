// Errors the CLI itself decides on, with the exit code each one ends in (cli.md 5, 6).

import { type ErrorCode, type ErrorExtras, SloopError } from "../core/errors.ts";
import { type Command, usageLine } from "./command.ts";

/** A SloopError that ends in an exit code other than 1. */
export class Refusal extends SloopError {
  readonly exitCode: number;

  constructor(exitCode: number, code: ErrorCode, message: string, extras: ErrorExtras = {}) {
    super(code, message, extras);
    this.name = "Refusal";
    this.exitCode = exitCode;
  }
}

const rootUsage = "sloop [OPTIONS] [COMMAND]";

/** A usage error (exit 2) in the layout of cli.md 5; `command` null: the usage line of `sloop` itself. */
export function usageError(problem: string, command: Command | null, tip: string | null = null): Refusal {
  const parts = [
    problem,
    ...(tip === null ? [] : [`  tip: ${tip}`]),
    `Usage: ${command === null ? rootUsage : usageLine(command)}`,
    "For more information, try '--help'.",
  ];
  return new Refusal(2, "invalid_arguments", parts.join("\n\n"));
}

/** A follower ran out of its `--timeout` (exit 2); `ref` null: the dashboard. */
export function timedOut(ref: string | null): Refusal {
  return new Refusal(2, "invalid_arguments", `timed out following \`${ref ?? "dashboard"}\``);
}
