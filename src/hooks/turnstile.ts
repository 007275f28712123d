/** Lets a bounded number in at once, and a bounded number wait: what a sandbox sets off must not fill the machine. */

export interface Turnstile {
  /** Runs `step` when its turn comes. Rejects where too many wait already, or the wait is aborted. */
  pass<T>(signal: AbortSignal, step: () => Promise<T>): Promise<T>;
}

export function createTurnstile(inside: number, waiting: number): Turnstile {
  const queue = new Set<() => void>();
  let running = 0;

  function leave(): void {
    running -= 1;
    const [next] = queue;
    if (next === undefined) return;
    queue.delete(next);
    next();
  }

  function enter(signal: AbortSignal): Promise<void> {
    if (running < inside) {
      running += 1;
      return Promise.resolve();
    }
    if (queue.size >= waiting) return Promise.reject(new Error("Too many wait already"));
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        queue.delete(turn);
        reject(new Error("Nobody waits any more"));
      };
      const turn = (): void => {
        signal.removeEventListener("abort", giveUp);
        running += 1;
        resolve();
      };
      queue.add(turn);
      signal.addEventListener("abort", giveUp, { once: true });
      if (signal.aborted) giveUp();
    });
  }

  return {
    async pass(signal, step) {
      await enter(signal);
      try {
        return await step();
      } finally {
        leave();
      }
    },
  };
}
