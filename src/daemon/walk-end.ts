// The ways a walk ends other than by reaching a halt or the flow's end. Each is thrown by whoever finds out.

/** A stage that cannot even be tried, or whose evidence cannot be had: the walk ends at that stage (engine.md 9.5). */
export class WalkError extends Error {}

/** The launch failed before anything ran: the admission is rolled back. */
export class AdmissionFailed extends Error {
  /** Whether a process was started all the same, and had to be ended. */
  readonly started: boolean;

  constructor(problem: string, started = false) {
    super(problem);
    this.started = started;
  }
}

/** The agent's process is gone and nothing tells how it ended. */
export class AgentLost extends Error {
  constructor() {
    super("the agent's process is gone and left no record of how it ended");
  }
}

/** Somebody else owns the run's end: this driver says nothing more. */
export class Superseded extends Error {
  constructor(state: string) {
    super(`the run is ${state}; another owner has it`);
  }
}

/** The run's cancellation was asked for; the walk stops without appending anything. */
export class Cancelled extends Error {}
