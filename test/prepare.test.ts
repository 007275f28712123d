/** What comes of a request before anything is dialled: something to send, or a reason to stop. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Arrival } from "../src/accept/arrival.ts";
import { Http1Connection } from "../src/accept/http1-connection.ts";
import type { Door } from "../src/model/arrival.ts";
import { type PendingExchange, prepare } from "../src/prepare.ts";
import { ExchangeDraft } from "../src/record/draft.ts";
import { ask, type Settings } from "./decide/build.ts";
import { createPair } from "./support/loopback.ts";
import { createWorld, type WorldOptions } from "./support/world.ts";

const KEY = "network.allowlist.a.example.transform.Authorization";
const ALLOWED: Settings = {
  network: { allowlist: [{ domain: "a.example", transform: { Authorization: "x" } }] },
};
const SECRETS = { secrets: { [KEY]: "Bearer real" } };

test("prepare: an allowed request is ready, with what is injected in its head and a pool of its secret's", async (context) => {
  const { ready, record } = await prepared(context, ALLOWED, SECRETS);
  assert.ok(ready.stop === undefined);
  const { leg, route } = ready;
  assert.deepEqual(
    leg.head.fields.filter(({ key }) => key === "authorization").map(({ value }) => value),
    ["Bearer real"],
  );
  assert.notEqual(route.poolKey, route.freshKey);
  assert.deepEqual(route.alpn, ["http/1.1"]);
  assert.deepEqual([record.verdict, record.rule], ["allow", "a.example"]);
});

test("prepare: a stream of HTTP/2 offers its upstream both protocols, and takes no CONNECT", async (context) => {
  const { ready } = await prepared(context, ALLOWED, SECRETS, { protocol: "h2", method: "GET" });
  assert.deepEqual(ready.stop === undefined ? ready.route.alpn : ready.stop, ["h2", "http/1.1"]);
  const connect = await prepared(context, ALLOWED, SECRETS, { protocol: "h2", method: "CONNECT" });
  assert.deepEqual([connect.stop?.verdict, reasonOf(connect.stop)], ["deny", "method-refused"]);
});

test("prepare: it stops at what policy refuses, what the caps refuse, and a secret that is not there", async (context) => {
  const cases: [Settings, WorldOptions, string][] = [
    [{ network: { allowlist: [] } }, {}, "no-rule-matched"],
    [ALLOWED, { ...SECRETS, limits: { connections_per_sandbox: 0 } }, "limit-exceeded"],
    [ALLOWED, { secrets: { [KEY]: undefined } }, "secret-unavailable"],
  ];
  for (const [settings, options, reason] of cases) {
    const { stop } = await prepared(context, settings, options);
    assert.deepEqual([stop?.verdict, reasonOf(stop)], ["deny", reason]);
  }
});

test("prepare: where the operator's hooks have a say, it stops to ask, and has decided nothing yet", async (context) => {
  const hooks = [{ domains: ["a.example"], url: "https://policy.example/decide" }];
  const { stop, record } = await prepared(context, { ...ALLOWED, hooks }, SECRETS);
  assert.equal(stop?.verdict, "ask");
  assert.equal(record.rule, undefined);
});

interface Came {
  readonly protocol: "http/1.1" | "h2";
  readonly method: string;
}

async function prepared(
  context: TestContext,
  settings: Settings,
  options: WorldOptions,
  { protocol, method }: Came = { protocol: "http/1.1", method: "GET" },
) {
  const { world } = createWorld(context, settings, options);
  const arrival = changed(await arrive(context, world), { protocol, method });
  const cap = world.caps.open("127.0.0.1");
  assert.ok(cap !== undefined);
  const record = new ExchangeDraft(world.recorder, arrival.door);
  const ready = await prepare(arrival, cap, record, world);
  return { ready, record, stop: ready.stop };
}

function reasonOf(stop: object | undefined): unknown {
  return stop !== undefined && "reason" in stop ? stop.reason : undefined;
}

function changed(arrival: Arrival, { protocol, method }: Came): PendingExchange {
  const inbound = Object.create(arrival.inbound, { protocol: { value: protocol } });
  return { ...arrival, inbound, request: { ...arrival.request, method } };
}

async function arrive(
  context: TestContext,
  world: ReturnType<typeof createWorld>["world"],
): Promise<Arrival> {
  const { near, far } = await createPair(context);
  for (const socket of [near, far]) socket.on("error", () => undefined);
  const { client, destination } = ask("https://a.example/");
  const door: Door = {
    listener: "explicit",
    address: "127.0.0.1",
    tunnel: { client, destination },
    scheme: "https",
    serverName: destination.kind === "name" ? destination.host : undefined,
  };
  return new Promise((resolve) => {
    const handlers = { request: resolve, malformed: () => undefined, closed: () => undefined };
    new Http1Connection({ socket: near, transport: near }, door, handlers, world);
    far.write("GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n");
  });
}
