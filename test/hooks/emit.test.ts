/** The rules of AGENT-HOOKS-0.1 that a host answers for, one by one. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Composition, Emission, Emitted, Interceptor } from "../../src/hooks/emission.ts";
import { emit } from "../../src/hooks/emit.ts";
import type { Json, JsonObject } from "../../src/hooks/jcs.ts";

const DEFAULTS: Composition = {
  profile: "sequential/first_deny",
  onApproval: "stop",
  onTransformConflict: "deny",
  onDisagreement: "deny",
};

function contextOf(target: JsonObject): JsonObject {
  return {
    spec: "agent-hooks/0.1",
    interception_point: "pre_tool_call",
    timestamp: "2026-05-01T12:00:00.000Z",
    sequence: 3,
    agent: { id: "a", framework: "sallyport" },
    session: { id: "s" },
    tool_call: { id: "x-1", name: "http_request", args: target },
    target,
  };
}

interface Scripted extends Interceptor {
  /** The targets that it was shown. */
  readonly seen: Json[];
}

function says(answer: object | string | Error, more: Partial<Interceptor> = {}): Scripted {
  const seen: Json[] = [];
  return {
    name: "scripted",
    timeoutMs: 5_000,
    seen,
    forbids: () => undefined,
    ask(context) {
      const { target, tool_call } = JSON.parse(context);
      assert.deepEqual(tool_call.args, target);
      seen.push(target);
      if (answer instanceof Error) return Promise.reject(answer);
      return Promise.resolve(typeof answer === "string" ? answer : JSON.stringify(answer));
    },
    ...more,
  };
}

const allow = (more: object = {}): Scripted => says({ decision: "allow", ...more });
const deny = (reason: string, more: object = {}): Scripted => says({ decision: "deny", reason, ...more });
const set = (value: Json, path = "$target.a", more: object = {}): Scripted =>
  says({ decision: "transform", transform: { path, value }, ...more });

interface Run extends Partial<Composition> {
  readonly mode?: Emission["mode"];
  readonly target?: JsonObject;
  readonly signal?: AbortSignal;
  readonly consult?: Emission["consult"];
}

function run(interceptors: readonly Interceptor[], options: Run = {}): Promise<Emitted> {
  const { mode = "enforce", target = { a: "old", b: 1 }, signal, consult, ...composition } = options;
  return emit({
    context: contextOf(target),
    interceptors,
    mode,
    composition: { ...DEFAULTS, ...composition },
    signal: signal ?? new AbortController().signal,
    consult,
  });
}

function summary({ verdict, target, record }: Emitted): readonly unknown[] {
  return [verdict.decision, verdict.reason, target, record["decided_by"], record["fold_truncated"]];
}

const OLD = { a: "old", b: 1 };

test("emit: who allows changes nothing, and nobody decided it", async () => {
  const emitted = await run([allow(), allow()]);
  assert.deepEqual(summary(emitted), ["allow", undefined, OLD, null, false]);
  assert.equal(emitted.record["input_identity"], emitted.record["enforced_identity"]);
});

test("emit: first_deny asks nobody after the first denial, liftable or not", async () => {
  for (const more of [{}, { approval: {} }]) {
    const last = allow();
    const emitted = await run([allow(), deny("no", more), last]);
    assert.deepEqual(summary(emitted), ["deny", "no", OLD, 1, true]);
    assert.deepEqual(last.seen, []);
    assert.equal("resolved_by" in emitted.record, false);
  }
});

test("emit: first_deny shows each hook what those before it made of the target", async () => {
  const second = set("two");
  const emitted = await run([set("one"), second, allow()]);
  assert.deepEqual(second.seen, [{ a: "one", b: 1 }]);
  assert.deepEqual(summary(emitted), ["transform", undefined, { a: "two", b: 1 }, 1, false]);
  assert.notEqual(emitted.record["input_identity"], emitted.record["enforced_identity"]);
});

test("emit: a denial after a rewriting leaves the target as it was, and the record with what was seen", async () => {
  const emitted = await run([set("one"), deny("no")]);
  assert.deepEqual(emitted.target, OLD);
  assert.notEqual(emitted.record["input_identity"], emitted.record["enforced_identity"]);
});

test("emit: run_all asks everybody, and the severest wins; of equal denials the first", async () => {
  const last = allow({ warnings: [{ reason: "w" }] });
  const options = { profile: "sequential/run_all" } as const;
  const emitted = await run([deny("ask", { approval: {} }), deny("no"), deny("never"), last], options);
  assert.deepEqual(summary(emitted), ["deny", "no", OLD, 1, false]);
  assert.equal(last.seen.length, 1);
  assert.equal((emitted.record["verdicts"] as readonly unknown[]).length, 4);
  assert.deepEqual(emitted.verdict.warnings, [{ reason: "w", message: undefined }]);
});

for (const profile of ["sequential/first_deny", "sequential/run_all"] as const) {
  test(`emit: ${profile} ends at a rewriting that cannot be done, decided by nobody`, async () => {
    const last = allow();
    const emitted = await run([set("x", "$target.none.deep"), last], { profile });
    assert.deepEqual(summary(emitted), ["deny", "host_error:transform_invalid", OLD, null, true]);
    assert.deepEqual(last.seen, []);
  });
}

test("emit: a rewriting of anything but the target, and one that the host forbids, are denials", async () => {
  const rooted = await run([set("x", "$.session.id")]);
  assert.equal(rooted.verdict.reason, "host_error:transform_target_forbidden");
  const forbidden = says(
    { decision: "transform", transform: { path: "$target.b", value: 2 } },
    { forbids: (path) => (path[0] === "b" ? "transform_target_forbidden" : undefined) },
  );
  assert.equal((await run([forbidden])).verdict.reason, "host_error:transform_target_forbidden");
});

test("emit: the deprecated name of the target is one", async () => {
  assert.deepEqual((await run([set("new", "$policy_target.a")])).target, { a: "new", b: 1 });
});

test("emit: strictest shows everybody the same, and applies a single rewriting", async () => {
  const other = allow();
  const emitted = await run([set("one"), other], { profile: "parallel/strictest" });
  assert.deepEqual(other.seen, [OLD]);
  assert.deepEqual(summary(emitted), ["transform", undefined, { a: "one", b: 1 }, 0, false]);
  const denied = await run([set("one"), deny("no")], { profile: "parallel/strictest" });
  assert.deepEqual(summary(denied), ["deny", "no", OLD, 1, false]);
  assert.equal(denied.record["input_identity"], denied.record["enforced_identity"]);
});

test("emit: under strictest two rewritings are a conflict, which may be for somebody to lift", async () => {
  const both = [set("one"), set("two", "$target.b")];
  const emitted = await run(both, { profile: "parallel/strictest" });
  assert.deepEqual(summary(emitted), ["deny", "host_error:transform_conflict", OLD, null, false]);
  const liftable = await run(both, { profile: "parallel/strictest", onTransformConflict: "approval" });
  assert.deepEqual([liftable.verdict.decision, liftable.verdict.liftable], ["deny", true]);
  const broken = await run([set("x", "$target.none")], { profile: "parallel/strictest" });
  assert.equal(broken.verdict.reason, "host_error:transform_invalid");
});

test("emit: unanimous wants an allowance from everybody", async () => {
  const profile = "parallel/unanimous";
  assert.equal((await run([allow(), allow()], { profile })).verdict.decision, "allow");
  for (const other of [set("x"), deny("no"), says(new Error("broke"))]) {
    const emitted = await run([allow(), other], { profile });
    assert.deepEqual(summary(emitted), ["deny", "host_error:composition_disagreement", OLD, null, false]);
  }
  const liftable = await run([allow(), set("x")], { profile, onDisagreement: "approval" });
  assert.equal(liftable.verdict.liftable, true);
});

const FAILURES: readonly (readonly [what: string, hook: Interceptor, reason: string])[] = [
  ["breaks", says(new Error("secret words")), "host_error:interceptor_failed"],
  ["answers no JSON", says("hello"), "host_error:interceptor_failed"],
  ["answers no verdict", says({ decision: "warn" }), "host_error:verdict_invalid"],
  [
    "never answers",
    says("", { timeoutMs: 30, ask: () => new Promise(() => undefined) }),
    "host_error:interceptor_timeout",
  ],
  [
    "gives up when it is told to",
    says("", {
      timeoutMs: 30,
      ask: (_context, signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => reject(new Error("aborted")));
        }),
    }),
    "host_error:interceptor_timeout",
  ],
];

for (const [what, hook, reason] of FAILURES) {
  test(`emit: a hook that ${what} denies in its own place, in every sequential and parallel profile`, async () => {
    for (const profile of ["sequential/first_deny", "sequential/run_all", "parallel/strictest"] as const) {
      const emitted = await run([allow(), hook, allow()], { profile });
      assert.deepEqual([emitted.verdict.reason, emitted.record["decided_by"]], [reason, 1], profile);
      assert.equal(emitted.verdict.message, undefined);
    }
  });
}

test("emit: nobody waits for a hook whose client has gone", async () => {
  const controller = new AbortController();
  const hook = says("", {
    ask: (_context, signal) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener("abort", () => reject(new Error("aborted")));
      }),
  });
  const running = run([hook], { signal: controller.signal });
  controller.abort();
  assert.equal((await running).verdict.reason, "host_error:interceptor_failed");
});

test("emit: what is only tried out is recorded, and changes nothing", async () => {
  const mode = "evaluate_only";
  const second = allow();
  const emitted = await run([set("new"), second], { mode });
  assert.deepEqual([emitted.target, second.seen], [OLD, [OLD]]);
  assert.deepEqual([emitted.record["mode"], emitted.verdict.decision], [mode, "transform"]);
  assert.equal(emitted.record["input_identity"], emitted.record["enforced_identity"]);
  const parallel = await run([set("new")], { mode, profile: "parallel/strictest" });
  assert.deepEqual(parallel.target, OLD);
  const invalid = await run([set("x", "$target.none")], { mode });
  assert.equal(invalid.verdict.reason, "host_error:transform_invalid");
});

test("emit: warnings of all are united in their order, labels of those who permit, of what goes on alone", async () => {
  const one = allow({ warnings: [{ reason: "a" }, { reason: "b", message: "m" }], result_labels: ["x"] });
  const two = allow({
    warnings: [{ reason: "b", message: "m" }, { reason: "b" }],
    result_labels: ["y", "x"],
  });
  const emitted = await run([one, two]);
  assert.deepEqual(
    emitted.verdict.warnings.map(({ reason, message }) => `${reason} ${message}`),
    ["a undefined", "b m", "b undefined"],
  );
  assert.deepEqual(emitted.verdict.labels, ["x", "y"]);
  const denied = await run([one, deny("no", { result_labels: ["z"] })]);
  assert.deepEqual([denied.verdict.labels, denied.verdict.warnings.length], [[], 2]);
});

test("emit: a context outside the domain is put to nobody, and has no identity", async () => {
  for (const target of [{ a: 2 ** 53 }, { a: "\ud800" }, { a: "x".repeat(6 << 20) }]) {
    const hook = allow();
    const emitted = await run([hook], { target });
    assert.equal(emitted.verdict.reason, "host_error:context_invalid");
    assert.deepEqual(hook.seen, []);
    const { input_identity, enforced_identity, identity_provider } = emitted.record;
    assert.deepEqual([input_identity, enforced_identity, identity_provider], [null, null, "jcs-sha256"]);
  }
});

test("emit: a rewriting that leads out of the domain is a denial without an identity of what was to be done", async () => {
  const emitted = await run([set(2 ** 53)]);
  assert.deepEqual(summary(emitted), ["deny", "host_error:context_invalid", OLD, null, false]);
  assert.equal(typeof emitted.record["input_identity"], "string");
  assert.equal(emitted.record["enforced_identity"], null);
});

test("emit: a hook cannot change what another is shown but by its verdict", async () => {
  const second = allow();
  const first = says("", {
    ask(context) {
      const parsed = JSON.parse(context);
      parsed.target.a = "changed";
      return Promise.resolve('{"decision":"allow"}');
    },
  });
  await run([first, second]);
  assert.deepEqual(second.seen, [OLD]);
});

const yes = (): Promise<boolean> => Promise.resolve(true);
const no = (): Promise<boolean> => Promise.resolve(false);
const liftable = (reason: string): Scripted => deny(reason, { approval: {} });

test("emit: first_deny consults about a denial that may be lifted; approved, it stops, and says that it was cut short", async () => {
  const last = allow();
  const emitted = await run([set("new"), liftable("ask"), last], { consult: yes });
  assert.deepEqual(summary(emitted), ["transform", undefined, { a: "new", b: 1 }, 1, true]);
  assert.deepEqual([emitted.record["resolved_by"], last.seen], ["approval", []]);
  const alone = await run([liftable("ask")], { consult: yes });
  assert.deepEqual(summary(alone), ["allow", undefined, OLD, 0, false]);
});

test("emit: first_deny may resume after an approval, and consults about each later denial in turn", async () => {
  const asked: unknown[] = [];
  const consult = (verdict: { readonly reason: string | undefined }): Promise<boolean> => {
    asked.push(verdict.reason);
    return Promise.resolve(true);
  };
  const options = { consult, onApproval: "resume" } as const;
  const emitted = await run([liftable("one"), liftable("two"), set("new")], options);
  assert.deepEqual(asked, ["one", "two"]);
  assert.deepEqual(summary(emitted), ["transform", undefined, { a: "new", b: 1 }, 1, false]);
  const plain = await run([liftable("one"), deny("no"), allow()], options);
  assert.deepEqual(summary(plain), ["deny", "no", OLD, 1, true]);
  assert.equal(plain.record["resolved_by"], "approval");
});

test("emit: a rejection, and a resolver that breaks, leave the denial standing", async () => {
  for (const consult of [no, () => Promise.reject(new Error("broke"))]) {
    const emitted = await run([liftable("ask"), allow()], { consult });
    assert.deepEqual(summary(emitted), ["deny", "ask", OLD, 0, true]);
    assert.equal(emitted.record["resolved_by"], "rejection");
  }
});

test("emit: nobody is consulted about a plain denial, nor where nothing is enforced", async () => {
  const consult = (): Promise<boolean> => assert.fail("consulted");
  await run([deny("no")], { consult });
  await run([liftable("ask")], { consult, mode: "evaluate_only" });
  await run([liftable("ask"), deny("no")], { consult, profile: "sequential/run_all" });
  await run([liftable("ask"), deny("no")], { consult, profile: "parallel/strictest" });
  await run([allow(), deny("no")], { consult, profile: "parallel/unanimous" });
});

test("emit: the profiles that ask everybody consult once, and an approval lifts all", async () => {
  let times = 0;
  const consult = (): Promise<boolean> => {
    times += 1;
    return Promise.resolve(true);
  };
  const folded = await run([set("new"), liftable("a"), liftable("b")], {
    consult,
    profile: "sequential/run_all",
  });
  assert.deepEqual(summary(folded), ["allow", undefined, { a: "new", b: 1 }, 1, false]);
  const strict = await run([set("new"), liftable("a")], { consult, profile: "parallel/strictest" });
  assert.deepEqual(summary(strict), ["allow", undefined, OLD, 1, false]);
  const conflict = await run([set("one"), set("two")], {
    consult,
    profile: "parallel/strictest",
    onTransformConflict: "approval",
  });
  assert.deepEqual(summary(conflict), ["allow", undefined, OLD, null, false]);
  const options = { profile: "parallel/unanimous", onDisagreement: "approval" } as const;
  assert.equal((await run([allow(), deny("no")], { ...options, consult })).verdict.decision, "allow");
  assert.equal(times, 4);
  const rejected = await run([allow(), deny("no")], { ...options, consult: no });
  assert.deepEqual([rejected.verdict.decision, rejected.record["resolved_by"]], ["deny", "rejection"]);
});
