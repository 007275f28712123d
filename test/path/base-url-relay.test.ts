/** What http-proxy 1.18.1 gets wrong when left alone, each on the wire: framing, path, aborts, cuts, fields, keep-alive. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { head } from "../support/ask.ts";
import { askReverse, dialReverse, OWN_HOST, startHolding } from "../support/base-url.ts";
import type { Gate } from "../support/gate.ts";
import { oneValue, statusOf, valuesOf } from "../support/message-reader.ts";
import type { Connection, Origin } from "../support/origin.ts";
import { respond } from "../support/origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet } from "../support/private-internet.ts";
import type { Wire } from "../support/wire-client.ts";

const HOST = "api.example.com";
const LARGE = 64 * 1_048_576;

let internet: Internet;
let gate: Gate;
let origin: Origin;
let held: Connection[];

before(async () => {
  internet = await createInternet();
  ({ origin, gate, held } = await startHolding(internet, HOST));
});
after(() => internet.close());

/** A request that the origin does not answer by itself, and its connection there. */
async function hold(lines: readonly string[] = []): Promise<{ wire: Wire; upstream: Connection }> {
  held.length = 0;
  const wire = await dialReverse(internet);
  wire.write(head(`GET /${HOST}/held HTTP/1.1`, OWN_HOST, ...lines));
  await origin.until("the request", () => held.length === 1);
  return { wire, upstream: held[0] as Connection };
}

describe("framing: a DELETE in chunks", () => {
  test("arrives in chunks and as one request", async () => {
    const seen = origin.requests.length;
    const lines = ["Transfer-Encoding: chunked"];
    const answer = await askReverse(internet, `DELETE /${HOST}/d`, lines, { body: "3\r\nabc\r\n0\r\n\r\n" });
    assert.equal(statusOf(answer), 200);
    const [request] = origin.requests.slice(seen);
    assert.deepEqual([request?.start, request?.body], ["DELETE /d HTTP/1.1", "abc"]);
    assert.doesNotMatch(request?.head ?? "", /content-length/i);
  });

  test("has its trailers, but for the injected field", async () => {
    const lines = ["Transfer-Encoding: chunked", "Trailer: X-Sum"];
    const body = "3\r\nabc\r\n0\r\nX-Sum: 6\r\nAuthorization: late\r\n\r\n";
    await askReverse(internet, `PUT /${HOST}/trailers`, lines, { body });
    assert.deepEqual(origin.requests.at(-1)?.trailers, [["X-Sum", "6"]]);
  });
});

describe("path: what a URL parser would mend", () => {
  test("is left alone", async () => {
    await askReverse(internet, `GET /${HOST}/a\\..\\b//c`);
    assert.equal(origin.requests.at(-1)?.start, "GET /a\\..\\b//c HTTP/1.1");
  });
});

describe("abort: a client that leaves", () => {
  for (const how of ["reset", "destroy"] as const) {
    test(`in the middle of a download (${how}) frees the upstream's connection`, async () => {
      const pairs: { wire: Wire; upstream: Connection }[] = [];
      for (let count = 0; count < 5; count += 1) {
        const { wire, upstream } = await hold();
        upstream.socket.write(`${head("HTTP/1.1 200 OK", `Content-Length: ${LARGE}`)}begin`);
        await wire.until("the beginning", (text) => text.endsWith("begin"));
        pairs.push({ wire, upstream });
      }
      for (const { wire, upstream } of pairs) {
        wire[how]();
        // An orderly end alone is a client that still wants the rest: what comes next finds nobody.
        upstream.socket.write(Buffer.alloc(1_048_576, "x"));
      }
      await origin.until("the releases", () => pairs.every(({ upstream }) => upstream.closed));
      assert.equal((await gate.metrics()).sum("sallyport_connections", { listener: "reverse" }), 0);
    });
  }

  test("before any answer frees it too, and the record has no status", async () => {
    const { wire, upstream } = await hold();
    wire.reset();
    await origin.until("the release", () => upstream.closed);
    const record = await gate.record({ path: "/held", status: null });
    assert.deepEqual([record["listener"], record["failure"]], ["reverse", null]);
  });

  test("does not read is not read for: the upstream is slowed down", async () => {
    const { wire, upstream } = await hold();
    wire.socket.pause();
    upstream.socket.write(head("HTTP/1.1 200 OK", `Content-Length: ${LARGE}`));
    const piece = Buffer.alloc(1_048_576, "x");
    let written = 0;
    while (written < LARGE && upstream.socket.write(piece)) written += piece.length;
    assert.ok(upstream.socket.writableNeedDrain);
    wire.reset();
    await origin.until("the release", () => upstream.closed);
  });
});

describe("cut: an upstream that dies in the middle of a body", () => {
  for (const [what, lines, part] of [
    ["of a length", ["Content-Length: 100"], "begin"],
    ["in chunks", ["Transfer-Encoding: chunked"], "5\r\nbegin\r\n"],
  ] as const) {
    test(`${what} ends the client by a reset, so that it does not look whole`, async () => {
      const { wire, upstream } = await hold();
      upstream.socket.write(head("HTTP/1.1 200 OK", ...lines) + part);
      await wire.until("the beginning", (text) => text.includes("begin"));
      upstream.reset();
      const answer = await wire.response();
      assert.deepEqual([statusOf(answer), answer.complete, wire.ending], [200, false, "error"]);
    });

    test(`${what} does so for a client of HTTP/1.0, whose body ends with the connection`, async () => {
      held.length = 0;
      const wire = await dialReverse(internet);
      wire.write(head(`GET /${HOST}/held HTTP/1.0`, OWN_HOST));
      await origin.until("the request", () => held.length === 1);
      held[0]?.socket.write(head("HTTP/1.1 200 OK", ...lines) + part);
      await wire.until("the beginning", (text) => text.includes("begin"));
      held[0]?.reset();
      assert.equal(await wire.closed(), "error");
    });
  }

  test("with the end of its connection, in a body of a length, does the same", async () => {
    const { wire, upstream } = await hold();
    upstream.socket.write(`${head("HTTP/1.1 200 OK", "Content-Length: 100")}begin`);
    await wire.until("the beginning", (text) => text.includes("begin"));
    upstream.socket.end();
    const answer = await wire.response();
    assert.deepEqual([statusOf(answer), answer.complete, wire.ending], [200, false, "error"]);
  });
});

describe("fields: what belongs to one hop", () => {
  test("ends there, and so does what Connection names", async () => {
    await askReverse(internet, `GET /${HOST}/hop`, [
      "Connection: close, X-Named, X-Also",
      "X-Named: 1",
      "x-also: 2",
      "X-Kept: 3",
      "Proxy-Authorization: Basic c2VjcmV0",
      "Proxy-Connection: keep-alive",
      "Keep-Alive: timeout=5",
      "TE: trailers",
      "Upgrade: h2c",
      "HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA",
    ]);
    const names = origin.requests.at(-1)?.fields.map(([name]) => name.toLowerCase());
    assert.deepEqual(names, ["host", "x-kept", "authorization"]);
  });

  test("ends there on the way back too", async () => {
    const { wire, upstream } = await hold();
    const lines = [
      "Connection: X-Named, close",
      "X-Named: 1",
      "Proxy-Authenticate: Basic",
      "Alt-Svc: h3",
      "X-Kept: 1",
    ];
    upstream.socket.write(respond("ok", "200 OK", lines));
    const answer = await wire.response();
    assert.deepEqual(
      answer.fields.filter(([name]) => /named|proxy|alt|kept/i.test(name)),
      [["X-Kept", "1"]],
    );
  });
});

describe("keep-alive: connections on both sides", () => {
  test("serve one exchange after the other", async () => {
    await askReverse(internet, `GET /${HOST}/first`);
    const upstreams = origin.connections.length;
    const wire = await dialReverse(internet);
    for (let count = 0; count < 10; count += 1) {
      const answer = await wire.send(head(`GET /${HOST}/${count} HTTP/1.1`, OWN_HOST));
      assert.equal(statusOf(answer), 200);
      assert.notEqual(oneValue(answer, "connection")?.toLowerCase(), "close");
    }
    assert.equal(origin.connections.length, upstreams);
    assert.deepEqual(valuesOf(origin.requests.at(-1) ?? { fields: [] }, "connection"), []);
    wire.destroy();
  });

  test("end where the client asks for it", async () => {
    const wire = await dialReverse(internet);
    const answer = await wire.send(head(`GET /${HOST}/last HTTP/1.1`, OWN_HOST, "Connection: close"));
    assert.equal(oneValue(answer, "connection"), "close");
    assert.equal(await wire.closed(), "end");
  });

  test("end after the answer where the client ends its side first", async () => {
    const { wire, upstream } = await hold();
    wire.end();
    upstream.socket.write(respond("after all"));
    assert.equal((await wire.response()).body, "after all");
    assert.equal(await wire.closed(), "end");
  });
});

describe("Expect: 100-continue", () => {
  test("waits for the upstream's word, and an early answer comes before the body", async () => {
    const lines = ["Content-Length: 5", "Expect: 100-continue"];
    const { wire, upstream } = await holdBody(lines);
    upstream.socket.write("HTTP/1.1 100 Continue\r\n\r\n");
    assert.equal(statusOf(await wire.response()), 100);
    wire.write("hello");
    await origin.until("the body", () => upstream.received.endsWith("hello"));
    upstream.socket.write(respond("taken"));
    assert.equal((await wire.response()).body, "taken");
    const early = await holdBody(lines);
    early.upstream.socket.write(respond("", "413 Content Too Large"));
    assert.equal(statusOf(await early.wire.response({ ms: 1_000 })), 413);
    // The next bytes could be the body that was announced: nothing more is read.
    assert.equal(await early.wire.closed(), "end");
  });
});

/** A request whose body is still to come. */
async function holdBody(lines: readonly string[]): Promise<{ wire: Wire; upstream: Connection }> {
  const path = `/wait-${origin.connections.length}-${performance.now()}`;
  const wire = await dialReverse(internet);
  wire.write(head(`POST /${HOST}${path} HTTP/1.1`, OWN_HOST, ...lines));
  const seen = () => origin.connections.find(({ received }) => received.includes(path));
  await origin.until("the head", () => seen() !== undefined);
  return { wire, upstream: seen() as Connection };
}

describe("large bodies", () => {
  test("pass both ways unchanged", async () => {
    const body = "0123456789abcdef".repeat(65_536);
    const lines = [`Content-Length: ${body.length}`];
    await askReverse(internet, `PUT /${HOST}/large`, lines, { body });
    assert.equal(origin.requests.at(-1)?.body === body, true);
    const { wire, upstream } = await hold();
    upstream.socket.write(respond(body));
    assert.equal((await wire.response()).body === body, true);
  });

  test("of events come one by one, as they are written", async () => {
    const { wire, upstream } = await hold();
    upstream.socket.write(
      head("HTTP/1.1 200 OK", "Content-Type: text/event-stream", "Transfer-Encoding: chunked"),
    );
    await wire.until("the head", (text) => text.endsWith("\r\n\r\n"));
    for (let count = 0; count < 5; count += 1) {
      upstream.socket.write(`9\r\ndata: ${count}\n\n\r\n`);
      await wire.until("the event", (text) => text.includes(`data: ${count}\n\n`));
    }
    wire.destroy();
  });
});
