/** Waits of the tests' origins: for an event, and the time is only how long a failing test takes. */
import type { EventEmitter } from "node:events";

/** Resolves once `condition` holds, asked at each `change`; rejects after `ms`. `what` is waited for, in words. */
export type Until = (what: string, condition: () => boolean, ms?: number) => Promise<void>;

export function untilChanged(changes: EventEmitter): Until {
  return (what, condition, ms = 10_000) =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(
        () => finish(() => reject(new Error(`The origin waited in vain for ${what}`))),
        ms,
      );
      function finish(report: () => void): void {
        clearTimeout(timer);
        changes.off("change", check);
        report();
      }
      function check(): void {
        if (condition()) finish(resolve);
      }
      changes.on("change", check);
      check();
    });
}
