/** Exchanges that wait for a person's word, and the words that were given for longer. Nothing waits for ever, or without bound. */
import { randomBytes } from "node:crypto";

/** What a word is given for. */
export interface ApprovalKey {
  readonly sandbox: string | undefined;
  readonly rule: string | undefined;
  readonly host: string;
  readonly port: number;
  readonly method: string;
  /** Without query; null for a tunnel. */
  readonly path: string | null;
}

export interface PendingApproval extends ApprovalKey {
  readonly id: string;
  /** What whoever asks for approval said of it. */
  readonly why: string | undefined;
  /** Milliseconds since the epoch. */
  readonly since: number;
  readonly until: number;
  /** Its client waits for the word; else it was refused, and may come back. */
  readonly waits: boolean;
}

/** How long an approval holds for the same key: this once, while the sandbox is configured, or some milliseconds. */
export type Scope =
  | { readonly kind: "once" }
  | { readonly kind: "sandbox" }
  | { readonly kind: "time"; readonly ms: number };

export interface Resolution {
  readonly approve: boolean;
  /** Who says so, as they gave their name. */
  readonly by: string;
  readonly scope: Scope;
}

/** `expired`: nobody spoke in time, or nothing was waited for. */
export type Outcome =
  | { readonly kind: "approved" | "rejected"; readonly by: string }
  | { readonly kind: "expired" };

export interface Asking {
  readonly key: ApprovalKey;
  readonly why: string | undefined;
  readonly timeoutMs: number;
  /** False: the client is refused at once, and asks again once somebody has approved. */
  readonly wait: boolean;
  /** Aborted: the client went away. */
  readonly signal: AbortSignal;
  /** Called once it is among what waits; `over` is aborted once it no longer does. Not called where a word holds. */
  readonly entered?: ((pending: PendingApproval, over: AbortSignal) => void) | undefined;
}

export interface BookOptions {
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Told of every word that was given: what it was for, and by whom. */
  readonly resolved: (pending: PendingApproval, resolution: Resolution) => void;
  /** Told of a word that was heard here and holds for longer: other processes have to learn it. */
  readonly spread?: ((key: ApprovalKey, resolution: Resolution) => void) | undefined;
}

interface Entry {
  readonly pending: PendingApproval;
  readonly settle: (outcome: Outcome) => void;
}

interface Grant {
  readonly sandbox: string | undefined;
  readonly by: string;
  readonly until: number;
  readonly once: boolean;
}

const EXPIRED: Outcome = { kind: "expired" };
/** In this process; and of one sandbox, so that none can keep another from asking. */
const PENDING = 128;
const PENDING_OF_ONE = 16;
const GRANTS = 1_024;
/** That one sandbox may begin in a minute: people are told of each, of those too whose client does not stay. */
const BEGUN = 60;
const MINUTE_MS = 60_000;

export class ApprovalBook {
  readonly #options: BookOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #grants = new Map<string, Grant>();
  /** By sandbox: when it began to ask, in the last minute. */
  readonly #begun = new Map<string | undefined, readonly number[]>();

  constructor(options: BookOptions) {
    this.#options = options;
  }

  /** Never rejects. */
  ask(asking: Asking): Promise<Outcome> {
    const granted = this.#take(textOf(asking.key));
    if (granted !== undefined) return Promise.resolve({ kind: "approved", by: granted.by });
    if (this.#isFull(asking.key.sandbox) || asking.signal.aborted) return Promise.resolve(EXPIRED);
    const known = asking.wait ? undefined : this.#sameAs(asking.key);
    if (known !== undefined || !this.#mayBegin(asking.key.sandbox)) return Promise.resolve(EXPIRED);
    const waiting = this.#enter(asking);
    return asking.wait ? waiting : Promise.resolve(EXPIRED);
  }

  pending(): readonly PendingApproval[] {
    return [...this.#entries.values()].map(({ pending }) => pending);
  }

  /** Undefined where nothing of this id waits here. The answer is what other processes have to learn. */
  resolve(id: string, resolution: Resolution): PendingApproval | undefined {
    const entry = this.#entries.get(id);
    if (entry === undefined) return undefined;
    this.#options.resolved(entry.pending, resolution);
    // Once, for a client that was sent away: it finds the word here when it comes back.
    const { pending } = entry;
    if (resolution.approve && !pending.waits && resolution.scope.kind === "once")
      this.learn(pending, resolution);
    entry.settle({ kind: resolution.approve ? "approved" : "rejected", by: resolution.by });
    return entry.pending;
  }

  /** A word that came to this process itself: what holds for longer is kept, and spread. */
  hear(id: string, resolution: Resolution): void {
    const resolved = this.resolve(id, resolution);
    if (resolved === undefined || !holds(resolution)) return;
    this.learn(resolved, resolution);
    this.#options.spread?.(resolved, resolution);
  }

  /** Keeps a word for the exchanges to come. */
  learn(key: ApprovalKey, { by, scope }: Resolution): void {
    const until = scope.kind === "time" ? this.#options.now() + scope.ms : Number.POSITIVE_INFINITY;
    if (this.#grants.size >= GRANTS) this.#grants.delete(this.#grants.keys().next().value ?? "");
    this.#grants.set(textOf(key), { sandbox: key.sandbox, by, until, once: scope.kind === "once" });
  }

  /** Another config: words for sandboxes that are gone are gone with them. */
  keepOnly(sandboxes: ReadonlySet<string>): void {
    for (const sandbox of this.#begun.keys()) {
      if (sandbox !== undefined && !sandboxes.has(sandbox)) this.#begun.delete(sandbox);
    }
    for (const [text, { sandbox }] of this.#grants) {
      if (sandbox !== undefined && !sandboxes.has(sandbox)) this.#grants.delete(text);
    }
  }

  /** Nobody is waited for any more. */
  close(): void {
    for (const { settle } of [...this.#entries.values()]) settle(EXPIRED);
  }

  #enter({ key, why, timeoutMs, wait, signal, entered }: Asking): Promise<Outcome> {
    const id = randomBytes(6).toString("hex");
    const since = this.#options.now();
    const pending = { ...key, id, why, since, until: since + timeoutMs, waits: wait };
    const over = new AbortController();
    return new Promise((resolve) => {
      const timer = setTimeout(() => settle(EXPIRED), timeoutMs);
      timer.unref();
      const abandon = (): void => settle(EXPIRED);
      const settle = (outcome: Outcome): void => {
        clearTimeout(timer);
        signal.removeEventListener("abort", abandon);
        this.#entries.delete(id);
        resolve(outcome);
        over.abort();
      };
      // Where nobody waits, the client's leaving changes nothing.
      if (wait) signal.addEventListener("abort", abandon, { once: true });
      this.#entries.set(id, { pending, settle });
      entered?.(pending, over.signal);
    });
  }

  #take(text: string): Grant | undefined {
    const grant = this.#grants.get(text);
    if (grant === undefined) return undefined;
    const over = grant.until <= this.#options.now();
    if (over || grant.once) this.#grants.delete(text);
    return over ? undefined : grant;
  }

  #sameAs(key: ApprovalKey): PendingApproval | undefined {
    const text = textOf(key);
    return this.pending().find((pending) => textOf(pending) === text);
  }

  #mayBegin(sandbox: string | undefined): boolean {
    const now = this.#options.now();
    const recent = (this.#begun.get(sandbox) ?? []).filter((at) => at > now - MINUTE_MS);
    const may = recent.length < BEGUN;
    this.#begun.set(sandbox, may ? [...recent, now] : recent);
    return may;
  }

  #isFull(sandbox: string | undefined): boolean {
    if (this.#entries.size >= PENDING) return true;
    return this.pending().filter((pending) => pending.sandbox === sandbox).length >= PENDING_OF_ONE;
  }
}

/** Whether the word is for exchanges to come as well. */
export function holds({ approve, scope }: Resolution): boolean {
  return approve && scope.kind !== "once";
}

/** One text for equal keys. */
function textOf({ sandbox, rule, host, port, method, path }: ApprovalKey): string {
  return JSON.stringify([sandbox ?? null, rule ?? null, host, port, method, path]);
}
