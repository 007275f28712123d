/** What upstreams chose to speak, remembered for a while, so that not every handshake has to ask. Pure. */
import type { HttpVersion } from "../model/inbound.ts";
import type { Limits } from "../model/limits.ts";

export interface Spoken {
  readonly protocol: HttpVersion;
  /** It takes an extended CONNECT (RFC 8441). */
  readonly websockets: boolean;
}

interface Entry {
  readonly spoken: Spoken;
  /** Monotonic milliseconds. */
  readonly until: number;
}

/** A sandbox chooses names as it likes, so the memory ends somewhere. */
const ENTRIES = 10_000;

export class AlpnMemory {
  readonly #limits: Pick<Limits, "alpn_ttl">;
  readonly #now: () => number;
  readonly #entries = new Map<string, Entry>();

  constructor(limits: Pick<Limits, "alpn_ttl">, now: () => number) {
    this.#limits = limits;
    this.#now = now;
  }

  /** Undefined where it is not known, or was learnt too long ago. */
  recall(key: string): Spoken | undefined {
    const entry = this.#entries.get(key);
    return entry !== undefined && entry.until > this.#now() ? entry.spoken : undefined;
  }

  learn(key: string, spoken: Spoken): void {
    this.#entries.delete(key);
    this.#entries.set(key, { spoken, until: this.#now() + this.#limits.alpn_ttl });
    if (this.#entries.size <= ENTRIES) return;
    const oldest = this.#entries.keys().next().value;
    if (oldest !== undefined) this.#entries.delete(oldest);
  }
}
