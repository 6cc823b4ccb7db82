// Telling a daemon that there is new output, at most ten times a second however much there is.

const betweenMs = 100;

export type Notices = { note(): void; stop(): void };

/** Calls `tell` soon after `note`, the first time at once. */
export function noticeOutput(tell: () => void): Notices {
  let lastMs = Number.NEGATIVE_INFINITY;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const fire = () => {
    timer = undefined;
    lastMs = performance.now();
    tell();
  };
  return {
    note() {
      if (timer !== undefined) return;
      const left = lastMs + betweenMs - performance.now();
      if (left <= 0) fire();
      else timer = setTimeout(fire, left);
    },
    stop: () => clearTimeout(timer),
  };
}
