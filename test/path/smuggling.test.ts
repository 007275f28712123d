/** Bytes that two readers could take in two ways: refused, closed, and nothing reaches an upstream (E01 to E25). */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { askConnect, head, inside } from "../support/ask.ts";
import type { Gate } from "../support/gate.ts";
import { SECRET, startGate } from "../support/gate.ts";
import { statusOf } from "../support/message-reader.ts";
import type { Origin } from "../support/origin.ts";
import { createOrigin } from "../support/origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";
import type { Wire } from "../support/wire-client.ts";
import { dial } from "../support/wire-client.ts";

const HOST = "api.example.com";
const SMUGGLED = "GET /smuggled HTTP/1.1\r\nHost: api.example.com\r\n\r\n";

let internet: Internet;
let gate: Gate;
let origins: readonly Origin[];

before(async () => {
  internet = await createInternet();
  internet.dns.set(HOST, { A: [PUBLIC_V4] });
  internet.dns.set("plain.example.com", { A: [PUBLIC_V4] });
  origins = [await createOrigin(internet, { tls: [HOST], bound: true }), await createOrigin(internet)];
  const allowlist = [{ domain: HOST, transform: { Authorization: SECRET } }, { domain: "plain.example.com" }];
  gate = await startGate(internet, { network: { allowlist } });
});
after(() => internet.close());

/** `START` stands for the request line and Host of the way in. */
const MALFORMED: Readonly<Record<string, string>> = {
  "Content-Length and Transfer-Encoding": `${head("START", "Content-Length: 5", "Transfer-Encoding: chunked")}0\r\n\r\n`,
  "Transfer-Encoding and Content-Length": `${head("START", "Transfer-Encoding: chunked", "Content-Length: 5")}0\r\n\r\n`,
  "two lengths that differ": `${head("START", "Content-Length: 5", "Content-Length: 6")}hello!`,
  "two lengths that agree": `${head("START", "Content-Length: 5", "Content-Length: 5")}hello`,
  "a list of lengths": `${head("START", "Content-Length: 5, 5")}hello`,
  "a length with a plus": `${head("START", "Content-Length: +5")}hello`,
  "a negative length": head("START", "Content-Length: -1"),
  "a hexadecimal length": `${head("START", "Content-Length: 0x1")}h`,
  "a length with an underscore": `${head("START", "Content-Length: 1_0")}hellohello`,
  "an empty length": head("START", "Content-Length:"),
  "a length of two to the 64": head("START", "Content-Length: 18446744073709551616"),
  "a transfer coding before chunked": `${head("START", "Transfer-Encoding: gzip, chunked")}0\r\n\r\n`,
  "a transfer coding after chunked": `${head("START", "Transfer-Encoding: chunked, identity")}0\r\n\r\n`,
  "an unknown transfer coding": `${head("START", "Transfer-Encoding: xchunked")}0\r\n\r\n`,
  "chunked twice": `${head("START", "Transfer-Encoding: chunked", "Transfer-Encoding: chunked")}0\r\n\r\n`,
  "a folded field": head("START", "X: 1", " Authorization: stolen"),
  "a blank before the first field": "START1\r\n Content-Length: 5\r\nHOST\r\n\r\nhello",
  "a blank before a colon": `${head("START", "Content-Length : 5")}hello`,
  "bare line feeds": head("START", "X: 1").replaceAll("\r\n", "\n"),
  "a bare line feed after one field": "START\r\nX: 1\nContent-Length: 5\r\n\r\nhello",
  "a bare carriage return in a value": head("START", "X: a\rContent-Length: 5"),
  "a NUL in a value": head("START", "X: a\0b"),
  "a control character in a value": head("START", "X: a\x01b"),
  "a DEL in a value": head("START", "X: a\x7fb"),
  "an empty field name": head("START", ": x"),
  "a field name with a blank": head("START", "X Y: 1"),
  "a field name with a bracket": head("START", "X(: 1"),
  "a field without a colon": head("START", "Nothing"),
  "a chunk size of 17 digits": `${head("START", "Transfer-Encoding: chunked")}00000000000000005\r\nhello\r\n0\r\n\r\n`,
  "a chunk size that overflows": `${head("START", "Transfer-Encoding: chunked")}ffffffffffffffff\r\nhello\r\n0\r\n\r\n`,
  "a chunk size with a prefix": `${head("START", "Transfer-Encoding: chunked")}0x5\r\nhello\r\n0\r\n\r\n`,
  "a chunk line of a bare line feed": `${head("START", "Transfer-Encoding: chunked")}5\nhello\r\n0\r\n\r\n`,
  "a chunk extension ended by a line feed": `${head("START", "Transfer-Encoding: chunked")}5;a\nhello\r\n0\r\n\r\n`,
  "a chunk longer than its size": `${head("START", "Transfer-Encoding: chunked")}5\r\nhello!\r\n0\r\n\r\n`,
  "a nomination of Host": head("START", "Connection: host"),
  "a nomination of Content-Length": `${head("START", "Connection: content-length", "Content-Length: 5")}hello`,
  "a nomination of Transfer-Encoding": `${head("START", "Connection: transfer-encoding", "Transfer-Encoding: chunked")}0\r\n\r\n`,
  "an unknown version": "VERSION HTTP/1.2\r\nHOST\r\n\r\n",
  "a two-digit version": "VERSION HTTP/1.10\r\nHOST\r\n\r\n",
  "a version in lower case": "VERSION http/1.1\r\nHOST\r\n\r\n",
  "the preface of HTTP/2": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
  "no version": "VERSION\r\n\r\n",
  "Transfer-Encoding in HTTP/1.0": "VERSION HTTP/1.0\r\nHOST\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
  "two blanks in the request line": "GET  / HTTP/1.1\r\nHOST\r\n\r\n",
  "a tab in the request line": "GET\t/\tHTTP/1.1\r\nHOST\r\n\r\n",
  "a target that is no target": "GET foo HTTP/1.1\r\nHOST\r\n\r\n",
  "a method that is no token": "G@T / HTTP/1.1\r\nHOST\r\n\r\n",
};

interface Way {
  readonly name: string;
  readonly target: string;
  readonly host: string;
  open(): Promise<Wire>;
}

const WAYS: readonly Way[] = [
  { name: "inside TLS", target: "POST /", host: `Host: ${HOST}`, open: () => inside(internet, gate, HOST) },
  {
    name: "in plain",
    target: "POST http://plain.example.com/",
    host: "Host: plain.example.com",
    open: () => dial(internet),
  },
];

function bytesFor(way: Way, text: string): string {
  return text
    .replace("START1", `${way.target} HTTP/1.1`)
    .replace("START", `${way.target} HTTP/1.1\r\n${way.host}`)
    .replace("VERSION", way.target)
    .replace("HOST", way.host);
}

for (const way of WAYS) {
  describe(`a request ${way.name}`, () => {
    for (const [what, text] of Object.entries(MALFORMED)) {
      test(`with ${what} is answered once, closed, and no request arrives`, async () => {
        const before = arrived();
        const wire = await way.open();
        const answer = await wire.send(bytesFor(way, text) + SMUGGLED);
        assert.ok([400, 501, 505].includes(statusOf(answer)), `${answer.start} for ${JSON.stringify(text)}`);
        await wire.closed();
        assert.equal(wire.received, "");
        await settled(before, text);
      });
    }
  });
}

function arrived(): number {
  return origins.reduce((sum, { requests }) => sum + requests.length, 0);
}

/** A body that turns out bad half-way may have begun: then its request must break off, never look whole. */
async function settled(before: number, text: string): Promise<void> {
  assert.equal(arrived(), before);
  const open = origins.flatMap(({ connections }) => connections).filter(({ closed }) => !closed);
  for (const connection of open) assert.doesNotMatch(connection.received, /smuggled/);
  if (!/chunk/.test(text)) return;
  const begun = origins
    .flatMap(({ connections }) => connections)
    .filter(({ received }) => /\r\n0\r\n\r\n$/.test(received));
  assert.deepEqual(begun, []);
}

describe("a body", () => {
  test("that looks like a request stays a body, framed anew", async () => {
    const wire = await inside(internet, gate, HOST);
    const chunk = `${SMUGGLED.length.toString(16)}\r\n${SMUGGLED}\r\n0\r\n\r\n`;
    const answer = await wire.send(
      head("GET /outer HTTP/1.1", `Host: ${HOST}`, "Transfer-Encoding: chunked") + chunk,
    );
    assert.equal(statusOf(answer), 200);
    const request = origins[0]?.requests.at(-1);
    assert.deepEqual([request?.start, request?.body], ["GET /outer HTTP/1.1", SMUGGLED]);
  });

  test("with chunk extensions passes without them", async () => {
    const wire = await inside(internet, gate, HOST);
    const body = '5;name=value;q="x"\r\nhello\r\n0;last\r\n\r\n';
    await wire.send(head("POST /ext HTTP/1.1", `Host: ${HOST}`, "Transfer-Encoding: chunked") + body);
    const connection = origins[0]?.connections.at(-1);
    assert.equal(connection?.requests.at(-1)?.body, "hello");
    assert.doesNotMatch(connection?.received ?? "", /name=value|;last/);
  });

  for (const [what, lines, part] of [
    ["of a length", ["Content-Length: 10"], "hello"],
    ["in chunks", ["Transfer-Encoding: chunked"], "5\r\nhello\r\n"],
  ] as const) {
    for (const how of ["end", "reset"] as const) {
      test(`${what} that is cut short by the client's ${how} never looks whole to the upstream`, async () => {
        const connections = origins[0]?.connections.length ?? 0;
        const before = arrived();
        // A connection of its own: the cut is to be seen on it.
        const path = `/cut-${what.replaceAll(" ", "-")}-${how}`;
        const wire = await inside(internet, gate, HOST);
        wire.write(head(`POST ${path} HTTP/1.1`, `Host: ${HOST}`, ...lines) + part);
        const seen = () => origins[0]?.connections.find(({ received }) => received.includes(path));
        await origins[0]?.until("the beginning", () => seen()?.received.includes("hello") === true);
        if (how === "end") wire.end();
        else wire.destroy();
        await origins[0]?.until("the break", () => seen()?.closed === true);
        assert.equal(arrived(), before);
        assert.doesNotMatch(seen()?.received ?? "", /0\r\n\r\n$/);
        assert.ok((origins[0]?.connections.length ?? 0) >= connections);
      });
    }
  }
});

describe("bytes after", () => {
  test("a refused CONNECT are thrown away", async () => {
    const before = arrived();
    const wire = await dial(internet);
    const refused = head("CONNECT evil.example.org:443 HTTP/1.1", "Host: evil.example.org");
    const next = head("GET http://plain.example.com/ HTTP/1.1", "Host: plain.example.com");
    assert.equal(statusOf(await wire.send(refused + next, { connect: true })), 403);
    await wire.closed();
    assert.deepEqual([wire.received, arrived()], ["", before]);
  });

  for (const line of ["Content-Length: 5", "Transfer-Encoding: chunked"]) {
    test(`a CONNECT with ${line} are not taken for a body: the CONNECT is refused`, async () => {
      assert.equal(statusOf(await askConnect(internet, `${HOST}:443`, line)), 400);
    });
  }
});

describe("pipelined requests", () => {
  test("each is judged, answered in order, and arrives once", async () => {
    const wire = await inside(internet, gate, HOST);
    const before = arrived();
    const three = ["/p1", "/p2", "/p3"].map((path) => head(`GET ${path} HTTP/1.1`, `Host: ${HOST}`));
    wire.write(three.join(""));
    for (let count = 0; count < 3; count += 1) assert.equal(statusOf(await wire.response()), 200);
    const starts = origins[0]?.requests.slice(-3).map(({ start }) => start);
    assert.deepEqual(starts, ["GET /p1 HTTP/1.1", "GET /p2 HTTP/1.1", "GET /p3 HTTP/1.1"]);
    assert.equal(arrived(), before + 3);
  });

  test("after a refused one are thrown away", async () => {
    const wire = await inside(internet, gate, HOST);
    const before = arrived();
    wire.write(
      head("GET /first HTTP/1.1", `Host: ${HOST}`) + head("TRACE / HTTP/1.1", `Host: ${HOST}`) + SMUGGLED,
    );
    assert.equal(statusOf(await wire.response()), 200);
    assert.equal(statusOf(await wire.response()), 403);
    await wire.closed();
    assert.deepEqual([wire.received, arrived()], ["", before + 1]);
  });
});
