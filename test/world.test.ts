import assert from "node:assert/strict";
import { test } from "node:test";
import type { Arrival } from "../src/accept/arrival.ts";
import { parseIpAddress, parseRange } from "../src/base/ip.ts";
import type { Claims, Door } from "../src/model/arrival.ts";
import type { Template } from "../src/model/config.ts";
import type { Permit } from "../src/model/decision.ts";
import { Failure } from "../src/model/failure.ts";
import type { Inbound } from "../src/model/inbound.ts";
import { createSecrets } from "../src/secrets/secrets.ts";
import {
  ask,
  type InForce,
  identify,
  isStranger,
  parentAuthOf,
  reach,
  renderInjections,
  routeOf,
} from "../src/world.ts";
import { ask as question } from "./decide/build.ts";
import { createWorld } from "./support/world.ts";

const { client, destination } = question("https://a.example/");
const DOOR: Door = {
  listener: "explicit",
  address: "10.80.0.2",
  tunnel: undefined,
  scheme: "http",
  serverName: undefined,
};
const AUTHORITY = { host: { kind: "name", name: nameOf("a.example") }, port: 80 } as const;
const CLAIMS: Claims = { authority: AUTHORITY, host: AUTHORITY, proxyAuthorization: undefined };

test("ask makes a question of a request, and of its outside, which shows no head", (context) => {
  const { world } = createWorld(context, {});
  const seen = ask(arrival(DOOR), "request", world.inForce());
  assert.ok(seen.denial === undefined);
  assert.deepEqual([seen.question.scheme, seen.question.visibility], ["http", "request"]);
  assert.equal(seen.question.request?.target, "/x");
  const outside = ask(arrival(DOOR), "destination", world.inForce());
  assert.ok(outside.denial === undefined);
  assert.deepEqual([outside.question.scheme, outside.question.request], ["https", undefined]);
});

test("ask denies claims that differ, and clear text on the port of TLS inside a tunnel", (context) => {
  const { world } = createWorld(context, {});
  const other = { ...AUTHORITY, host: { kind: "name", name: nameOf("b.example") } } as const;
  const differ = ask(arrival(DOOR, { ...CLAIMS, host: other }), "request", world.inForce());
  assert.equal(differ.denial?.reason, "names-disagree");
  const door: Door = { ...DOOR, tunnel: { client, destination } };
  const claims = { ...CLAIMS, authority: undefined, host: { ...AUTHORITY, port: 443 } };
  const clear = ask(arrival(door, claims), "request", world.inForce());
  assert.equal(clear.denial?.reason, "needs-inspection");
});

test("ask knows a sandbox by its token and its source, and nobody by a wrong one", (context) => {
  const { world } = createWorld(context, {});
  const range = parseRange("10.80.0.2");
  assert.ok(range !== undefined);
  const templates = new Map<string, Template>([["token", [{ kind: "literal", text: "right" }]]]);
  const force: InForce = {
    ...world.inForce(),
    secrets: createSecrets(templates, { env: {}, now: () => 0 }),
    sandboxes: [{ id: "ci-17", source: [range], token: "token", network: { kind: "disabled" } }],
  };
  const basic = (text: string) => `Basic ${Buffer.from(text).toString("base64")}`;
  for (const [sent, sandbox] of [
    [basic("ci-17:right"), "ci-17"],
    [basic("ci-17:wrong"), undefined],
    [basic("other:right"), undefined],
  ]) {
    const asked = ask(arrival(DOOR, { ...CLAIMS, proxyAuthorization: sent }), "request", force);
    assert.equal(asked.client?.sandbox, sandbox);
    assert.equal(asked.denial?.reason, sandbox === undefined ? "identity-unknown" : undefined);
  }
  // Inside a tunnel its client is known, and what a request claims there counts for nothing.
  const inside = { ...DOOR, tunnel: { client, destination: { ...destination, port: 80 } } };
  const asked = ask(arrival(inside, { ...CLAIMS, authority: undefined }), "request", force);
  assert.equal(asked.client, client);
});

test("isStranger tells whoever a reload made somebody else: another token, another source, no sandbox any more", (context) => {
  const { world } = createWorld(context, {});
  const token = (text: string) =>
    createSecrets(new Map<string, Template>([["token", [{ kind: "literal", text }]]]), {
      env: {},
      now: () => 0,
    });
  const at = (range: string) => {
    const source = parseRange(range);
    assert.ok(source !== undefined);
    return { source: [source], network: { kind: "disabled" } } as const;
  };
  const force: InForce = {
    ...world.inForce(),
    secrets: token("right"),
    sandboxes: [{ id: "ci-17", token: "token", ...at("10.80.0.2") }],
  };
  const proxyAuthorization = `Basic ${Buffer.from("ci-17:right").toString("base64")}`;
  const known = identify({ address: DOOR.address, proxyAuthorization }, force);
  assert.ok(known !== undefined);
  assert.equal(JSON.stringify(known).includes("right"), false, "the token itself is not kept");
  const bySource = { sandbox: "ci-17", address: DOOR.address };
  for (const one of [known, bySource]) assert.equal(isStranger(DOOR, one, force), false);
  assert.equal(isStranger(DOOR, known, { ...force, secrets: token("changed") }), true);
  for (const sandboxes of [[], [{ id: "ci-17", token: "token", ...at("10.80.0.9") }]]) {
    for (const one of [known, bySource]) assert.equal(isStranger(DOOR, one, { ...force, sandboxes }), true);
  }
  // What was granted in a tunnel ends with it.
  const door = { ...DOOR, tunnel: { client: known, destination } };
  const asked = ask(arrival(door, { ...CLAIMS, authority: undefined, host: undefined }), "request", {
    ...force,
    secrets: token("changed"),
  });
  assert.equal(asked.denial?.reason, "identity-unknown");
});

test("isStranger asks the gateway's claims anew, and of a door of its own only whether the sandbox is there", (context) => {
  const { world } = createWorld(context, {});
  const box = { id: "box", source: [], token: undefined, network: { kind: "disabled" } } as const;
  const force: InForce = { ...world.inForce(), sandboxes: [box] };
  const address = parseIpAddress("9.9.9.9");
  assert.ok(address !== undefined);
  const boxed = { sandbox: "box", address: "10.80.0.2" };
  const original = { client: boxed, address, port: 443, name: undefined };
  assert.equal(isStranger({ ...DOOR, original }, boxed, force), false);
  assert.equal(isStranger({ ...DOOR, original }, boxed, { ...force, sandboxes: [] }), true);
  for (const [now, stranger] of [
    [boxed, false],
    [{ ...boxed, sandbox: "other" }, true],
    [undefined, true],
  ] as const) {
    const door = { ...DOOR, original: { ...original, identify: () => now } };
    assert.equal(isStranger(door, boxed, force), stranger);
  }
});

test("renderInjections gives values and a generation that changes with them, or denies as a whole", () => {
  const permit = {
    rule: "a-rule",
    injections: [
      { field: "X-One", key: "x-one", secret: "one" },
      { field: "X-Two", key: "x-two", secret: "two" },
    ],
  } as unknown as Permit;
  const both = createSecrets(templatesOf({ one: "1", two: "2" }), { env: {}, now: () => 0 });
  const rendered = renderInjections(permit, both);
  assert.ok(rendered.denial === undefined && rendered.wait === undefined);
  assert.deepEqual(
    rendered.injections.map(({ field, value }) => [field, value]),
    [
      ["X-One", "1"],
      ["X-Two", "2"],
    ],
  );
  // With the secrets' names: two rules of one host share no connection where theirs are different ones.
  assert.match(rendered.generation, /^ one:\d+ two:\d+$/);
  const one = createSecrets(templatesOf({ one: "1" }), { env: {}, now: () => 0 });
  assert.deepEqual(renderInjections(permit, one), {
    denial: { verdict: "deny", reason: "secret-unavailable", rule: "a-rule" },
  });
});

test("parentAuthOf reads what the parent proxy is told at each connection, where it asks for anything", (context) => {
  const { world } = createWorld(context, {});
  const { policy } = world.inForce();
  const secrets = createSecrets(templatesOf({ parent: "user:password" }), { env: {}, now: () => 0 });
  assert.equal(parentAuthOf({ policy, secrets }), undefined);
  const at = { kind: "name", host: "corp-proxy", port: 3128 };
  const parent = { scheme: "http", destination: at, auth: "parent", bypass: [], resolve: "local" };
  const asking = { ...policy, parent } as unknown as InForce["policy"];
  const secret = parentAuthOf({ policy: asking, secrets })?.();
  assert.ok(secret?.ok === true);
  assert.equal(secret.value, "user:password");
});

test("routeOf guards every address by the policy that permitted", (context) => {
  const { world } = createWorld(context, {});
  const permit = { client, destination, scheme: "https", mayReachPrivate: false } as unknown as Permit;
  const { guard } = routeOf(permit, "", world.inForce(), world);
  for (const [text, verdict] of [
    ["203.0.113.1", "deny"],
    ["127.0.0.1", "deny"],
    ["1.1.1.1", "allow"],
  ] as const) {
    const address = parseIpAddress(text);
    assert.ok(address !== undefined);
    assert.equal(guard(address).verdict, verdict, text);
  }
});

test("reach gives its step a signal that is aborted in time, or where the client leaves", async (context) => {
  const { world, limits } = createWorld(context, {});
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const { inbound, leave } = waiting();
  const slow = reach(inbound, world, until);
  context.mock.timers.tick(limits.connect_timeout);
  await assert.rejects(slow, { code: "E_TIMEOUT", fault: "upstream" });
  const lonely = reach(inbound, world, until);
  leave();
  await assert.rejects(lonely, { code: "E_BAD_REQUEST", status: 499 });
});

test("reach passes on what its step brings, and its failure", async (context) => {
  const { world } = createWorld(context, {});
  assert.equal(await reach(waiting().inbound, world, () => Promise.resolve(7)), 7);
  const failure = new Failure("E_RESOLVE", "upstream", "No such name");
  const failing = reach(waiting().inbound, world, () => Promise.reject(failure));
  await assert.rejects(failing, (error) => error === failure);
});

/** Fails, in words of its own, once it is told to stop. */
function until(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(new Error("Stopped")));
  });
}

function waiting() {
  let leave = (): void => undefined;
  const inbound = {
    whenLost(callback: () => void) {
      leave = callback;
    },
  } as Inbound;
  return { inbound, leave: () => leave() };
}

function arrival(door: Door, claims: Claims = CLAIMS): Arrival {
  const head = { method: "GET", target: "/x", minor: 1, fields: [] };
  return { door, claims, inbound: { head } } as unknown as Arrival;
}

function nameOf(text: string) {
  const asked = question(`https://${text}/`).destination;
  assert.ok(asked.kind === "name");
  return asked.host;
}

function templatesOf(values: Readonly<Record<string, string>>) {
  return new Map(
    Object.entries(values).map(([key, text]): [string, Template] => [key, [{ kind: "literal", text }]]),
  );
}
