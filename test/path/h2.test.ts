/** HTTP/2 end to end: heads, bodies, interim answers, names, refusals, streams that are cut and that end. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { IncomingHttpHeaders, ServerHttp2Session, ServerHttp2Stream } from "node:http2";
import { sensitiveHeaders } from "node:http2";
import { after, afterEach, before, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { Gate, GateConfig } from "../support/gate.ts";
import { SECRET, startGate } from "../support/gate.ts";
import { answerOf, openH2 } from "../support/h2-client.ts";
import { block, FLAG, frame, openFrames, TYPE } from "../support/h2-frames.ts";
import type { H2Origin } from "../support/h2-origin.ts";
import { createH2Origin, valuesIn } from "../support/h2-origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";

const HOST = "a.example.com";
const MIB = 1_048_576;
const BULK_MIB = 64;
const CONFIG: GateConfig = {
  network: {
    allowlist: [{ domain: HOST, methods: ["GET", "POST", "HEAD"], transform: { "X-Key": SECRET } }],
  },
};

let internet: Internet;
let gate: Gate;
let origin: H2Origin;
let serve: (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void = small;

before(async () => {
  internet = await createInternet();
  internet.dns.set(HOST, { A: [PUBLIC_V4] });
  origin = await createH2Origin(internet, {
    names: [HOST],
    bound: true,
    serve: (stream, headers) => serve(stream, headers),
  });
  gate = await startGate(internet, CONFIG);
});
after(() => internet.close());
afterEach(() => {
  serve = small;
});

function small(stream: ServerHttp2Stream): void {
  stream.respond({ ":status": 200 });
  stream.end("ok");
}

function lastRequest(): readonly string[] {
  return origin.requests.at(-1) ?? [];
}

describe("a head", () => {
  test("arrives with its fields in order, its cookie in crumbs, and the secret in place of the client's value", async () => {
    const client = await openH2(internet, gate, HOST);
    await client.ask([
      ":path",
      "/p?q",
      "x-b",
      "1",
      "cookie",
      "a=1",
      "x-b",
      "2",
      "cookie",
      "b=2",
      "te",
      "trailers",
      "x-key",
      "mine",
      "x_key",
      "mine",
    ]);
    assert.deepEqual(lastRequest().slice(0, -2), [
      ...[":method", "GET", ":scheme", "https", ":authority", HOST, ":path", "/p?q"],
      ...["x-b", "1", "cookie", "a=1", "x-b", "2", "cookie", "b=2", "te", "trailers"],
    ]);
    assert.deepEqual(lastRequest().slice(-2), ["x-key", internet.canary.secret]);
  });

  test("says of the secret, and of what the client marked, that it is not to be remembered", async () => {
    let marked: unknown;
    serve = (stream, headers) => {
      marked = Reflect.get(headers, sensitiveHeaders);
      small(stream);
    };
    const client = await openH2(internet, gate, HOST);
    const pairs = Object.assign(
      [":method", "GET", ":scheme", "https", ":authority", HOST, ":path", "/", "x-mine", "1", "x-other", "2"],
      {
        [sensitiveHeaders]: ["x-mine"],
      },
    );
    await answerOf(client.session.request(pairs, { endStream: true }));
    assert.deepEqual(marked, ["x-mine", "x-key"]);
  });
});

describe("the head of an answer", () => {
  test("comes back without what would lead past the gate", async () => {
    serve = (stream) => {
      const session = stream.session as ServerHttp2Session;
      session.altsvc('h3=":443"', stream.id ?? 0);
      session.origin("https://evil.example.com");
      stream.respond(
        [
          ":status",
          "200",
          "alt-svc",
          'h3=":443"',
          "x-a",
          "1",
          "set-cookie",
          "a",
          "x-a",
          "2",
          "set-cookie",
          "b",
        ],
        { sendDate: false } as object,
      );
      stream.end("ok");
    };
    const client = await openH2(internet, gate, HOST);
    let led = 0;
    client.session.on("altsvc", () => (led += 1));
    client.session.on("origin", () => (led += 1));
    const answer = await client.ask([]);
    assert.deepEqual(answer.pairs, [
      ":status",
      "200",
      "x-a",
      "1",
      "set-cookie",
      "a",
      "x-a",
      "2",
      "set-cookie",
      "b",
    ]);
    assert.equal(led, 0);
  });

  test("to HEAD, and of a 304, tells a length and has no body", async () => {
    serve = (stream, headers) => {
      const status = headers[":method"] === "HEAD" ? 200 : 304;
      stream.respond({ ":status": status, "content-length": 12 }, { endStream: true });
    };
    const client = await openH2(internet, gate, HOST);
    for (const method of ["HEAD", "GET"]) {
      const answer = await client.ask([":method", method]);
      assert.deepEqual(valuesIn(answer.pairs, "content-length"), ["12"]);
      assert.deepEqual([answer.body, answer.reset], ["", 0]);
    }
  });
});

describe("interim answers", () => {
  test("come before the head, 100 Continue among them", async () => {
    serve = (stream) => {
      stream.additionalHeaders({ ":status": 100 });
      stream.additionalHeaders({ ":status": 103, link: ["</a>", "</b>"] });
      small(stream);
    };
    const client = await openH2(internet, gate, HOST);
    const answer = await client.ask([":method", "POST", "expect", "100-continue"], "body");
    assert.deepEqual(answer.informed, [
      [":status", "100"],
      [":status", "103", "link", "</a>", "link", "</b>"],
    ]);
    assert.equal(answer.body, "ok");
  });
});

describe("trailers", () => {
  test("go both ways, without the injected name and what has no place there", async () => {
    let got: readonly string[] = [];
    serve = (stream) => {
      stream.on("trailers", (_headers, _flags, pairs: string[]) => {
        got = pairs;
      });
      stream.respond({ ":status": 200 }, { waitForTrailers: true });
      stream.on("wantTrailers", () =>
        stream.sendTrailers({ "x-t": ["1", "2"], "cache-control": "no-store" }),
      );
      stream.pipe(stream);
    };
    const client = await openH2(internet, gate, HOST);
    const stream = client.session.request(
      [":method", "POST", ":scheme", "https", ":authority", HOST, ":path", "/"],
      { waitForTrailers: true },
    );
    stream.on("wantTrailers", () => stream.sendTrailers({ "x-c": "3", "x-key": "mine" }));
    const answering = answerOf(stream);
    stream.end("body");
    const answer = await answering;
    assert.deepEqual(answer.trailers, ["x-t", "1", "x-t", "2"]);
    assert.deepEqual(got, ["x-c", "3"]);
    assert.equal(answer.body, "body");
  });
});

describe("names and methods", () => {
  for (const [what, pairs, status, told] of [
    ["another :authority", [":authority", "b.example.com"], 421, "names-disagree"],
    ["another port", [":authority", `${HOST}:8443`], 421, "names-disagree"],
    ["another host", ["host", "b.example.com"], 421, "names-disagree"],
    ["a method that no rule allows", [":method", "DELETE"], 403, "no-rule-matched"],
    ["TRACE", [":method", "TRACE"], 403, "method-refused"],
    ["clear text", [":scheme", "http"], 400, "E_BAD_REQUEST"],
  ] as const) {
    test(`${what} is ${status} on its stream alone`, async () => {
      const client = await openH2(internet, gate, HOST);
      const before = origin.requests.length;
      const answer = await client.ask(pairs);
      assert.equal(answer.status, status);
      assert.ok(answer.pairs.includes(told));
      assert.equal(origin.requests.length, before);
      assert.equal((await client.ask([])).status, 200);
    });
  }

  test("the same name in another spelling is the same name", async () => {
    const client = await openH2(internet, gate, HOST);
    const answer = await client.ask([":authority", `${HOST.toUpperCase()}.:443`, "host", HOST]);
    assert.equal(answer.status, 200);
    assert.deepEqual(valuesIn(lastRequest(), ":authority"), [HOST]);
    assert.deepEqual(valuesIn(lastRequest(), "host"), []);
  });

  test("userinfo before the name is malformed: the stream is reset", async () => {
    const client = await openH2(internet, gate, HOST);
    const before = origin.requests.length;
    assert.equal((await client.ask([":authority", `user@${HOST}`])).reset, 1);
    assert.equal(origin.requests.length, before);
    assert.equal((await client.ask([])).status, 200);
  });

  test("a plain CONNECT is refused, wherever it would lead", async () => {
    const client = await openFrames(internet, gate, HOST);
    const pairs = block(":method", "CONNECT", ":authority", "evil.example.com:443");
    client.send(frame(TYPE.headers, FLAG.endHeaders, 1, pairs));
    await client.until("the answer", () => client.seen(1).startsWith("headers data"));
    await gate.record({ method: "CONNECT", reason: "method-refused", protocol: "h2", status: 403 });
    client.socket.destroy();
  });
});

describe("bodies", () => {
  test("an event arrives within 100 ms of its being written", async () => {
    let write: (text: string) => void = () => undefined;
    serve = (stream) => {
      stream.respond({ ":status": 200, "content-type": "text/event-stream" });
      write = (text) => void stream.write(text);
      stream.write("data: first\n\n");
    };
    const client = await openH2(internet, gate, HOST);
    const stream = client.open([], true);
    await once(stream, "data");
    for (let count = 0; count < 20; count += 1) {
      const started = performance.now();
      write(`data: ${count}\n\n`);
      const [bytes] = await once(stream, "data");
      assert.equal(`${bytes}`, `data: ${count}\n\n`);
      assert.ok(performance.now() - started < 100);
    }
    stream.close();
  });

  test(`${BULK_MIB} MiB to the origin wait until they are read, and arrive whole`, async () => {
    let read: () => Promise<number> = () => Promise.resolve(0);
    serve = (stream) => {
      stream.pause();
      stream.respond({ ":status": 200 });
      read = () => sizeOf(stream);
    };
    const client = await openH2(internet, gate, HOST);
    const stream = client.open([":method", "POST"]);
    const poured = pour(stream);
    await once(stream, "response");
    await assertNothingPilesUp();
    const arrived = read();
    await poured;
    assert.equal(await arrived, BULK_MIB * MIB);
    stream.close();
  });

  test(`${BULK_MIB} MiB to the client wait until they are read, and arrive whole`, async () => {
    serve = (stream) => {
      // A server of Node that does not read the request ends a large answer with a reset.
      stream.resume();
      stream.respond({ ":status": 200 });
      void pour(stream);
    };
    const client = await openH2(internet, gate, HOST);
    const stream = client.open([], true);
    await once(stream, "response");
    await assertNothingPilesUp();
    assert.equal(await sizeOf(stream), BULK_MIB * MIB);
  });
});

describe("what is under way", () => {
  test("is decided again on a reload, and reset where it is refused", async () => {
    serve = (stream) => {
      stream.respond({ ":status": 200 });
      stream.write("begin");
    };
    const client = await openH2(internet, gate, HOST);
    const stream = client.open([], true);
    const answering = answerOf(stream);
    await once(stream, "data");
    const transform = { "X-Key": SECRET };
    await gate.reload({ network: { allowlist: [{ domain: HOST, methods: ["POST"], transform }] } });
    assert.equal((await answering).reset, 2);
    await gate.record({ protocol: "h2", verdict: "deny", reason: "no-rule-matched", status: 200 });
    assert.equal((await client.ask([])).status, 403);
    await gate.reload(CONFIG);
  });

  test("ends as it would after GOAWAY when the gate drains", async () => {
    let finish: () => void = () => undefined;
    serve = (stream) => {
      stream.respond({ ":status": 200 });
      stream.write("begin ");
      finish = () => void stream.end("end");
    };
    const client = await openH2(internet, gate, HOST);
    const stream = client.open([], true);
    const answering = answerOf(stream);
    await once(stream, "data");
    const goaway = once(client.session, "goaway");
    gate.signal("SIGTERM");
    assert.equal((await goaway)[0], 0);
    finish();
    const answer = await answering;
    assert.deepEqual([answer.body, answer.reset], ["begin end", 0]);
    assert.equal(await gate.ended, 0);
  });
});

async function pour(stream: NodeJS.WritableStream): Promise<void> {
  const chunk = Buffer.alloc(MIB, 7);
  for (let count = 0; count < BULK_MIB; count += 1) {
    if (!stream.write(chunk)) await once(stream, "drain");
  }
  stream.end();
}

function sizeOf(stream: NodeJS.ReadableStream): Promise<number> {
  return new Promise((resolve) => {
    let size = 0;
    stream.on("data", (bytes: Buffer) => {
      size += bytes.length;
    });
    stream.on("end", () => resolve(size));
    stream.resume();
  });
}

/** What is not read must not be in the gate: there is no event for what does not happen, so this waits a moment. */
async function assertNothingPilesUp(): Promise<void> {
  const before = residentBytes(gate.pid);
  await delay(200);
  assert.ok(residentBytes(gate.pid) - before < (BULK_MIB * MIB) / 2);
}

function residentBytes(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "latin1");
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) * 1024;
}
