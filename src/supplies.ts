/** How secrets that take a while are had: by errands over the guarded way out, and by programs of the operator's. */
import { type ErrandParts, get, post } from "./errand.ts";
import type { Limits } from "./model/limits.ts";
import { runForSecret } from "./secrets/exec.ts";
import { createSupplyDesk, type SupplyDesk } from "./secrets/supply-desk.ts";

export interface SuppliesParts {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly limits: Limits;
  /** What is in force when an errand starts. */
  readonly around: () => ErrandParts;
  /** Told of each failure, once for each try. */
  readonly failed: (what: string, problem: string) => void;
  /** Milliseconds, by a clock that does not go back. */
  readonly now: () => number;
}

export function openSupplies({ env, limits, around, failed, now }: SuppliesParts): SupplyDesk {
  const within = () => AbortSignal.timeout(limits.secret_timeout);
  return createSupplyDesk({
    post: (order) => post(order, within(), around()),
    // The first are asked for while the gate is still being made.
    get: async (order) => get(order, within(), await Promise.resolve().then(around)),
    ttl: () => limits.secret_ttl,
    run: (command) => runForSecret(command, env, limits),
    failed,
    now,
  });
}
