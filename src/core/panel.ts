// A panel's verdict: counted anew from the stored reports each time (engine.md 11.5).

import type { Confidence, PanelReport } from "./evidence.ts";
import type { Reviewer } from "./flow.ts";

/** One seat as people are shown it, in seat order. */
export type Seat = {
  reviewer: number;
  target: string;
  verdict: "pass" | "fail";
  confidence: Confidence | null;
  reason: string;
};

export type Tally = { passed: boolean; reason: string; seats: Seat[] };

export const noVerdict = "no verdict reported";

type Panel = { reviewers: readonly Reviewer[]; quorum: number };

/** Counts the reports of one execution; a seat that never reported is a fail. */
export function tally(panel: Panel, reports: readonly PanelReport[]): Tally {
  const seats = panel.reviewers.map((reviewer, index): Seat => {
    const report = reports.find((candidate) => candidate.reviewer === index);
    return {
      reviewer: index,
      target: reviewer.target,
      verdict: report?.verdict ?? "fail",
      confidence: report?.confidence ?? null,
      reason: report === undefined ? noVerdict : (report.reason ?? ""),
    };
  });
  const passes = seats.filter((seat) => seat.verdict === "pass").length;
  const reason = `panel: ${passes} of ${seats.length} reviewers passed, quorum ${panel.quorum}`;
  return { passed: passes >= panel.quorum, reason, seats };
}
