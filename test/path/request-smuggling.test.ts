/** The base-URL door never makes two requests of one: what http-proxy 1.18.1 did (CVE-2026-29057), and what readers disagree on. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { head } from "../support/ask.ts";
import { SECRET, startGate } from "../support/gate.ts";
import { statusOf, valuesOf } from "../support/message-reader.ts";
import type { Origin } from "../support/origin.ts";
import { createOrigin } from "../support/origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";
import type { Wire } from "../support/wire-client.ts";
import { dial } from "../support/wire-client.ts";

const HOST = "api.example.com";
const PORT = 8081;
const OWN = `Host: 127.0.0.1:${PORT}`;
const SMUGGLED = `GET /${HOST}/smuggled HTTP/1.1\r\n${OWN}\r\n\r\n`;
const UPSTREAM = `GET /smuggled HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`;

let internet: Internet;
let origin: Origin;

before(async () => {
  internet = await createInternet();
  internet.dns.set(HOST, { A: [PUBLIC_V4] });
  origin = await createOrigin(internet, { tls: [HOST], bound: true });
  const allowlist = [{ domain: HOST, transform: { Authorization: SECRET } }];
  await startGate(internet, {
    listen: { reverse: `127.0.0.1:${PORT}`, admin: "127.0.0.1:9464" },
    network: { allowlist },
  });
});
after(() => internet.close());

function open(): Promise<Wire> {
  return dial(internet, { port: PORT });
}

function chunked(text: string): string {
  return `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`;
}

describe("a chunked body that looks like a request", () => {
  for (const method of ["DELETE", "OPTIONS", "GET", "POST", "PUT", "PATCH", "QUERY"]) {
    test(`stays the body of a ${method}, which keeps its framing`, async () => {
      const before = origin.requests.length;
      const wire = await open();
      const start = head(`${method} /${HOST}/outer HTTP/1.1`, OWN, "Transfer-Encoding: chunked");
      assert.equal(statusOf(await wire.send(start + chunked(UPSTREAM))), 200);
      // A second exchange on the same connections: had the body been left over, it would be read before this.
      assert.equal(statusOf(await wire.send(head(`GET /${HOST}/after HTTP/1.1`, OWN))), 200);
      const seen = origin.requests.slice(before);
      assert.deepEqual(
        seen.map(({ start: line }) => line),
        [`${method} /outer HTTP/1.1`, "GET /after HTTP/1.1"],
      );
      assert.equal(seen[0]?.body, UPSTREAM);
      assert.deepEqual(valuesOf(seen[0] ?? { fields: [] }, "transfer-encoding"), ["chunked"]);
      assert.deepEqual(valuesOf(seen[0] ?? { fields: [] }, "content-length"), []);
    });

    test(`stays the body of a ${method} of that length`, async () => {
      const before = origin.requests.length;
      const wire = await open();
      const start = head(`${method} /${HOST}/outer HTTP/1.1`, OWN, `Content-Length: ${UPSTREAM.length}`);
      assert.equal(statusOf(await wire.send(start + UPSTREAM)), 200);
      const seen = origin.requests.slice(before);
      assert.deepEqual([seen.length, seen[0]?.body], [1, UPSTREAM]);
      assert.deepEqual(valuesOf(seen[0] ?? { fields: [] }, "transfer-encoding"), []);
    });
  }

  for (const method of ["DELETE", "OPTIONS", "POST", "GET"]) {
    test(`a ${method} without a body declares none, or none of any length`, async () => {
      const before = origin.requests.length;
      const wire = await open();
      assert.equal(statusOf(await wire.send(head(`${method} /${HOST}/bare HTTP/1.1`, OWN))), 200);
      assert.equal(statusOf(await wire.send(head(`GET /${HOST}/after HTTP/1.1`, OWN))), 200);
      const [seen = { fields: [] }] = origin.requests.slice(before);
      assert.deepEqual(valuesOf(seen, "transfer-encoding"), []);
      assert.ok(["", "0"].includes(valuesOf(seen, "content-length").join()));
    });
  }
});

/** `START` stands for the request line and Host, `VERSION` for the request line up to its version. */
const MALFORMED: Readonly<Record<string, string>> = {
  "Content-Length and Transfer-Encoding": `${head("START", "Content-Length: 5", "Transfer-Encoding: chunked")}0\r\n\r\n`,
  "Transfer-Encoding and Content-Length": `${head("START", "Transfer-Encoding: chunked", "Content-Length: 5")}0\r\n\r\n`,
  "two lengths that differ": `${head("START", "Content-Length: 5", "Content-Length: 6")}hello!`,
  "two lengths that agree": `${head("START", "Content-Length: 5", "Content-Length: 5")}hello`,
  "a length with a plus": `${head("START", "Content-Length: +5")}hello`,
  "an empty length": head("START", "Content-Length:"),
  "a length of two to the 64": head("START", "Content-Length: 18446744073709551616"),
  "a transfer coding before chunked": `${head("START", "Transfer-Encoding: gzip, chunked")}0\r\n\r\n`,
  "a transfer coding after chunked": `${head("START", "Transfer-Encoding: chunked, identity")}0\r\n\r\n`,
  "an unknown transfer coding": `${head("START", "Transfer-Encoding: xchunked")}0\r\n\r\n`,
  "chunked twice": `${head("START", "Transfer-Encoding: chunked", "Transfer-Encoding: chunked")}0\r\n\r\n`,
  "a folded field": head("START", "X: 1", " Authorization: stolen"),
  "a blank before a colon": `${head("START", "Content-Length : 5")}hello`,
  "bare line feeds": head("START", "X: 1").replaceAll("\r\n", "\n"),
  "a bare carriage return in a value": head("START", "X: a\rContent-Length: 5"),
  "a NUL in a value": head("START", "X: a\0b"),
  "an empty field name": head("START", ": x"),
  "a field name with a blank": head("START", "X Y: 1"),
  "two Hosts": head("START", OWN),
  "a Host of another form": `VERSION HTTP/1.1\r\nHost: a@127.0.0.1:${PORT}\r\n\r\n`,
  "no Host": "VERSION HTTP/1.1\r\n\r\n",
  "a nomination of Host": head("START", "Connection: host"),
  "a nomination of Content-Length": `${head("START", "Connection: content-length", "Content-Length: 5")}hello`,
  "an unknown version": `VERSION HTTP/1.2\r\n${OWN}\r\n\r\n`,
  "HTTP/0.9 with fields": `VERSION\r\n${OWN}\r\n\r\n`,
  "HTTP/0.9 without a version and a line feed": `VERSION\nHost: a\r\nContent-Length: 5\r\n\r\nhello`,
  "the preface of HTTP/2": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
  "Transfer-Encoding in HTTP/1.0": `VERSION HTTP/1.0\r\n${OWN}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  "a method that is none": head(`G@T /${HOST}/ HTTP/1.1`, OWN),
  "an absolute target": head(`GET http://${HOST}/ HTTP/1.1`, `Host: ${HOST}`),
  "an authority target": head(`CONNECT ${HOST}:443 HTTP/1.1`, `Host: ${HOST}:443`),
  "an asterisk": head("OPTIONS * HTTP/1.1", OWN),
  "no host in the path": head("GET / HTTP/1.1", OWN),
  "an empty first segment": head(`GET //${HOST}/ HTTP/1.1`, OWN),
  "a user before the host": head(`GET /u@${HOST}/ HTTP/1.1`, OWN),
  "an escape in the host": head("GET /api.example%2ecom/ HTTP/1.1", OWN),
  "an unknown expectation": head("START", "Expect: the-impossible"),
};

describe("a request at the base-URL door", () => {
  for (const [what, text] of Object.entries(MALFORMED)) {
    test(`with ${what} is answered once, closed, and nothing arrives`, async () => {
      const before = origin.requests.length;
      const wire = await open();
      const bytes = text
        .replace("START", `POST /${HOST}/ HTTP/1.1\r\n${OWN}`)
        .replace("VERSION", `POST /${HOST}/`);
      const answer = await wire.send(bytes + SMUGGLED);
      assert.ok(
        [400, 417, 501, 505].includes(statusOf(answer)),
        `${answer.start} for ${JSON.stringify(text)}`,
      );
      assert.match(answer.body, /"failure":"E_BAD_REQUEST"/);
      await wire.closed();
      assert.equal(wire.received, "");
      assert.equal(origin.requests.length, before);
    });
  }

  test("with more fields than the limit is refused, whichever field comes last", async () => {
    const fields = Array.from({ length: 1_500 }, (_, index) => `X-${index}: 1`);
    for (const last of ["Transfer-Encoding: chunked", "Authorization: late"]) {
      const wire = await open();
      const answer = await wire.send(head(`POST /${HOST}/ HTTP/1.1`, OWN, ...fields, last));
      assert.equal(statusOf(answer), 431);
      await wire.closed();
    }
  });

  test("with a head or a target that is too long is refused", async () => {
    const long = await (await open()).send(head(`GET /${HOST}/ HTTP/1.1`, OWN, `X: ${"x".repeat(70_000)}`));
    assert.equal(statusOf(long), 431);
    const target = await (await open()).send(head(`GET /${HOST}/${"x".repeat(40_000)} HTTP/1.1`, OWN));
    assert.equal(statusOf(target), 414);
  });
});

describe("bytes after a request", () => {
  test("that was refused are thrown away", async () => {
    const before = origin.requests.length;
    const wire = await open();
    wire.write(
      head(`GET /${HOST}/first HTTP/1.1`, OWN) + head("GET /evil.example.org/ HTTP/1.1", OWN) + SMUGGLED,
    );
    assert.equal(statusOf(await wire.response()), 200);
    assert.equal(statusOf(await wire.response()), 403);
    await wire.closed();
    assert.deepEqual([wire.received, origin.requests.length], ["", before + 1]);
  });

  test("are requests of their own, judged in turn and answered in order", async () => {
    const before = origin.requests.length;
    const wire = await open();
    wire.write(["/p1", "/p2", "/p3"].map((path) => head(`GET /${HOST}${path} HTTP/1.1`, OWN)).join(""));
    for (let count = 0; count < 3; count += 1) assert.equal(statusOf(await wire.response()), 200);
    assert.deepEqual(
      origin.requests.slice(before).map(({ start }) => start),
      ["GET /p1 HTTP/1.1", "GET /p2 HTTP/1.1", "GET /p3 HTTP/1.1"],
    );
  });
});

describe("a body that is cut short", () => {
  for (const [what, lines, part] of [
    ["of a length", ["Content-Length: 10"], "hello"],
    ["in chunks", ["Transfer-Encoding: chunked"], "5\r\nhello\r\n"],
  ] as const) {
    for (const how of ["end", "reset"] as const) {
      test(`${what} by the client's ${how} never looks whole to the upstream`, async () => {
        const before = origin.requests.length;
        const path = `/cut-${what.replaceAll(" ", "-")}-${how}`;
        const wire = await open();
        wire.write(head(`POST /${HOST}${path} HTTP/1.1`, OWN, ...lines) + part);
        const seen = () => origin.connections.find(({ received }) => received.includes(path));
        await origin.until("the beginning", () => seen()?.received.includes("hello") === true);
        if (how === "end") wire.end();
        else wire.reset();
        await origin.until("the break", () => seen()?.closed === true);
        assert.equal(origin.requests.length, before);
        assert.doesNotMatch(seen()?.received ?? "", /0\r\n\r\n$/);
      });
    }
  }

  test("by a chunk that is none never looks whole to the upstream", async () => {
    const wire = await open();
    wire.write(
      `${head(`POST /${HOST}/bad-chunk HTTP/1.1`, OWN, "Transfer-Encoding: chunked")}5\r\nhello\r\n`,
    );
    const seen = () => origin.connections.find(({ received }) => received.includes("/bad-chunk"));
    await origin.until("the beginning", () => seen()?.received.includes("hello") === true);
    assert.equal(statusOf(await wire.send("zz\r\n")), 400);
    await wire.closed();
    await origin.until("the break", () => seen()?.closed === true);
    assert.doesNotMatch(seen()?.received ?? "", /0\r\n\r\n$/);
  });
});
