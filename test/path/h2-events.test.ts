/** Events of an HTTP/2 stream leave as they arrive: none is held back until the next. */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { ServerHttp2Stream } from "node:http2";
import { after, before, test } from "node:test";
import { SECRET, startGate } from "../support/gate.ts";
import { openH2 } from "../support/h2-client.ts";
import { createH2Origin } from "../support/h2-origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";

const HOST = "events.example.com";

let internet: Internet;
let upstream: ServerHttp2Stream | undefined;

before(async () => {
  internet = await createInternet();
  internet.dns.set(HOST, { A: [PUBLIC_V4] });
  await createH2Origin(internet, {
    names: [HOST],
    bound: true,
    serve(stream) {
      upstream = stream;
      stream.respond({ ":status": 200, "content-type": "text/event-stream" });
    },
  });
});
after(() => internet.close());

test("each event arrives before the origin writes the next, with a secret injected", async () => {
  const gate = await startGate(internet, {
    network: { allowlist: [{ domain: HOST, transform: { Authorization: SECRET } }] },
  });
  const client = await openH2(internet, gate, HOST);
  const stream = client.open([":path", "/events"], true);
  await once(stream, "response");
  for (const event of ["data: 1\n\n", "data: 2\n\n", "data: 3\n\n"]) {
    upstream?.write(event);
    const [bytes] = (await once(stream, "data")) as [Buffer];
    assert.equal(String(bytes), event);
  }
  client.session.destroy();
});
