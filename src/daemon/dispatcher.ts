// One thing at a time: requests, drivers' messages, the timer, the tick. After each of them, a pass.

export type Dispatcher = {
  /** Runs `job` once everything queued before it was handled; resolves to what it returned, rejects with what it threw. */
  enqueue<T>(job: () => T | Promise<T>): Promise<T>;
  /** Asks for a pass; many requests for one make one. */
  poke(): void;
};

/** After so long everybody else has a turn: sockets, timers, the ends of processes. */
const longestTurnMs = 10;

/** `pass` returns a promise only when it has to wait; until then nothing else is handled. It must not throw. */
export function openDispatcher(pass: () => void | Promise<void>): Dispatcher {
  const queue: (() => void)[] = [];
  let busy = false;
  let poked = false;

  function drain(): void {
    const until = performance.now() + longestTurnMs;
    for (let job = queue.shift(); job !== undefined; job = queue.shift()) {
      job();
      const waiting = pass();
      if (waiting !== undefined) {
        void waiting.finally(drain);
        return;
      }
      if (performance.now() > until) {
        setImmediate(drain);
        return;
      }
    }
    busy = false;
  }

  function submit(job: () => void): void {
    queue.push(job);
    if (busy) return;
    busy = true;
    drain();
  }

  return {
    enqueue: (job) =>
      new Promise((resolve, reject) => {
        submit(() => {
          try {
            resolve(job());
          } catch (error) {
            reject(error);
          }
        });
      }),
    poke() {
      if (poked) return;
      poked = true;
      // Not from within the caller: it may be in the middle of something that the pass would see half done.
      queueMicrotask(() => {
        poked = false;
        submit(() => undefined);
      });
    },
  };
}
