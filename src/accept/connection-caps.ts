/** How many client connections there may be, in all and for each sandbox. */
import type { Limits } from "../model/limits.ts";

export interface Cap {
  /** Counts the connection for `sandbox`; false where it has too many. Once is enough for a connection. */
  claim(sandbox: string | undefined): boolean;
  release(): void;
}

export type CapLimits = Pick<Limits, "connections" | "connections_per_sandbox">;

/** The part of all connections that may be nobody's yet from one address, which several sandboxes may share. */
const NOBODYS_PART = 8;

export class ConnectionCaps {
  readonly #limits: CapLimits;
  /** By sandbox; by address while it is not known whose a connection is. */
  readonly #counts = new Map<string, number>();
  #open = 0;

  /** `limits` is read at each use, so its properties may change. */
  constructor(limits: CapLimits) {
    this.#limits = limits;
  }

  /**
   * Undefined where there are too many already, in all or from this address: whoever never says who it is must not
   * take the room of all others.
   */
  open(address: string): Cap | undefined {
    // No sandbox's id has a blank in it.
    let counted = `from ${address}`;
    const { connections, connections_per_sandbox } = this.#limits;
    const most = Math.max(connections_per_sandbox, connections / NOBODYS_PART);
    if (this.#open >= connections || !this.#enter(counted, most)) return undefined;
    this.#open += 1;
    return {
      claim: (sandbox) => {
        const id = sandbox ?? "";
        if (counted === id) return true;
        if (!this.#enter(id, this.#limits.connections_per_sandbox)) return false;
        this.#leave(counted);
        counted = id;
        return true;
      },
      release: () => {
        this.#open -= 1;
        this.#leave(counted);
      },
    };
  }

  #enter(who: string, most: number): boolean {
    const count = this.#counts.get(who) ?? 0;
    if (count >= most) return false;
    this.#counts.set(who, count + 1);
    return true;
  }

  #leave(who: string): void {
    const count = (this.#counts.get(who) ?? 1) - 1;
    if (count === 0) this.#counts.delete(who);
    else this.#counts.set(who, count);
  }
}
