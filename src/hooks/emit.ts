/** One emission of AGENT-HOOKS-0.1: asks the hooks about one context, and composes what they say. Fails closed. */
import { contextIdentity, fits, withTarget } from "./agent-context.ts";
import type { Composed, Emission, Emitted, Interceptor } from "./emission.ts";
import { emissionRecord } from "./interception-record.ts";
import type { JsonObject } from "./jcs.ts";
import { parseTargetPath, setAt } from "./target-path.ts";
import {
  ALLOW,
  type HostReason,
  hostDenial,
  readVerdict,
  severity,
  type Verdict,
  type Warning,
} from "./verdict.ts";

/** Never rejects. */
export async function emit(emission: Emission): Promise<Emitted> {
  const { context, mode } = emission;
  const inputIdentity = fits(JSON.stringify(context)) ? contextIdentity(context) : undefined;
  if (inputIdentity === undefined) return finish(emission, refusedContext(context), null, null);
  const composed = await consultOnce(emission, await compose(emission));
  const changed = mode === "enforce" && composed.context !== context;
  const enforced = changed ? contextIdentity(composed.context) : inputIdentity;
  if (enforced === undefined) {
    const verdict = hostDenial("context_invalid");
    return finish(emission, { ...composed, verdict, decidedBy: null }, inputIdentity, null);
  }
  return finish(emission, composed, inputIdentity, enforced);
}

function finish(
  emission: Emission,
  composed: Composed,
  inputIdentity: string | null,
  enforcedIdentity: string | null,
): Emitted {
  const verdict = { ...composed.verdict, ...unions(composed) };
  const proceeds = emission.mode === "enforce" && verdict.decision !== "deny";
  return {
    verdict,
    target: (proceeds ? composed.context : emission.context)["target"] ?? null,
    record: emissionRecord(emission, { ...composed, verdict }, inputIdentity, enforcedIdentity),
  };
}

function refusedContext(context: JsonObject): Composed {
  return { verdict: hostDenial("context_invalid"), decidedBy: null, said: [], context };
}

function compose(emission: Emission): Promise<Composed> {
  switch (emission.composition.profile) {
    case "sequential/first_deny":
      return inTurn(emission, true);
    case "sequential/run_all":
      return inTurn(emission, false);
    case "parallel/strictest":
      return atOnce(emission, strictest);
    case "parallel/unanimous":
      return atOnce(emission, unanimous);
  }
}

/** Of a sequential profile, on the way. */
interface Fold {
  readonly said: Verdict[];
  /** What each verdict counts as: a denial that was lifted is none. */
  readonly standing: Verdict[];
  context: JsonObject;
  lifted: Pick<Composed, "decidedBy" | "resolvedBy"> | undefined;
}

/** Each sees what those before it made of the target. */
async function inTurn(emission: Emission, stopAtDenial: boolean): Promise<Composed> {
  const fold: Fold = { said: [], standing: [], context: emission.context, lifted: undefined };
  for (const interceptor of emission.interceptors) {
    const verdict = await askOne(interceptor, fold.context, emission.signal);
    fold.said.push(verdict);
    let end: Composed | undefined;
    if (verdict.decision === "transform") end = rewrite(fold, interceptor, verdict, emission);
    else if (stopAtDenial && verdict.decision === "deny") end = await stopOrLift(fold, verdict, emission);
    else fold.standing.push(verdict);
    if (end !== undefined) return end;
  }
  return endOf(fold);
}

/** The end where it cannot be done. */
function rewrite(
  fold: Fold,
  interceptor: Interceptor,
  verdict: Verdict,
  { mode }: Emission,
): Composed | undefined {
  const applied = apply(interceptor, fold.context, verdict);
  if (typeof applied === "string") return { ...fold, verdict: hostDenial(applied), decidedBy: null };
  if (mode === "enforce") fold.context = applied;
  fold.standing.push(verdict);
  return undefined;
}

/** The end, unless the denial was lifted and the rest shall be asked. */
async function stopOrLift(fold: Fold, verdict: Verdict, emission: Emission): Promise<Composed | undefined> {
  const resolvedBy = await consult(emission, verdict);
  const decidedBy = fold.said.length - 1;
  if (resolvedBy !== "approval") {
    return { ...fold, verdict, decidedBy, resolvedBy: resolvedBy ?? fold.lifted?.resolvedBy };
  }
  fold.standing.push(ALLOW);
  fold.lifted = { decidedBy, resolvedBy };
  return emission.composition.onApproval === "stop" ? endOf(fold) : undefined;
}

/** The last transform stands for all of them: it was made on top of the others. */
function endOf(fold: Fold): Composed {
  return { ...fold, ...winner(fold.standing, "last"), ...fold.lifted };
}

/** Undefined where nobody is asked: the denial may not be lifted, nobody is there, or nothing is enforced. */
async function consult(
  { mode, consult: ask }: Emission,
  verdict: Verdict,
): Promise<"approval" | "rejection" | undefined> {
  if (!verdict.liftable || mode !== "enforce" || ask === undefined) return undefined;
  return (await ask(verdict).catch(() => false)) ? "approval" : "rejection";
}

/** In the profiles that ask everybody: where what won may be lifted, no plain denial stands beside it. */
async function consultOnce(emission: Emission, composed: Composed): Promise<Composed> {
  if (emission.composition.profile === "sequential/first_deny") return composed;
  const resolvedBy = await consult(emission, composed.verdict);
  if (resolvedBy === undefined) return composed;
  return resolvedBy === "approval"
    ? { ...composed, verdict: ALLOW, resolvedBy }
    : { ...composed, resolvedBy };
}

type Aggregate = (said: readonly Verdict[], emission: Emission) => Omit<Composed, "said">;

/** All are asked about the same context, and none sees what another made of it. */
async function atOnce(emission: Emission, aggregate: Aggregate): Promise<Composed> {
  const { interceptors, context, signal } = emission;
  const said = await Promise.all(interceptors.map((one) => askOne(one, context, signal)));
  return { ...aggregate(said, emission), said };
}

function strictest(said: readonly Verdict[], emission: Emission): Omit<Composed, "said"> {
  const { context, composition, interceptors, mode } = emission;
  const won = winner(said, "first");
  if (won.verdict.decision !== "transform") return { ...won, context };
  if (said.filter(({ decision }) => decision === "transform").length > 1) {
    const liftable = composition.onTransformConflict === "approval";
    return { verdict: hostDenial("transform_conflict", liftable), decidedBy: null, context };
  }
  const applied = apply(interceptors[won.decidedBy ?? 0] as Interceptor, context, won.verdict);
  if (typeof applied === "string") return { verdict: hostDenial(applied), decidedBy: null, context };
  return { ...won, context: mode === "enforce" ? applied : context };
}

function unanimous(said: readonly Verdict[], { context, composition }: Emission): Omit<Composed, "said"> {
  if (said.every(({ decision }) => decision === "allow")) return { verdict: ALLOW, decidedBy: null, context };
  const liftable = composition.onDisagreement === "approval";
  return { verdict: hostDenial("composition_disagreement", liftable), decidedBy: null, context };
}

/** The severest; of denials the first, of transforms the one that `tie` says. Nobody decides a plain allow. */
function winner(
  said: readonly Verdict[],
  tie: "first" | "last",
): { readonly verdict: Verdict; readonly decidedBy: number | null } {
  const worst = Math.max(0, ...said.map(severity));
  const index =
    worst === 1 && tie === "last"
      ? said.findLastIndex((verdict) => severity(verdict) === worst)
      : said.findIndex((verdict) => severity(verdict) === worst);
  const verdict = said[index];
  return verdict === undefined || worst === 0
    ? { verdict: ALLOW, decidedBy: null }
    : { verdict, decidedBy: index };
}

/** The context as the transform makes it, or why it may not. */
function apply(interceptor: Interceptor, context: JsonObject, verdict: Verdict): JsonObject | HostReason {
  const { path: text = "", value = null } = verdict.transform ?? {};
  const parsed = parseTargetPath(text);
  if (!parsed.ok) return parsed.reason;
  const target = setAt(context["target"] ?? null, parsed.path, value);
  if (target === undefined) return "transform_invalid";
  return interceptor.forbids(parsed.path, value) ?? withTarget(context, target);
}

/** A verdict from every hook, whatever it does. */
async function askOne(interceptor: Interceptor, context: JsonObject, signal: AbortSignal): Promise<Verdict> {
  const clock = new AbortController();
  const timer = setTimeout(() => clock.abort(), interceptor.timeoutMs);
  const late = new Promise<undefined>((resolve) => {
    clock.signal.addEventListener("abort", () => resolve(undefined), { once: true });
  });
  try {
    const asked = interceptor.ask(JSON.stringify(context), AbortSignal.any([signal, clock.signal]));
    const text = await Promise.race([asked, late]);
    return text === undefined ? hostDenial("interceptor_timeout") : readVerdict(text);
  } catch {
    return hostDenial(clock.signal.aborted ? "interceptor_timeout" : "interceptor_failed");
  } finally {
    clearTimeout(timer);
    clock.abort();
  }
}

/** Section 7.3: warnings of all, labels of those who permit; of what does not proceed there are no labels. */
function unions({ verdict, said }: Composed): Pick<Verdict, "warnings" | "labels"> {
  const warnings = new Map<string, Warning>();
  for (const warning of said.flatMap((one) => one.warnings)) {
    const key = JSON.stringify([warning.reason, warning.message]);
    if (!warnings.has(key)) warnings.set(key, warning);
  }
  const permits = said.filter(({ decision }) => decision !== "deny");
  const labels = verdict.decision === "deny" ? [] : permits.flatMap((one) => one.labels);
  return { warnings: [...warnings.values()], labels: [...new Set(labels)] };
}
