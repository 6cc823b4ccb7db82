// What the long help of a command says beyond its table row; loaded for help only.

import { manualReading } from "./manual-reading.ts";
import { manualService } from "./manual-service.ts";
import { manualSteering } from "./manual-steering.ts";

export type Exit = readonly [code: string, meaning: string];

export type ManualPage = {
  /** Paragraphs and lists, already wrapped. */
  about: string;
  exits: readonly Exit[];
  examples: readonly string[];
};

/** By command word. */
export const manual: Readonly<Record<string, ManualPage>> = { ...manualReading, ...manualSteering, ...manualService };
