// Reply lines: what a handler returned or threw, as text.

import { SloopError } from "../core/errors.ts";
import type { Daemon } from "../daemon/context.ts";
import { noteStorageFull } from "../daemon/storage.ts";
import { type Failure, failure } from "../protocol/envelope.ts";
import { renderExact } from "../protocol/exact.ts";

// A frozen reply is the same reply whenever it is seen again, so its text is made once.
const texts = new WeakMap<object, string>();

function render(data: unknown): string {
  try {
    return JSON.stringify(data);
  } catch {
    // A bigint: a cursor beyond 2^53 that goes back as it came.
    return renderExact(data);
  }
}

function dataText(data: unknown): string {
  if (typeof data !== "object" || data === null || !Object.isFrozen(data)) return render(data);
  let text = texts.get(data);
  if (text === undefined) {
    text = render(data);
    texts.set(data, text);
  }
  return text;
}

/** The line of a success envelope. */
export function renderSuccess(id: string, data: unknown): string {
  return `{"id":${JSON.stringify(id)},"ok":true,"data":${dataText(data)}}`;
}

export function renderFailure(reply: Failure): string {
  return render(reply);
}

/** What a thrown value is answered with: a refusal as it is, anything else as `internal`. */
export function refusal(daemon: Daemon, id: string, error: unknown): Failure {
  if (error instanceof SloopError) {
    return failure(id, { code: error.code, message: error.message, details: error.details });
  }
  const message = error instanceof Error ? error.message : String(error);
  noteStorageFull(daemon, error);
  return failure(id, { code: "internal", message });
}
