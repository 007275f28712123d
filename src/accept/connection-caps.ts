/** How many client connections there may be, in all and for each sandbox. */
import type { Limits } from "../model/limits.ts";

export interface Cap {
  /** Counts the connection for `sandbox`; false where it has too many. Once is enough for a connection. */
  claim(sandbox: string | undefined): boolean;
  release(): void;
}

export type CapLimits = Pick<Limits, "connections" | "connections_per_sandbox">;

export class ConnectionCaps {
  readonly #limits: CapLimits;
  readonly #bySandbox = new Map<string, number>();
  #open = 0;

  /** `limits` is read at each use, so its properties may change. */
  constructor(limits: CapLimits) {
    this.#limits = limits;
  }

  /** Undefined where there are too many already. */
  open(): Cap | undefined {
    if (this.#open >= this.#limits.connections) return undefined;
    this.#open += 1;
    let claimed: string | undefined;
    return {
      claim: (sandbox) => {
        const id = sandbox ?? "";
        if (claimed === id) return true;
        const count = this.#bySandbox.get(id) ?? 0;
        if (count >= this.#limits.connections_per_sandbox) return false;
        if (claimed !== undefined) this.#leave(claimed);
        claimed = id;
        this.#bySandbox.set(id, count + 1);
        return true;
      },
      release: () => {
        this.#open -= 1;
        if (claimed !== undefined) this.#leave(claimed);
        claimed = undefined;
      },
    };
  }

  #leave(sandbox: string): void {
    const count = (this.#bySandbox.get(sandbox) ?? 1) - 1;
    if (count === 0) this.#bySandbox.delete(sandbox);
    else this.#bySandbox.set(sandbox, count);
  }
}
