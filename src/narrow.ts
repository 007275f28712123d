/** Puts an exchange that policy allows to the operator's hooks, which may make less of it and never more. */
import { findHooks } from "./decide/find-hooks.ts";
import { narrowDecision, remarkDenial } from "./decide/narrow-decision.ts";
import { postJson } from "./errand.ts";
import type { ApprovalKey, Asking, Outcome } from "./hooks/approvals.ts";
import type { HookAnswer } from "./hooks/hook-desk.ts";

import { nameOf } from "./identify/identify-destination.ts";
import type { Allowance, Decision } from "./model/decision.ts";
import type { Question } from "./model/exchange.ts";
import { Failure } from "./model/failure.ts";
import type { HookSource, HttpEndpoint } from "./model/policy.ts";
import type { ExchangeDraft } from "./record/draft.ts";
import type { Setting } from "./transform/set-fields.ts";
import { tellWebhook } from "./webhook.ts";
import type { InForce, World } from "./world.ts";

export interface Narrowing {
  readonly verdict: "ask";
  readonly question: Question;
  readonly allowance: Allowance;
  readonly force: InForce;
  /** Tells once that nobody waits any more. */
  readonly inbound: { whenLost(callback: () => void): void };
}

export interface Narrowed {
  /** The policy whose hooks were asked: under another they are asked again. */
  readonly force: InForce;
  readonly decision: Decision;
  readonly settings: readonly Setting[];
}

type Entered = NonNullable<Asking["entered"]>;

const MAX_DETAIL = 200;

/** Whether anybody has to be asked at all; it costs nothing where the config has no hooks. */
export function hasToBeAsked(
  { destination }: Question,
  { approve }: Allowance,
  { policy }: InForce,
): boolean {
  return approve === true || findHooks(destination, policy).length > 0;
}

/** Rejects with a Failure where the client went away meanwhile. */
export async function narrow(narrowing: Narrowing, record: ExchangeDraft, world: World): Promise<Narrowed> {
  const { question, allowance, force, inbound } = narrowing;
  const lost = new AbortController();
  inbound.whenLost(() => lost.abort());
  const started = performance.now();
  const hooks = findHooks(question.destination, force.policy).map(
    (index) => force.hooks[index] as HookSource,
  );
  const person = personFor(narrowing, lost.signal, world);
  const answer = await world.hooks.ask({
    hooks,
    options: { ...force.hookOptions, mode: modeOf(force) },
    question,
    injected: allowance.permit.injections.map(({ key }) => key),
    post: (handler, body, signal) => askHook(handler, body, signal, { force, world }),
    consult: force.approvals.possible
      ? ({ message, reason }) => person.approves(message ?? reason)
      : undefined,
    signal: lost.signal,
  });
  const decision = (await decisionOf(answer, narrowing, person)) ?? allowance;
  record.waited(performance.now() - started);
  if (lost.signal.aborted) {
    throw new Failure("E_BAD_REQUEST", "client", "The client went away", { status: 499 });
  }
  if (decision.verdict === "allow") record.whenWritten = answer.after;
  return { force, decision, settings: answer.settings };
}

/** Whoever approves; asked at most once for an exchange, since one word is for all of it. */
interface Person {
  approves(why: string | undefined): Promise<boolean>;
  outcome: Outcome | undefined;
}

function personFor({ question, allowance, force }: Narrowing, signal: AbortSignal, world: World): Person {
  const person: Person = {
    outcome: undefined,
    async approves(why) {
      const { timeout: timeoutMs, wait } = force.approvals;
      const key = keyOf(question, allowance);
      const entered: Entered = (pending, over) => void tellWebhook(pending, over, { force, world });
      person.outcome ??= await world.approvals.ask({ key, why, timeoutMs, wait, signal, entered });
      return person.outcome.kind === "approved";
    },
  };
  return person;
}

function keyOf({ client, destination, request }: Question, { permit }: Allowance): ApprovalKey {
  const [path = null] = request === undefined ? [] : request.target.split("?", 1);
  return {
    sandbox: client.sandbox,
    rule: permit.rule,
    host: nameOf(destination),
    port: destination.port,
    method: request?.method ?? "CONNECT",
    path,
  };
}

/** Where policy itself is only tried out, so are its hooks. */
function modeOf({ policy, hookOptions }: InForce): "enforce" | "evaluate_only" {
  return policy.mode === "evaluate_only" ? "evaluate_only" : hookOptions.mode;
}

/** Undefined where nothing stands against the allowance. */
async function decisionOf(
  { verdict }: HookAnswer,
  { question, allowance, force }: Narrowing,
  person: Person,
): Promise<Decision | undefined> {
  const { policy, hookOptions } = force;
  const triedOut = policy.mode === "enforce" && hookOptions.mode === "evaluate_only";
  const denied = verdict.decision === "deny";
  if (denied && !triedOut) {
    const reason = person.outcome?.kind === "expired" ? "approval-timeout" : "hook-denied";
    const detail = (verdict.message ?? verdict.reason)?.slice(0, MAX_DETAIL);
    return explained(narrowDecision(question, allowance, policy, reason), detail);
  }
  const unopposed = denied ? remarkDenial(allowance) : undefined;
  if (allowance.approve !== true) return unopposed;
  // What is only tried out waits for nobody, and nothing waits where there is nobody.
  const asks = policy.mode === "enforce" && force.approvals.possible;
  const approved = asks && (await person.approves(undefined));
  if (approved) return unopposed;
  const reason = person.outcome?.kind === "rejected" ? "rule-denies" : "approval-timeout";
  return narrowDecision(question, allowance, policy, reason);
}

function explained(decision: Decision, detail: string | undefined): Decision {
  return decision.verdict === "allow" || detail === undefined ? decision : { ...decision, detail };
}

async function askHook(
  endpoint: HttpEndpoint,
  body: string,
  signal: AbortSignal,
  around: { readonly force: InForce; readonly world: World },
): Promise<string> {
  const answer = await postJson({ endpoint, body, fields: [] }, signal, around);
  if (answer.status >= 200 && answer.status <= 299) return answer.text;
  throw new Failure("E_HOOK", "operator", `The hook answered with status ${answer.status}`);
}
