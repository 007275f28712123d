/** Bodies pass while they are made: in both directions, with their ends and trailers (I01, I05). */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { head, inside } from "../support/ask.ts";
import type { Gate } from "../support/gate.ts";
import { SECRET, startGate } from "../support/gate.ts";
import type { Message } from "../support/message-reader.ts";
import { oneValue, statusOf, valuesOf } from "../support/message-reader.ts";
import type { Connection, Origin } from "../support/origin.ts";
import { createOrigin } from "../support/origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";

const HOST = "api.example.com";

let internet: Internet;
let gate: Gate;
let origin: Origin;
let answer: (request: Message, connection: Connection) => string | undefined = () => undefined;

before(async () => {
  internet = await createInternet();
  internet.dns.set(HOST, { A: [PUBLIC_V4] });
  origin = await createOrigin(internet, { tls: [HOST], bound: true, answer: (...args) => answer(...args) });
  const allowlist = [{ domain: HOST, transform: { Authorization: SECRET } }];
  gate = await startGate(internet, { network: { allowlist } });
});
after(() => internet.close());

describe("a response body", () => {
  test("of events is delivered event by event, not at its end", async () => {
    let socket: Connection["socket"] | undefined;
    answer = (_request, connection) => {
      socket = connection.socket;
      return head("HTTP/1.1 200 OK", "Content-Type: text/event-stream", "Transfer-Encoding: chunked");
    };
    const wire = await inside(internet, gate, HOST);
    wire.write(head("GET /events HTTP/1.1", `Host: ${HOST}`));
    await wire.until("the head, before any body", (text) => text.endsWith("\r\n\r\n"));
    for (const event of ["data: 1\n\n", "data: 2\n\n", "data: 3\n\n"]) {
      const started = performance.now();
      socket?.write(`${event.length.toString(16)}\r\n${event}\r\n`);
      await wire.until(event, (text) => text.includes(event));
      assert.ok(performance.now() - started < 500, "late");
    }
    socket?.write("0\r\n\r\n");
    const message = await wire.response();
    assert.deepEqual([message.body, message.complete], ["data: 1\n\ndata: 2\n\ndata: 3\n\n", true]);
  });

  test("until the close becomes one whose end the client can see", async () => {
    answer = (_request, { socket }) => {
      socket.end(`${head("HTTP/1.1 200 OK", "Connection: close")}until the close`);
      return undefined;
    };
    const wire = await inside(internet, gate, HOST);
    const message = await wire.send(head("GET / HTTP/1.1", `Host: ${HOST}`));
    assert.deepEqual([message.body, message.complete], ["until the close", true]);
  });

  test("in chunks brings its trailers, without those that frame or route", async () => {
    answer = () =>
      head("HTTP/1.1 200 OK", "Transfer-Encoding: chunked", "Trailer: X-Sum, Content-Length") +
      "2\r\nok\r\n0\r\nX-Sum: 7\r\nContent-Length: 9\r\nHost: evil\r\n\r\n";
    const wire = await inside(internet, gate, HOST);
    const message = await wire.send(head("GET / HTTP/1.1", `Host: ${HOST}`, "TE: trailers"));
    assert.deepEqual([message.body, message.trailers], ["ok", [["X-Sum", "7"]]]);
  });

  for (const [what, start, bytes] of [
    ["to HEAD", "HEAD / HTTP/1.1", head("HTTP/1.1 200 OK", "Content-Length: 1234")],
    ["to HEAD in chunks", "HEAD / HTTP/1.1", head("HTTP/1.1 200 OK", "Transfer-Encoding: chunked")],
    ["of 204", "GET / HTTP/1.1", head("HTTP/1.1 204 No Content")],
    [
      "of 304 with a length",
      "GET / HTTP/1.1",
      head("HTTP/1.1 304 Not Modified", "Content-Length: 99", "ETag: x"),
    ],
  ] as const) {
    test(`${what} is none, and the next response follows at once`, async () => {
      answer = () => bytes;
      const wire = await inside(internet, gate, HOST);
      const bodiless = start.startsWith("HEAD");
      for (let count = 0; count < 2; count += 1) {
        const message = await wire.send(head(start, `Host: ${HOST}`), { bodiless });
        assert.equal(message.start, bytes.split("\r\n")[0]);
        if (what === "of 204") assert.deepEqual(valuesOf(message, "transfer-encoding"), []);
      }
      assert.equal(wire.received, "");
    });
  }
});

describe("a request body", () => {
  test("in chunks arrives in chunks, piece by piece, with its trailers", async () => {
    answer = () => head("HTTP/1.1 200 OK", "Content-Length: 0");
    const wire = await inside(internet, gate, HOST);
    wire.write(
      `${head("PUT /piecewise HTTP/1.1", `Host: ${HOST}`, "Transfer-Encoding: chunked")}3\r\none\r\n`,
    );
    const seen = () =>
      origin.connections.find(({ received }) => received.includes("/piecewise"))?.received ?? "";
    await origin.until("the first piece", () => seen().includes("one"));
    wire.write("3\r\ntwo\r\n0\r\nX-Sum: 9\r\n\r\n");
    assert.equal(statusOf(await wire.response()), 200);
    const request = origin.requests.at(-1);
    assert.deepEqual([request?.body, request?.trailers], ["onetwo", [["X-Sum", "9"]]]);
    assert.equal(oneValue(request ?? { fields: [] }, "transfer-encoding"), "chunked");
  });

  test("of GET and of DELETE arrives framed", async () => {
    answer = () => head("HTTP/1.1 200 OK", "Content-Length: 0");
    for (const method of ["GET", "DELETE", "OPTIONS", "PATCH"]) {
      const wire = await inside(internet, gate, HOST);
      await wire.send(`${head(`${method} / HTTP/1.1`, `Host: ${HOST}`, "Content-Length: 5")}hello`);
      assert.deepEqual(
        [origin.requests.at(-1)?.body, origin.requests.at(-1)?.start],
        ["hello", `${method} / HTTP/1.1`],
      );
    }
  });
});
