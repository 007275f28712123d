import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { type TestContext, test } from "node:test";
import { loadConfigText } from "../src/config/load.ts";
import type { Config } from "../src/model/config.ts";
import type { Permit } from "../src/model/decision.ts";
import { openOutward } from "../src/outward.ts";
import { routeOf } from "../src/world.ts";
import { ask } from "./decide/build.ts";
import { around } from "./support/loopback.ts";
import { createWorld } from "./support/world.ts";

const DNS = "dns: { servers: [192.0.2.53], hosts: { corp-proxy: [192.0.2.7] } }";

test("openOutward names what the gate itself connects to, and its operator's pages", (context) => {
  const { endpoints } = open(
    context,
    config(`upstream: { ${DNS} }\nlisten: { proxy: "127.0.0.1:8080", admin: "127.0.0.1:9090" }`),
  );
  assert.deepEqual(endpoints(), ["192.0.2.53 53", "127.0.0.1 9090"]);
  assert.equal(endpoints(), endpoints(), "the same list as long as nothing changes");
});

test("openOutward adds a parent proxy once it was found", async (context) => {
  const parent = createServer((socket) => socket.destroy()).listen(0, "127.0.0.1");
  context.after(() => parent.close());
  await once(parent, "listening");
  const { port } = parent.address() as AddressInfo;
  const outward = open(context, config(`upstream: { ${DNS}, proxy: { url: "http://127.0.0.1:${port}" } }`));
  const fixed = outward.endpoints();
  const { world } = createWorld(context, {});
  const { client, destination } = ask("https://1.1.1.1/");
  const permit = { client, destination, scheme: "https", mayReachPrivate: false } as unknown as Permit;
  const route = routeOf(permit, "", world.inForce(), world);
  await assert.rejects(outward.forwarder.open(route, AbortSignal.timeout(5_000)));
  assert.deepEqual(outward.endpoints(), [...fixed, `127.0.0.1 ${port}`]);
  assert.equal(outward.endpoints(), outward.endpoints());
});

test("openOutward takes up nothing where a file of the config cannot be used", (context) => {
  const good = config(`upstream: { ${DNS} }`);
  const upstream = { ...good.upstream, caFile: "/nowhere/absent.pem" };
  assert.throws(() => open(context, { ...good, upstream }), { code: "E_CONFIG" });
});

function open(context: TestContext, config: Config) {
  const outward = openOutward(config, {
    ...around(),
    now: () => performance.now(),
    onConnected: () => undefined,
  });
  context.after(() => outward.forwarder.close());
  return outward;
}

function config(text: string): Config {
  const loaded = loadConfigText(
    `version: 1\nnetwork: { allowlist: [] }\n${text}\n`,
    "/nowhere/sallyport.yaml",
    1,
  );
  assert.ok(loaded.ok, JSON.stringify(loaded));
  return loaded.config;
}
