// One merge at a time in this process: held from the look at a checkout to the end of the merge there.

/** A queue of holders; `run` resolves or rejects as its body does. */
export type Lock = { run<T>(body: () => Promise<T>): Promise<T> };

export function openQueueLock(): Lock {
  let tail: Promise<unknown> = Promise.resolve();
  return {
    run(body) {
      const result = tail.then(body, body);
      tail = result.catch(() => undefined);
      return result;
    },
  };
}
