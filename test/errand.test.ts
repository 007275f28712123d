import assert from "node:assert/strict";
import { test } from "node:test";
import { parseIpAddress } from "../src/base/ip.ts";
import { get, postJson } from "../src/errand.ts";
import type { HttpEndpoint } from "../src/model/policy.ts";
import { ask, known } from "./decide/build.ts";
import { createWorld } from "./support/world.ts";

const NAMED: HttpEndpoint = {
  kind: "http",
  scheme: "https",
  destination: ask("https://hook.example:8443/").destination,
  target: "/x?y",
};
const LITERAL: HttpEndpoint = {
  kind: "http",
  scheme: "http",
  destination: { kind: "address", address: known(parseIpAddress("::1"), "::1"), port: 80 },
  target: "/",
};

test("postJson posts the body under the endpoint's name, and resolves with what came back", async (context) => {
  const { world, origin } = createWorld(context, {});
  const around = { force: world.inForce(), world };
  for (const [endpoint, start] of [
    [NAMED, "POST /x?y HTTP/1.1\r\nHost: hook.example:8443\r\n"],
    [LITERAL, "POST / HTTP/1.1\r\nHost: [::1]\r\n"],
  ] as const) {
    const posting = postJson(
      { endpoint, body: '{"a":1}', fields: [["X-More", "yes"]] },
      new AbortController().signal,
      around,
    );
    const peer = await origin(endpoint === NAMED ? 0 : 1);
    await peer.until('{"a":1}');
    assert.ok(peer.text.startsWith(start), peer.text);
    assert.match(peer.text, /\r\nX-More: yes\r\n/);
    assert.match(peer.text, /\r\nContent-Length: 7\r\n/i);
    peer.send("HTTP/1.1 418 No\r\nContent-Length: 2\r\n\r\nok");
    assert.deepEqual(await posting, { status: 418, text: "ok" });
  }
});

test("get asks without a body and without a length", async (context) => {
  const { world, origin } = createWorld(context, {});
  const order = { endpoint: LITERAL, fields: [["X-More", "yes"]] } as const;
  const getting = get(order, new AbortController().signal, { force: world.inForce(), world });
  const peer = await origin(0);
  await peer.until("\r\n\r\n");
  assert.ok(peer.text.startsWith("GET / HTTP/1.1\r\nHost: [::1]\r\n"), peer.text);
  assert.match(peer.text, /\r\nX-More: yes\r\n/);
  assert.doesNotMatch(peer.text, /Content-Length|Transfer-Encoding/i);
  peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  assert.deepEqual(await getting, { status: 200, text: "ok" });
});
