/** A reload that gives sandboxes their names leaves nobody in who has none (L20). */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { head, inside } from "../support/ask.ts";
import type { Gate } from "../support/gate.ts";
import { fromEnv, SECRET, startGate } from "../support/gate.ts";
import { statusOf } from "../support/message-reader.ts";
import type { Origin } from "../support/origin.ts";
import { createOrigin } from "../support/origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";
import { dialThrough } from "../support/wire-client.ts";

const SEEN = "seen.example.com";
const TUNNEL = "tunnel.example.com";
const GET = head("GET / HTTP/1.1", `Host: ${SEEN}`);

let internet: Internet;
let gate: Gate;
let origin: Origin;
const network = { allowlist: [{ domain: SEEN, transform: { Authorization: SECRET } }, { domain: TUNNEL }] };

before(async () => {
  internet = await createInternet();
  for (const name of [SEEN, TUNNEL]) internet.dns.set(name, { A: [PUBLIC_V4] });
  origin = await createOrigin(internet, { tls: [SEEN, TUNNEL], bound: true });
  gate = await startGate(internet, { network }, { env: { TOKEN: "of-one-sandbox-alone" } });
});
after(() => internet.close());

test("connections of before are cut, looked into or not, and nothing more of theirs leaves", async () => {
  const seen = await inside(internet, gate, SEEN);
  assert.equal(statusOf(await seen.send(GET)), 200);
  const tunnel = await dialThrough(internet, `${TUNNEL}:443`, { ca: internet.authority.certPem });
  assert.equal(statusOf(await tunnel.send(head("GET / HTTP/1.1", `Host: ${TUNNEL}`))), 200);
  const sandbox = { id: "a", token: fromEnv("TOKEN"), network };
  await gate.reload({ network, sandboxes: [sandbox] });
  await Promise.all([seen.closed(), tunnel.closed()]);
  assert.equal(origin.requests.length, 2);
  await gate.record({ host: TUNNEL, reason: "identity-unknown" });
});
