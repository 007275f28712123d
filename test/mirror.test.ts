import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http2";
import type { Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { parseHostname } from "../src/base/hostname.ts";
import { mirror } from "../src/mirror.ts";
import { Failure } from "../src/model/failure.ts";
import { ask, outside, type Settings } from "./decide/build.ts";
import { createPair, eventually } from "./support/loopback.ts";
import { createWorld, type WorldOptions } from "./support/world.ts";

const BOTH = ["h2", "http/1.1"];
const INSPECTED: Settings = {
  network: {
    allowlist: [{ domain: "a.example", transform: { Authorization: "x" } }, { domain: "t.example" }],
  },
};

async function made(context: TestContext, options: WorldOptions = {}) {
  const world = createWorld(context, INSPECTED, options);
  const { near } = await createPair(context);
  const offer = (alpn: readonly string[], host = "a.example", sent = host) =>
    mirror({ alpn, serverName: parseHostname(sent) }, outside(ask(`https://${host}/`)), near, world.world);
  return { world, client: near, offer };
}

test("mirror: a client that does not offer HTTP/2 leaves nothing to ask", async (context) => {
  const { world, offer } = await made(context);
  for (const alpn of [[], ["http/1.1"], ["spdy/3"]]) {
    assert.deepEqual(await offer(alpn), { offer: ["http/1.1"], websockets: false, trouble: undefined });
  }
  assert.equal(world.origins.length, 0);
});

test("mirror: a refused name is not asked, and the client gets what it likes best", async (context) => {
  const { world, offer } = await made(context);
  assert.deepEqual((await offer(BOTH, "other.example")).offer, ["h2"]);
  assert.deepEqual((await offer(["http/1.1", "h2"], "other.example")).offer, ["http/1.1"]);
  assert.equal(world.origins.length, 0);
});

test("mirror: where two names are claimed, nobody is asked on behalf of the refusal", async (context) => {
  const { world, offer } = await made(context);
  assert.deepEqual((await offer(BOTH, "a.example", "t.example")).offer, ["h2"]);
  assert.equal(world.origins.length, 0);
});

test("mirror: an upstream without HTTP/2 makes the offer HTTP/1.1, or none where that was not offered", async (context) => {
  const { world, offer } = await made(context);
  assert.deepEqual((await offer(BOTH)).offer, ["http/1.1"]);
  assert.deepEqual((await offer(BOTH, "t.example")).offer, ["http/1.1"]);
  assert.equal(world.origins.length, 2);
  assert.deepEqual((await offer(["h2"])).offer, []);
  assert.deepEqual((await offer(BOTH)).offer, ["http/1.1"]);
  assert.equal(world.origins.length, 3, "what was learnt for the same offer is remembered");
});

test("mirror: an upstream with HTTP/2 makes the offer h2, and tells of WebSockets", async (context) => {
  const { world, offer } = await made(context);
  const { near, far } = await createPair(context);
  createServer({ settings: { enableConnectProtocol: true } }).emit("connection", far);
  const secured = Object.assign(near, { alpnProtocol: "h2" });
  near.on("error", () => undefined);
  world.refuse = () => ({ kind: "ready", upstream: secured });
  const { offer: offered, websockets } = await offer(BOTH);
  assert.deepEqual([offered, websockets], [["h2"], true]);
});

test("mirror: what the dial came to is told for a while", async (context) => {
  const { world, offer } = await made(context);
  const denial = { verdict: "deny", reason: "address-not-public", rule: undefined } as const;
  world.refuse = () => ({ kind: "refused", denial });
  const refused = await offer(BOTH);
  assert.deepEqual(refused.offer, ["h2"]);
  assert.deepEqual(refused.trouble?.outcome, { kind: "refused", denial });
  assert.equal(refused.trouble?.force, world.world.inForce());
  assert.ok(Number(refused.trouble?.until) > world.deadlines.now());
  world.refuse = () => {
    throw new Failure("E_CONNECT", "upstream", "down");
  };
  const failed = await offer(BOTH);
  assert.ok(failed.trouble?.outcome instanceof Failure);
});

test("mirror: a fault of the gate's own is no answer", async (context) => {
  const { world, offer } = await made(context);
  world.refuse = () => {
    throw new TypeError("a fault");
  };
  await assert.rejects(offer(BOTH), TypeError);
});

test("mirror: an upstream that takes too long is not waited for, and neither is one whose client left", async (context) => {
  const slow = await made(context, { limits: { alpn_timeout: 20 } });
  const { near } = await createPair(context);
  near.on("error", () => undefined);
  // It chose HTTP/2 and never says a word.
  const silent: Socket = Object.assign(near, { alpnProtocol: "h2" });
  slow.world.refuse = () => ({ kind: "ready", upstream: silent });
  assert.deepEqual(await slow.offer(BOTH), { offer: ["h2"], websockets: false, trouble: undefined });
  const left = await made(context);
  const other = await createPair(context);
  other.near.on("error", () => undefined);
  left.world.refuse = () => ({ kind: "ready", upstream: Object.assign(other.near, { alpnProtocol: "h2" }) });
  const offering = left.offer(BOTH);
  left.client.destroy();
  await once(left.client, "close");
  const { trouble } = await offering;
  await eventually(() => other.near.destroyed);
  assert.ok(trouble?.outcome instanceof Failure && trouble.outcome.code === "E_BAD_HELLO");
});
