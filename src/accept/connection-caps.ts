/** How many client connections there may be, in all and for each sandbox. */
import type { Room } from "../model/leg.ts";
import type { Limits } from "../model/limits.ts";

export interface Cap {
  /** Counts the connection for `sandbox`; false where it has too many. Once is enough for a connection. */
  claim(sandbox: string | undefined): boolean;
  /** Counts a stream of the connection for whoever claimed it, until what it returns is called; undefined where there are too many. */
  stream(): (() => void) | undefined;
  /** What one exchange keeps in memory, counted for whoever claimed the connection. */
  room(keeping: Keeping): Room;
  release(): void;
}

type Keeping = "signed_bytes_per_sandbox" | "decoding_bytes_per_sandbox";

export type CapLimits = Pick<
  Limits,
  "connections" | "connections_per_sandbox" | "h2_streams_per_sandbox" | Keeping
>;

/** The part of all connections that may be nobody's yet from one address, which several sandboxes may share. */
const NOBODYS_PART = 8;

export class ConnectionCaps {
  readonly #limits: CapLimits;
  /** By sandbox; by address while it is not known whose a connection is. */
  readonly #counts = new Map<string, number>();
  readonly #streams = new Map<string, number>();
  /** Bytes. */
  readonly #kept = new Map<string, number>();
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
    if (this.#open >= connections || !enter(this.#counts, counted, most)) return undefined;
    this.#open += 1;
    return {
      claim: (sandbox) => {
        const id = sandbox ?? "";
        if (counted === id) return true;
        if (!enter(this.#counts, id, this.#limits.connections_per_sandbox)) return false;
        leave(this.#counts, counted);
        counted = id;
        return true;
      },
      stream: () => {
        const whose = counted;
        if (!enter(this.#streams, whose, this.#limits.h2_streams_per_sandbox)) return undefined;
        return () => leave(this.#streams, whose);
      },
      room: (keeping) => this.#roomOf(counted, keeping),
      release: () => {
        this.#open -= 1;
        leave(this.#counts, counted);
      },
    };
  }

  #roomOf(sandbox: string, keeping: Keeping): Room {
    const whose = `${keeping} ${sandbox}`;
    let taken = 0;
    return {
      take: (bytes) => {
        if (!enter(this.#kept, whose, this.#limits[keeping], bytes)) return false;
        taken += bytes;
        return true;
      },
      release: () => {
        leave(this.#kept, whose, taken);
        taken = 0;
      },
    };
  }
}

function enter(counts: Map<string, number>, who: string, most: number, many = 1): boolean {
  const count = (counts.get(who) ?? 0) + many;
  if (count > most) return false;
  counts.set(who, count);
  return true;
}

function leave(counts: Map<string, number>, who: string, many = 1): void {
  const count = (counts.get(who) ?? many) - many;
  if (count === 0) counts.delete(who);
  else counts.set(who, count);
}
