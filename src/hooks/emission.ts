/** One emission of AGENT-HOOKS-0.1: what is asked, of whom, and what comes of it. Types only. */
import type { HookOptions } from "../model/policy.ts";
import type { Json, JsonObject } from "./jcs.ts";
import type { TargetPath } from "./target-path.ts";
import type { HostReason, Verdict } from "./verdict.ts";

/** Where one can be asked. */
export interface Interceptor {
  readonly name: string;
  readonly timeoutMs: number;
  /** Resolves with what it answered. A rejection is a hook that failed; whatever it says is not shown. */
  ask(context: string, signal: AbortSignal): Promise<string>;
  /** Why it may not write `value` there; undefined where it may. */
  forbids(path: TargetPath, value: Json): HostReason | undefined;
}

/** Section 7.2: a closed set. */
export type Composition = Omit<HookOptions, "mode">;

export interface Emission {
  readonly context: JsonObject;
  readonly interceptors: readonly Interceptor[];
  readonly mode: "enforce" | "evaluate_only";
  readonly composition: Composition;
  /** Aborted: nobody waits for the verdict any more. */
  readonly signal: AbortSignal;
  /** Asks whether a denial that may be lifted shall be (section 9). Absent: nobody can say, and it stands. */
  readonly consult?: ((verdict: Verdict) => Promise<boolean>) | undefined;
}

export interface Emitted {
  /** All verdicts as one. In `evaluate_only` it is an opinion. */
  readonly verdict: Verdict;
  /** What shall be done; the context's own where nothing was rewritten, or may be. */
  readonly target: Json;
  readonly record: JsonObject;
}

/** What a composition came to, before labels and warnings are united. */
export interface Composed {
  /** What was said where somebody was consulted. */
  readonly resolvedBy?: "approval" | "rejection" | undefined;
  readonly verdict: Verdict;
  readonly decidedBy: number | null;
  /** In the order of registration; an entry for each hook that was asked. */
  readonly said: readonly Verdict[];
  /** As the last hook saw it, or as a single transform made it. */
  readonly context: JsonObject;
}
