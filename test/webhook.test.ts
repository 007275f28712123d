import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Outcome } from "../src/hooks/approvals.ts";
import type { ApprovalWebhook } from "../src/model/policy.ts";
import { tellWebhook } from "../src/webhook.ts";
import { ask } from "./decide/build.ts";
import { eventually, type Peer } from "./support/loopback.ts";
import { createWorld, type TestWorld } from "./support/world.ts";

const WEBHOOK: ApprovalWebhook = {
  endpoint: {
    kind: "http",
    scheme: "https",
    destination: ask("https://hook.example/").destination,
    target: "/ask",
  },
  secret: undefined,
  timeout: 30_000,
};
const KEY = { sandbox: undefined, rule: "api", host: "a.example", port: 443, method: "GET", path: "/x" };

interface Run extends TestWorld {
  /** What became of the exchange that waits. */
  readonly outcome: Promise<Outcome>;
}

function run(context: TestContext, webhook: ApprovalWebhook | undefined, secret?: string): Run {
  const secrets = { "approvals.webhook.secret": secret };
  const made = createWorld(context, webhook === undefined ? {} : { approvals: { webhook } }, { secrets });
  const { world } = made;
  context.after(() => world.approvals.close());
  const outcome = world.approvals.ask({
    key: KEY,
    why: undefined,
    timeoutMs: 30_000,
    wait: true,
    signal: new AbortController().signal,
    entered: (pending, over) => void tellWebhook(pending, over, { force: world.inForce(), world }),
  });
  return { ...made, outcome };
}

async function asked(made: Run): Promise<Peer> {
  const peer = await made.origin(0);
  await peer.until('"waits":true}');
  return peer;
}

function reply(body: string, status = "200 OK"): string {
  return `HTTP/1.1 ${status}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

test("tellWebhook signs what it sends, and its answer is the word", async (context) => {
  const made = run(context, { ...WEBHOOK, secret: "approvals.webhook.secret" }, "a-secret-of-the-tests");
  const peer = await asked(made);
  assert.match(peer.text, /^POST \/ask HTTP\/1\.1\r\nHost: hook\.example\r\n/);
  assert.match(peer.text, /\r\nX-Sallyport-Signature: sha256=[0-9a-f]{64}\r\n/);
  assert.doesNotMatch(peer.text, /a-secret-of-the-tests/);
  peer.send(reply('{"decision":"approve","by":"ada"}'));
  assert.deepEqual(await made.outcome, { kind: "approved", by: "ada" });
  assert.deepEqual(made.webhookProblems, []);
});

test("tellWebhook: a no is a no", async (context) => {
  const made = run(context, WEBHOOK);
  const peer = await asked(made);
  assert.doesNotMatch(peer.text, /Signature/);
  peer.send(reply('{"decision":"deny"}'));
  assert.deepEqual(await made.outcome, { kind: "rejected", by: "webhook" });
});

for (const [what, send, problem] of [
  ["a later word", reply("", "202 Accepted"), undefined],
  ["a failure", reply("", "500 No"), "It gave no word that can be read (status 500)"],
  ["nonsense", "nonsense\r\n\r\n", "The upstream's answer is no HTTP/1"],
] as const) {
  test(`tellWebhook: ${what} leaves it waiting for another way to give the word`, async (context) => {
    const made = run(context, WEBHOOK);
    const peer = await asked(made);
    peer.send(send);
    if (problem !== undefined) await eventually(() => made.webhookProblems.length > 0);
    assert.deepEqual(made.webhookProblems, problem === undefined ? [] : [made.webhookProblems[0]]);
    const [pending] = made.world.approvals.pending();
    made.world.approvals.resolve(pending?.id ?? "", {
      approve: true,
      by: "bob",
      scope: { kind: "once" },
    });
    assert.deepEqual(await made.outcome, { kind: "approved", by: "bob" });
  });
}

test("tellWebhook tells of an answer that takes too long", async (context) => {
  const made = run(context, { ...WEBHOOK, timeout: 50 });
  await asked(made);
  await eventually(() => made.webhookProblems.length > 0);
  assert.deepEqual(made.webhookProblems, ["It did not answer in time"]);
  assert.equal(made.world.approvals.pending().length, 1);
});

test("tellWebhook breaks off, and says nothing, once somebody else gave the word", async (context) => {
  const made = run(context, WEBHOOK);
  const peer = await asked(made);
  const [pending] = made.world.approvals.pending();
  made.world.approvals.resolve(pending?.id ?? "", { approve: true, by: "bob", scope: { kind: "once" } });
  await peer.ended;
  assert.deepEqual(made.webhookProblems, []);
});

test("tellWebhook asks nobody while its secret cannot be had, or where there is none to ask", async (context) => {
  const made = run(context, { ...WEBHOOK, secret: "approvals.webhook.secret" });
  assert.deepEqual(made.webhookProblems, ["Its secret cannot be had, so it was not asked"]);
  const none = run(context, undefined);
  assert.deepEqual([none.webhookProblems, none.origins, made.origins], [[], [], []]);
});
