import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { parseRange } from "../../src/base/ip.ts";
import { openWay } from "../../src/forward/open.ts";
import type { HandedOver, HandOverDecision } from "../../src/model/decision.ts";
import type { Route } from "../../src/model/leg.ts";
import type { AddressRange, BypassSource } from "../../src/model/policy.ts";
import { NOT_PUBLIC, type Parted, parted, type RouteOptions, routeTo } from "./parent-harness.ts";

const NEVER = new AbortController().signal;
const LOOPBACK: BypassSource = { kind: "range", range: parseRange("127.0.0.0/8") as AddressRange };

test("openWay dials a vetted address where there is no parent proxy, and nothing that is refused", async (context) => {
  const { port, parts, heard } = await parted(context);
  const opened = await openWay(routeTo("a.example", { port }), parts, NEVER);
  assert.ok(opened.kind === "ready");
  context.after(() => opened.upstream.socket.destroy());
  assert.equal(opened.upstream.peer?.text, "127.0.0.1");
  assert.equal(heard[0]?.text ?? "", "");
  const refused = await openWay(routeTo("a.example", { port, refused: ["127.0.0.1"] }), parts, NEVER);
  assert.deepEqual(refused, { kind: "refused", denial: NOT_PUBLIC });
});

test("openWay has the parent proxy asked for what was vetted here", async (context) => {
  const made = await parted(context, { addresses: ["11.0.0.9", "11.0.0.1"] });
  const opened = await open(context, made, routeTo("a.example", { refused: ["11.0.0.9"] }));
  assert.ok(opened.kind === "ready");
  assert.equal(opened.upstream.peer?.text, "11.0.0.1");
  assert.deepEqual(made.resolved, ["a.example"]);
  const all = { refused: ["11.0.0.9", "11.0.0.1"] };
  assert.deepEqual(await open(context, made, routeTo("a.example", all)), {
    kind: "refused",
    denial: NOT_PUBLIC,
  });
  assert.equal(made.heard.length, 1);
});

test("openWay hands a name over where that is decided, and looks nothing up", async (context) => {
  const made = await parted(context, { source: { resolve: "parent" } });
  const handed = { host: "a.example", port: 443 } as HandedOver;
  const handOver = (): HandOverDecision => ({ verdict: "allow", handed });
  const opened = await open(context, made, routeTo("a.example", { handOver }));
  assert.ok(opened.kind === "ready");
  assert.deepEqual(made.resolved, []);
  const cases: readonly RouteOptions[] = [{}, { handOver: () => NOT_PUBLIC }];
  for (const options of cases) {
    const refused = await open(context, made, routeTo("a.example", options));
    assert.deepEqual(refused, { kind: "refused", denial: NOT_PUBLIC });
  }
  assert.equal(made.heard.length, 1);
});

test("openWay goes past the parent proxy by name, and by the address that a name has", async (context) => {
  for (const bypass of [[{ kind: "any" }], [LOOPBACK]] as const) {
    const made = await parted(context, { source: { bypass } });
    const opened = await open(context, made, routeTo("a.example", { port: made.port }));
    assert.ok(opened.kind === "ready");
    assert.equal(opened.upstream.socket.remotePort, made.port);
    assert.equal(made.heard[0]?.text ?? "", "", "nothing is asked for");
  }
});

async function open(context: TestContext, { parent, parts }: Parted, route: Route) {
  const opened = await openWay(route, { ...parts, parent }, NEVER);
  if (opened.kind === "ready") context.after(() => opened.upstream.socket.destroy());
  return opened;
}
