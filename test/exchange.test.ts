import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { Http1Connection } from "../src/accept/http1-connection.ts";
import { runExchange } from "../src/exchange.ts";
import type { Door } from "../src/model/arrival.ts";
import { Failure } from "../src/model/failure.ts";
import { ask, type Settings } from "./decide/build.ts";
import { breakOff, createPair, eventually, listenTo, type Peer } from "./support/loopback.ts";
import { createWorld, PEER, type TestWorld, type WorldOptions } from "./support/world.ts";

const KEY = "network.allowlist.a.example.transform.Authorization";
const OPEN: Settings = { network: { allowlist: [{ domain: "a.example" }] } };
const INJECTED: Settings = {
  network: { allowlist: [{ domain: "a.example", transform: { Authorization: "x" } }] },
};
const GET = "GET /x?q HTTP/1.1\r\nHost: a.example\r\n\r\n";
const POST = "POST /x HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n";
const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const HALF = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf";
const HALF_OF_CHUNKS = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n";
const HALF_UNTIL_CLOSE = "HTTP/1.1 200 OK\r\n\r\nhalf";

test("runExchange puts one value on the wire, drops what belongs to a hop, and writes one record", async (context) => {
  const { client, world } = await run(context, INJECTED, { secrets: { [KEY]: "Bearer real" } });
  const sent =
    "Authorization: mine\r\nauthorization: mine\r\nConnection: X-Hop\r\nX-Hop: 1\r\nX-End: 2\r\n\r\n";
  client.send(GET.replace("\r\n\r\n", `\r\n${sent}`));
  const origin = await world.origin(0);
  await origin.until("\r\n\r\n");
  assert.match(origin.text, /^GET \/x\?q HTTP\/1\.1\r\n/);
  assert.deepEqual(origin.text.match(/authorization: .*/gi), ["Authorization: Bearer real"]);
  assert.doesNotMatch(origin.text, /X-Hop/);
  assert.match(origin.text, /X-End: 2\r\n/);
  origin.send(OK.replace("\r\n\r\n", "\r\nKeep-Alive: timeout=5\r\n\r\n"));
  await client.until("ok");
  assert.doesNotMatch(client.text, /Keep-Alive/i);
  const { verdict, reason, rule, injected, status, path, host, bytesIn } = await world.record(0);
  assert.deepEqual(
    [verdict, reason, rule, injected],
    ["allow", "rule-allows", "a.example", ["Authorization"]],
  );
  assert.deepEqual([status, path, host, bytesIn], [200, "/x", "a.example", 2]);
  assert.equal(world.world.live.size, 0);
});

test("runExchange refuses in words and dials nobody", async (context) => {
  const cases: [Settings, WorldOptions, string, number][] = [
    [{ network: { allowlist: [] } }, {}, "no-rule-matched", 403],
    [{ network: "disabled" }, {}, "network-disabled", 403],
    [{ network: { allowlist: [], denylist: [{ domain: "a.example" }] } }, {}, "rule-denies", 403],
    [INJECTED, { secrets: { [KEY]: undefined } }, "secret-unavailable", 403],
    [OPEN, { limits: { connections_per_sandbox: 0 } }, "limit-exceeded", 403],
  ];
  for (const [settings, options, reason, status] of cases) {
    const { client, world } = await run(context, settings, options);
    client.send(GET);
    assert.equal(await client.ended, "end");
    assert.match(client.text, new RegExp(`^HTTP/1\\.1 ${status} .*X-Sallyport-Reason: ${reason}\r\n`, "s"));
    const record = await world.record(0);
    assert.deepEqual([record.verdict, record.reason, record.status], ["deny", reason, status]);
    assert.deepEqual([world.origins.length, world.records.length, record.injected], [0, 1, []]);
  }
});

test("runExchange answers an address refusal and a failed dial, each with its record", async (context) => {
  const refused = await run(context, OPEN);
  const denial = { verdict: "deny", reason: "address-not-public", rule: undefined } as const;
  refused.world.refuse = () => ({ kind: "refused", denial });
  refused.client.send(GET);
  await refused.client.until("address-not-public");
  assert.equal((await refused.world.record(0)).verdict, "deny");
  const failed = await run(context, INJECTED, { secrets: { [KEY]: "Bearer real" } });
  failed.world.refuse = () => {
    throw new Failure("E_RESOLVE", "upstream", "No such name");
  };
  failed.client.send(GET);
  await failed.client.until("X-Sallyport-Failure: E_RESOLVE");
  const { failure, verdict, status, injected } = await failed.world.record(0);
  // Nothing left, so nothing was injected.
  assert.deepEqual([failure, verdict, status, injected], ["E_RESOLVE", "allow", 502, []]);
});

test("runExchange calls what it did not foresee a fault of the gate, and shows none of it", async (context) => {
  const { client, world } = await run(context, OPEN);
  world.refuse = () => {
    throw new TypeError("Something inside");
  };
  client.send(GET);
  assert.equal(await client.ended, "end");
  assert.match(client.text, /^HTTP\/1\.1 500 /);
  assert.doesNotMatch(client.text, /Something inside/);
  assert.equal((await world.record(0)).failure, "E_INTERNAL");
  assert.match(String(world.broken[0]), /Something inside/);
});

test("runExchange tries again where an idle connection turns out stale, and not for a POST", async (context) => {
  for (const method of ["GET", "POST"]) {
    const { client, world } = await run(context, OPEN);
    client.send(GET);
    const first = await world.origin(0);
    first.send(OK);
    await client.until("ok");
    client.send(GET.replace("GET", method).replace("/x?q", "/again"));
    await first.until("/again");
    first.socket.destroy();
    if (method === "POST") await client.until("E_UPSTREAM_PROTOCOL");
    else {
      const second = await world.origin(1);
      await second.until("/again");
      second.send(OK);
      await eventually(() => client.text.split("ok").length > 2);
    }
    const record = await world.record(1);
    assert.deepEqual([record.status, world.records.length], [method === "POST" ? 502 : 200, 2]);
    assert.equal(world.origins.length, method === "POST" ? 1 : 2);
  }
});

test("runExchange resets a client whose answer breaks off, and says 502 where none had begun", async (context) => {
  for (const [answer, ending] of [
    [HALF, "reset"],
    ["", "end"],
  ] as const) {
    const { client, world } = await run(context, OPEN);
    client.send(GET);
    const origin = await world.origin(0);
    await origin.until("\r\n\r\n");
    origin.send(answer);
    if (answer !== "") await client.until("half");
    origin.socket.end();
    assert.equal(await client.ended, ending);
    assert.equal((await world.record(0)).failure, "E_UPSTREAM_PROTOCOL");
    assert.equal(client.text.startsWith("HTTP/1.1 502 "), answer === "");
  }
});

test("runExchange aborts the upstream where the client leaves", async (context) => {
  const { client, world, far } = await run(context, OPEN);
  client.send(`${POST}4\r\nhalf\r\n`);
  const origin = await world.origin(0);
  await origin.until("half");
  breakOff(far);
  await origin.ended;
  assert.doesNotMatch(origin.text, /\r\n0\r\n/);
  const { status, failure } = await world.record(0);
  assert.deepEqual([status, failure], [undefined, undefined]);
});

test("runExchange answers a malformed body once, with one record", async (context) => {
  const { client, world } = await run(context, OPEN);
  client.send(`${POST}4\r\nhalf\r\n`);
  const origin = await world.origin(0);
  await origin.until("half");
  client.send("zz\r\n");
  assert.equal(await client.ended, "end");
  assert.match(client.text, /^HTTP\/1\.1 400 .*E_BAD_REQUEST/s);
  await origin.ended;
  assert.doesNotMatch(origin.text, /\r\n0\r\n/);
  const { status, failure, method } = await world.record(0);
  assert.deepEqual([status, failure, method, world.records.length], [400, "E_BAD_REQUEST", "POST", 1]);
});

test("runExchange decides again what waited while the policy changed", async (context) => {
  const { client, world } = await run(context, OPEN);
  const { near, far } = await createPair(context);
  const upstream = listenTo(far);
  world.refuse = () => {
    world.refuse = undefined;
    world.reload({ network: { allowlist: [] } });
    return { kind: "ready", upstream: near };
  };
  client.send(GET);
  await client.until("no-rule-matched");
  await upstream.ended;
  assert.equal(upstream.text, "");
  assert.equal((await world.record(0)).verdict, "deny");
});

test("runExchange cuts what came of nobody in particular once sandboxes have names", async (context) => {
  const { client, world } = await run(context, OPEN);
  client.send(GET);
  const origin = await world.origin(0);
  await origin.until("GET");
  world.reload({ ...OPEN, sandboxes: [{ id: "box" }] });
  await client.until("identity-unknown");
  assert.deepEqual([(await world.record(0)).reason, world.records.length], ["identity-unknown", 1]);
});

test("runExchange cuts what a new policy refuses, however its body is framed, and records a refusal", async (context) => {
  for (const half of [HALF, HALF_OF_CHUNKS, HALF_UNTIL_CLOSE]) {
    const { client, world } = await run(context, OPEN);
    client.send(GET);
    const origin = await world.origin(0);
    origin.send(half);
    await client.until("half");
    world.reload({ network: { allowlist: [{ domain: "a.example", methods: ["POST"] }] } });
    assert.equal(await client.ended, "reset");
    assert.doesNotMatch(client.text, /\r\n0\r\n/, "what was cut must not look whole");
    await origin.ended;
    const { verdict, reason, status } = await world.record(0);
    assert.deepEqual([verdict, reason, status], ["deny", "no-rule-matched", 200]);
  }
});

test("runExchange cuts what goes to an address that a new policy refuses", async (context) => {
  const { client, world } = await run(context, OPEN);
  client.send(GET);
  const origin = await world.origin(0);
  origin.send(HALF);
  await client.until("half");
  world.reload({ ...OPEN, upstream: { deny_ranges: ["8.8.8.0/24"] } });
  assert.equal(world.world.live.size, 1);
  world.reload({ ...OPEN, upstream: { deny_ranges: [PEER] } });
  assert.equal(await client.ended, "reset");
  await origin.ended;
  const { verdict, reason } = await world.record(0);
  assert.deepEqual([verdict, reason], ["deny", "address-denied"]);
});

test("runExchange serves one exchange after another over one connection", async (context) => {
  const { client, world } = await run(context, OPEN);
  client.send(GET + GET);
  const origin = await world.origin(0);
  origin.send(OK);
  await client.until("ok");
  await eventually(() => origin.text.split("GET ").length === 3);
  origin.send(OK);
  await world.record(1);
  assert.equal(world.origins.length, 1);
});

/** Requests of a client inside the TLS of a CONNECT to a.example. */
async function run(context: TestContext, settings: Settings, options: WorldOptions = {}) {
  const world = createWorld(context, settings, options);
  const { near, far } = await createPair(context);
  const client: Peer = listenTo(far);
  serve(near, world);
  return { world, client, far };
}

function serve(near: Awaited<ReturnType<typeof createPair>>["near"], { world }: TestWorld): void {
  const { client, destination } = ask("https://a.example/");
  const name = destination.kind === "name" ? destination.host : undefined;
  const door: Door = {
    listener: "explicit",
    address: "127.0.0.1",
    tunnel: { client, destination },
    scheme: "https",
    serverName: name,
  };
  const cap = world.caps.open("127.0.0.1");
  assert.ok(cap !== undefined);
  const handlers = {
    request: (arrival: Parameters<typeof runExchange>[0]) => void runExchange(arrival, cap, world),
    malformed: () => undefined,
    closed: () => undefined,
  };
  new Http1Connection({ socket: near, transport: near }, door, handlers, world);
}
