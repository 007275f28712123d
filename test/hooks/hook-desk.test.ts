import assert from "node:assert/strict";
import { test } from "node:test";
import { createHookDesk, type HookDesk, type HookOrder } from "../../src/hooks/hook-desk.ts";
import type { HookSource } from "../../src/model/policy.ts";
import type { ExchangeRecord } from "../../src/model/record.ts";
import { ask } from "../decide/build.ts";
import { eventually } from "../support/loopback.ts";

interface TestDesk {
  readonly desk: HookDesk;
  readonly lines: string[];
  readonly failures: string[];
}

function createDesk(): TestDesk {
  const lines: string[] = [];
  const failures: string[] = [];
  const env = { PATH: "/usr/bin:/bin", TOKEN: "secret", HOME: "/srv/x" };
  const write = (line: string): void => void lines.push(line);
  const failed = (...words: readonly string[]): void => void failures.push(words.join(": "));
  return { desk: createHookDesk({ session: "s", env, write, failed, now: () => 0 }), lines, failures };
}

function sh(script: string, more: Partial<HookSource> = {}): HookSource {
  return {
    name: "hook",
    domains: [],
    timeout: 5_000,
    maySet: [],
    points: ["pre_tool_call"],
    handler: { kind: "command", command: ["/bin/sh", "-c", script] },
    ...more,
  };
}

function order(hooks: readonly HookSource[], more: Partial<HookOrder> = {}): HookOrder {
  return {
    hooks,
    options: {
      mode: "enforce",
      profile: "sequential/first_deny",
      onApproval: "stop",
      onTransformConflict: "deny",
      onDisagreement: "deny",
    },
    question: ask("https://api.example.com/a"),
    injected: [],
    post: () => Promise.reject(new Error("not asked")),
    consult: undefined,
    signal: new AbortController().signal,
    ...more,
  };
}

const TRANSFORM = `echo '{"decision":"transform","transform":{"path":"$target.headers.X-Trace","value":"t"}}'`;

test("createHookDesk: a program gets the context, an environment without secrets, and its verdict counts", async () => {
  const { desk, lines } = createDesk();
  const script = `grep -q http_request && [ -z "$TOKEN" ] && [ "$HOME" = /srv/x ] && echo '{"decision":"allow"}'`;
  const answer = await desk.ask(order([sh(script)]));
  assert.deepEqual([answer.verdict.decision, answer.settings, answer.after], ["allow", [], undefined]);
  assert.equal(JSON.parse(lines[0] ?? "").sequence, 0);
});

test("createHookDesk: a server is asked through whoever dials, and its answer counts", async () => {
  const { desk } = createDesk();
  const handler = {
    kind: "http",
    scheme: "https",
    destination: ask("https://policy.example.com/").destination,
    target: "/",
  } as const;
  const post: HookOrder["post"] = (asked, body) => {
    assert.equal(asked, handler);
    assert.equal(JSON.parse(body).interception_point, "pre_tool_call");
    return Promise.resolve('{"decision":"deny","reason":"no"}');
  };
  assert.equal((await desk.ask(order([sh("", { handler })], { post }))).verdict.reason, "no");
});

test("createHookDesk: a field is set where the hook may, and never one that is injected", async () => {
  const { desk } = createDesk();
  const hook = sh(TRANSFORM, { maySet: ["X-Trace"] });
  assert.deepEqual((await desk.ask(order([hook]))).settings, [
    { field: "X-Trace", key: "x-trace", value: "t" },
  ]);
  const injected = await desk.ask(order([hook], { injected: ["x-trace"] }));
  assert.equal(injected.verdict.reason, "host_error:transform_target_forbidden");
  const other = await desk.ask(order([sh(TRANSFORM), hook]));
  assert.equal(other.verdict.reason, "host_error:transform_target_forbidden");
});

test("createHookDesk: whoever wants the outcome is told, by the arguments as they were sent", async () => {
  const { desk, lines } = createDesk();
  const hook = sh(`cat >&2; echo '{"decision":"deny","message":"too late \\u00e9"}'`, {
    points: ["post_tool_call"],
  });
  const answer = await desk.ask(order([hook]));
  assert.deepEqual([answer.verdict.decision, lines], ["allow", []]);
  answer.after?.({ verdict: "allow", bytesIn: 1, bytesOut: 2, durationMs: 3 } as ExchangeRecord);
  await eventually(() => lines.length === 1);
  assert.match(lines[0] ?? "", /^[\x20-\x7e]+\n$/);
  const record = JSON.parse(lines[0] ?? "");
  assert.deepEqual(
    [record.mode, record.verdict.message, record.interception_point],
    ["evaluate_only", "too late é", "post_tool_call"],
  );
});

test("createHookDesk: closing ends what still runs, and waits for its record", async () => {
  const { desk, lines } = createDesk();
  const answer = await desk.ask(order([sh("sleep 60", { points: ["post_tool_call"], timeout: 60_000 })]));
  answer.after?.({ verdict: "allow", bytesIn: 1, bytesOut: 2, durationMs: 3 } as ExchangeRecord);
  await desk.close();
  assert.equal(JSON.parse(lines[0] ?? "").verdict.reason, "host_error:interceptor_failed");
  answer.after?.({ verdict: "allow" } as ExchangeRecord);
  assert.equal(lines.length, 1);
});

test("createHookDesk: a hundred at once are asked in turn", async () => {
  const { desk, lines } = createDesk();
  const hook = sh(`echo '{"decision":"allow"}'`, { timeout: 30_000 });
  const answers = await Promise.all(Array.from({ length: 100 }, () => desk.ask(order([hook]))));
  assert.ok(answers.every(({ verdict }) => verdict.decision === "allow"));
  const sequences = lines.map((line) => JSON.parse(line).sequence as number).toSorted((a, b) => a - b);
  assert.deepEqual(
    sequences,
    Array.from({ length: 100 }, (_, index) => index),
  );
});

test("createHookDesk: the operator is told what went wrong with a hook, and what it said itself", async () => {
  const { desk, failures } = createDesk();
  const handler = {
    kind: "http",
    scheme: "https",
    destination: ask("https://policy.example.com/").destination,
    target: "/",
  } as const;
  for (const hook of [
    sh("echo oops >&2; exit 3"),
    sh("echo '{}'"),
    sh("sleep 60", { timeout: 100 }),
    sh("", { handler }),
  ]) {
    assert.equal((await desk.ask(order([hook]))).verdict.decision, "deny");
  }
  await eventually(() => failures.length === 4);
  assert.deepEqual(failures.map((line) => line.trim()).toSorted(), [
    "hook: ended with exit status 3: oops",
    "hook: gave no valid verdict:",
    "hook: not asked:",
    failures.find((line) => line.includes("waited for") || line.includes("within"))?.trim(),
  ]);
});
