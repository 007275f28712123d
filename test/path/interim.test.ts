/** Interim responses, and the wait for one before a body is sent (I02, I03). */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { head, inside } from "../support/ask.ts";
import type { Gate } from "../support/gate.ts";
import { startGate } from "../support/gate.ts";
import { oneValue, statusOf } from "../support/message-reader.ts";
import type { Connection, Origin } from "../support/origin.ts";
import { createOrigin } from "../support/origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";

const HOST = "api.example.com";
const EXPECTING = head("PUT / HTTP/1.1", `Host: ${HOST}`, "Content-Length: 5", "Expect: 100-continue");

let internet: Internet;
let gate: Gate;
let far: Origin;

before(async () => {
  internet = await createInternet();
  internet.dns.set(HOST, { A: [PUBLIC_V4] });
  gate = await startGate(internet, { network: { allowlist: [{ domain: HOST, intercept: "always" }] } });
});
after(() => internet.close());

/** An origin that says this as soon as it has got anything. */
async function serve(bytes: string): Promise<void> {
  far?.close();
  const answer = ({ socket }: Connection) => {
    socket.once("data", () => socket.write(bytes));
    socket.on("end", () => socket.end());
  };
  far = await createOrigin(internet, { tls: [HOST], serve: answer });
}

describe("Expect: 100-continue", () => {
  test("the origin's 100 is passed on, and the body follows it", async () => {
    await serve(head("HTTP/1.1 100 Continue"));
    const wire = await inside(internet, gate, HOST);
    assert.equal(statusOf(await wire.send(EXPECTING)), 100);
    wire.write("hello");
    await far.until("the body", () => far.connections.at(-1)?.received.endsWith("hello") === true);
    far.connections.at(-1)?.socket.write(head("HTTP/1.1 201 Created", "Content-Length: 0"));
    assert.equal(statusOf(await wire.response()), 201);
  });

  for (const status of ["417 Expectation Failed", "401 Unauthorized", "413 Content Too Large"]) {
    test(`the origin's ${status} reaches the client before any body, and none follows`, async () => {
      await serve(head(`HTTP/1.1 ${status}`, "Content-Length: 0"));
      const wire = await inside(internet, gate, HOST);
      assert.equal(statusOf(await wire.send(EXPECTING)), Number(status.slice(0, 3)));
      assert.match(far.connections[0]?.received ?? "", /\r\n\r\n$/);
    });
  }

  test("a silent origin is not waited for longer than a moment", async () => {
    await serve("");
    const wire = await inside(internet, gate, HOST);
    assert.equal(statusOf(await wire.send(EXPECTING)), 100);
  });

  test("an early answer to a body that is still on its way arrives, and ends the connection", async () => {
    await serve(head("HTTP/1.1 413 Content Too Large", "Content-Length: 0"));
    const wire = await inside(internet, gate, HOST);
    wire.write(`${head("PUT / HTTP/1.1", `Host: ${HOST}`, "Content-Length: 1000000")}begin`);
    assert.equal(statusOf(await wire.response()), 413);
    await wire.closed();
  });
});

describe("interim responses", () => {
  test("are passed on in order", async () => {
    const hints = ["</a>", "</b>"].map((link) => head("HTTP/1.1 103 Early Hints", `Link: ${link}`));
    await serve(hints.join("") + head("HTTP/1.1 200 OK", "Content-Length: 0"));
    const wire = await inside(internet, gate, HOST);
    wire.write(head("GET / HTTP/1.1", `Host: ${HOST}`));
    const three = [await wire.response(), await wire.response(), await wire.response()];
    assert.deepEqual(three.map(statusOf), [103, 103, 200]);
    assert.equal(oneValue(three[1] ?? { fields: [] }, "link"), "</b>");
  });

  test("without end are cut off as a failure of the upstream", async () => {
    await serve(head("HTTP/1.1 103 Early Hints").repeat(1000));
    const wire = await inside(internet, gate, HOST);
    wire.write(head("GET / HTTP/1.1", `Host: ${HOST}`));
    let message = await wire.response();
    for (let count = 0; count < 1000 && statusOf(message) === 103; count += 1)
      message = await wire.response();
    assert.equal(oneValue(message, "x-sallyport-failure"), "E_UPSTREAM_PROTOCOL");
  });
});
