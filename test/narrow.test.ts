import assert from "node:assert/strict";
import type { Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { runConnection } from "../src/connection.ts";
import { decideExchange } from "../src/decide/decide-exchange.ts";
import type { Allowance } from "../src/model/decision.ts";
import { hasToBeAsked } from "../src/narrow.ts";
import { ask, type Settings } from "./decide/build.ts";
import { breakOff, createPair, eventually, listenTo, type Peer } from "./support/loopback.ts";
import { createWorld, type TestWorld } from "./support/world.ts";

const HOOKS = [{ domains: ["a.example"], url: "https://policy.example/decide" }];
const HOOKED: Settings = { network: { allowlist: [{ domain: "*" }] }, hooks: HOOKS };
const REQUEST = "GET http://a.example/x HTTP/1.1\r\nHost: a.example\r\n\r\n";
const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

interface Run {
  readonly client: Peer;
  /** The client's end. */
  readonly far: Socket;
  readonly world: TestWorld;
}

async function run(context: TestContext, settings: Settings, request = REQUEST): Promise<Run> {
  const world = createWorld(context, settings);
  const { near, far } = await createPair(context);
  const client = listenTo(far);
  runConnection(near, "explicit", world.world);
  client.send(request);
  return { client, far, world };
}

function verdict(value: object): string {
  const body = JSON.stringify(value);
  return `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

/** The hook's server, once it was asked; the connection is the `index`th that was dialled. */
async function asked(world: TestWorld, index: number): Promise<Peer> {
  const hook = await world.origin(index);
  await hook.until("POST /decide HTTP/1.1\r\nHost: policy.example\r\n");
  await hook.until('"path":"/x"');
  return hook;
}

test("narrow asks before anything is dialled for the exchange, and lets it go on", async (context) => {
  const { client, world } = await run(context, HOOKED);
  const hook = await asked(world, 0);
  assert.equal(world.origins.length, 1);
  hook.send(verdict({ decision: "allow" }));
  const origin = await world.origin(1);
  await origin.until("GET /x HTTP/1.1\r\n");
  origin.send(OK);
  await client.until("ok");
  const record = await world.record(0);
  assert.deepEqual([record.verdict, record.reason, record.rule], ["allow", "rule-allows", "*"]);
});

test("narrow turns a hook's no into a refusal, with its words made printable and cut", async (context) => {
  const { client, world } = await run(context, HOOKED);
  const message = `no\u001b[31m${"x".repeat(1_000)}`;
  (await asked(world, 0)).send(verdict({ decision: "deny", message }));
  await client.until("\n");
  await client.until('"detail":"no?[31mxxx');
  assert.match(client.text, /^HTTP\/1\.1 403 /);
  assert.match(client.text, /X-Sallyport-Reason: hook-denied/i);
  const record = await world.record(0);
  assert.deepEqual([record.verdict, record.reason, record.rule], ["deny", "hook-denied", "*"]);
  assert.equal(world.origins.length, 1);
});

for (const answer of [
  "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n",
  "HTTP/1.1 302 Away\r\nContent-Length: 0\r\n\r\n",
  "nonsense\r\n\r\n",
]) {
  test(`narrow refuses where the hook's server answers ${answer.slice(0, 15)}`, async (context) => {
    const { client, world } = await run(context, HOOKED);
    (await asked(world, 0)).send(answer);
    await client.until("host_error:interceptor_failed");
    assert.equal((await world.record(0)).reason, "hook-denied");
  });
}

test("narrow lets the policy decide again that is in force after the wait", async (context) => {
  const { client, world } = await run(context, HOOKED);
  const hook = await asked(world, 0);
  world.reload({ network: { allowlist: [] } });
  hook.send(verdict({ decision: "allow" }));
  await client.until("no-rule-matched");
  assert.equal(world.origins.length, 1);
});

test("narrow asks anew under another policy that has hooks", async (context) => {
  const { client, world } = await run(context, HOOKED);
  const hook = await asked(world, 0);
  world.reload({ ...HOOKED });
  hook.send(verdict({ decision: "allow" }));
  // The generation is the same here, so the connection is too.
  await eventually(() => hook.text.split("POST /decide").length === 3);
  hook.send(verdict({ decision: "deny" }));
  await client.until("hook-denied");
});

test("narrow gives up with a client that goes away, and so does the hook's connection", async (context) => {
  const { far, world } = await run(context, HOOKED);
  const hook = await asked(world, 0);
  breakOff(far);
  await hook.ended;
  const record = await world.record(0);
  assert.deepEqual([record.status, record.failure], [undefined, undefined]);
  assert.equal(world.origins.length, 1);
});

test("narrow in evaluate_only lets a hook's no pass as an opinion", async (context) => {
  const { client, world } = await run(context, { ...HOOKED, mode: "evaluate_only" });
  (await asked(world, 0)).send(verdict({ decision: "deny" }));
  const origin = await world.origin(1);
  await origin.until("GET /x");
  origin.send(OK);
  await client.until("ok");
  const record = await world.record(0);
  assert.deepEqual([record.verdict, record.reason, record.would], ["allow", "hook-denied", "deny"]);
});

test("narrow is asked about a tunnel that stays shut, and again under a policy that came meanwhile", async (context) => {
  const shut: Settings = {
    network: { allowlist: [{ domain: "a.example", intercept: "never" }] },
    hooks: HOOKS,
  };
  const connect = "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n";
  const { client, world } = await run(context, shut, connect);
  const hook = await world.origin(0);
  await hook.until('"method":"CONNECT"');
  world.reload({ ...shut });
  hook.send(verdict({ decision: "allow" }));
  await eventually(() => hook.text.split("POST /decide").length === 3);
  assert.equal(client.text, "");
  hook.send(verdict({ decision: "deny", reason: "no" }));
  await client.until("403 Blocked (hook-denied)");
  assert.equal(world.origins.length, 1);
});

test("narrow waits for a person where an entry says so, and decides again after the wait", async (context) => {
  const approve: Settings = { network: { allowlist: [{ domain: "a.example", approve: true }] } };
  const { client, world } = await run(context, approve);
  const { approvals } = world.world;
  await eventually(() => approvals.pending().length === 1);
  const [pending] = approvals.pending();
  assert.deepEqual([pending?.host, pending?.path, pending?.method], ["a.example", "/x", "GET"]);
  assert.equal(world.origins.length, 0);
  world.reload({ network: { allowlist: [] } });
  approvals.resolve(pending?.id ?? "", { approve: true, by: "ada", scope: { kind: "once" } });
  await client.until("no-rule-matched");
  assert.equal(world.origins.length, 0);
});

test("narrow sends a client's exchange on once a person approved it, and forgets one whose client left", async (context) => {
  const approve: Settings = { network: { allowlist: [{ domain: "a.example", approve: true }] } };
  const { client, world } = await run(context, approve);
  const { approvals } = world.world;
  await eventually(() => approvals.pending().length === 1);
  approvals.resolve(approvals.pending()[0]?.id ?? "", { approve: true, by: "ada", scope: { kind: "once" } });
  const origin = await world.origin(0);
  await origin.until("GET /x");
  origin.send(OK);
  await client.until("ok");
  const left = await run(context, approve);
  await eventually(() => left.world.world.approvals.pending().length === 1);
  breakOff(left.far);
  await eventually(() => left.world.world.approvals.pending().length === 0);
});

test("hasToBeAsked: only what a hook covers, or a person has to approve, is put to anybody", (context) => {
  const force = createWorld(context, HOOKED).world.inForce();
  const allowed = (url: string) => decideExchange(ask(url), force.policy) as Allowance;
  assert.equal(hasToBeAsked(ask("https://a.example/"), allowed("https://a.example/"), force), true);
  assert.equal(hasToBeAsked(ask("https://b.example/"), allowed("https://b.example/"), force), false);
  const approve = { ...allowed("https://b.example/"), approve: true } as const;
  assert.equal(hasToBeAsked(ask("https://b.example/"), approve, force), true);
});
