/** Asking the upstream what it speaks is for names that policy admits: a refusal asks nobody. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { head } from "../support/ask.ts";
import type { Gate } from "../support/gate.ts";
import { startGate } from "../support/gate.ts";
import { statusOf } from "../support/message-reader.ts";
import type { Packets } from "../support/packets.ts";
import { watchPackets } from "../support/packets.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";
import { dialThrough } from "../support/wire-client.ts";

const HOST = "api.example.com";
const BOTH = ["h2", "http/1.1"];

let internet: Internet;
let gate: Gate;
let packets: Packets;

before(async () => {
  internet = await createInternet();
  internet.dns.set(HOST, { A: [PUBLIC_V4] });
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the config's own syntax
  const transform = { Authorization: "Bearer ${env:SECRET}" };
  gate = await startGate(internet, { network: { allowlist: [{ domain: HOST, transform }] } });
  packets = await watchPackets(internet);
});
after(() => internet.close());

describe("a client that offers HTTP/2", () => {
  for (const servername of ["other.example.com", `x.${HOST}`]) {
    test(`and says ${servername} within a CONNECT to ${HOST} is refused, and no packet leaves`, async () => {
      await packets.take();
      const tls = { ca: gate.ca, servername, ALPNProtocols: ["http/1.1", "h2"] };
      const wire = await dialThrough(internet, `${HOST}:443`, tls);
      const answer = await wire.send(head("GET / HTTP/1.1", `Host: ${servername}`));
      assert.equal(statusOf(answer), 421);
      assert.deepEqual(await packets.take(), []);
    });
  }

  test("and says the name of the CONNECT has the upstream asked, once", async () => {
    await packets.take();
    const wire = await dialThrough(internet, `${HOST}:443`, { ca: gate.ca, ALPNProtocols: BOTH });
    wire.destroy();
    assert.notDeepEqual(await packets.take(), []);
  });
});
