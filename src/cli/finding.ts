// What `sloop doctor` finds.

export type Finding = {
  check: string;
  /** An error stops runs; a warning spoils some, or will. */
  severity: "error" | "warning";
  message: string;
  why: string;
  /** The command that mends it. */
  fix: string;
};
