// One merge at a time in this process: who holds it, who waits for it, and which merge is at work in a checkout.

/** A queue of holders; `run` resolves or rejects as its body does. */
export type Lock = {
  /** `stillWanted` is asked while others hold the lock; what it throws ends the wait, and the body never runs. */
  run<T>(body: () => Promise<T>, stillWanted?: () => void): Promise<T>;
};

const askMs = 100;

export function openQueueLock(): Lock {
  let tail: Promise<unknown> = Promise.resolve();
  return {
    run<T>(body: () => Promise<T>, stillWanted?: () => void): Promise<T> {
      const { promise, resolve, reject } = Promise.withResolvers<T>();
      let waits = true;
      let timer: ReturnType<typeof setInterval> | undefined;
      const leave = () => {
        waits = false;
        clearInterval(timer);
      };
      const enter = async () => {
        if (!waits) return;
        leave();
        await body().then(resolve, reject);
      };
      if (stillWanted !== undefined) {
        timer = setInterval(() => {
          try {
            stillWanted();
          } catch (error) {
            leave();
            reject(error);
          }
        }, askMs);
      }
      tail = tail.then(enter);
      return promise;
    },
  };
}

/** Held over every look at and change of a merge checkout. */
export const mergeLock: Lock = openQueueLock();

/** A merge in somebody's checkout. */
export type OpenMerge = {
  /** Whether git may be at work; before that, ending it does no harm. */
  open: boolean;
  /** Resolves once the checkout is whole again: landed, taken back, or given up on. */
  whole: Promise<void>;
};

/** The merges of this daemon that are at work, by run. */
export const openMerges: Map<string, OpenMerge> = new Map();

/** Runs `body` as a merge of this run that is known to whoever wants to end it. */
export async function asOpenMerge<T>(runId: string, body: (merge: OpenMerge) => Promise<T>): Promise<T> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const merge = { open: false, whole: promise };
  openMerges.set(runId, merge);
  try {
    return await body(merge);
  } finally {
    openMerges.delete(runId);
    resolve();
  }
}
