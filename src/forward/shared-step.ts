/** One run of a step for all who wait for the same thing: it ends early only when the last of them has gone. */

interface Run<T> {
  readonly promise: Promise<T>;
  readonly controller: AbortController;
  waiting: number;
}

export class SharedStep<T> {
  readonly #runs = new Map<string, Run<T>>();

  /** Joins the run of `key`, or begins one. Rejects with the reason of `signal` where that comes first. */
  join(key: string, signal: AbortSignal, step: (signal: AbortSignal) => Promise<T>): Promise<T> {
    if (signal.aborted) return Promise.reject(signal.reason);
    const run = this.#runs.get(key) ?? this.#begin(key, step);
    run.waiting += 1;
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        run.waiting -= 1;
        if (run.waiting === 0) this.#abandon(key, run, signal.reason);
        reject(signal.reason);
      };
      signal.addEventListener("abort", leave, { once: true });
      const over = (): void => signal.removeEventListener("abort", leave);
      run.promise.finally(over).then(resolve, reject);
    });
  }

  #begin(key: string, step: (signal: AbortSignal) => Promise<T>): Run<T> {
    const controller = new AbortController();
    const run: Run<T> = { promise: step(controller.signal), controller, waiting: 0 };
    this.#runs.set(key, run);
    const over = (): void => this.#forget(key, run);
    run.promise.then(over, over);
    return run;
  }

  /** Whoever comes from now on begins anew. */
  #abandon(key: string, run: Run<T>, reason: unknown): void {
    this.#forget(key, run);
    run.controller.abort(reason);
  }

  #forget(key: string, run: Run<T>): void {
    if (this.#runs.get(key) === run) this.#runs.delete(key);
  }
}
