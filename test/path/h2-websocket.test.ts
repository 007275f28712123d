/** WebSocket over HTTP/2 (RFC 8441): offered where the upstream takes it, decided and injected, then opaque. */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { after, before, test } from "node:test";
import type { Gate } from "../support/gate.ts";
import { SECRET, startGate } from "../support/gate.ts";
import { answerOf, openH2 } from "../support/h2-client.ts";
import type { H2Origin } from "../support/h2-origin.ts";
import { createH2Origin, valuesIn } from "../support/h2-origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";

const HOST = "ws.example.com";
const PLAIN = "plain.example.com";
const PLAIN_V4 = "11.0.0.11";
const SIGNED = "queue.eu-west-1.amazonaws.com";

let internet: Internet;
let gate: Gate;
let origin: H2Origin;

before(async () => {
  internet = await createInternet();
  internet.dns.set(HOST, { A: [PUBLIC_V4] });
  internet.dns.set(SIGNED, { A: [PUBLIC_V4] });
  internet.dns.set(PLAIN, { A: [PLAIN_V4] });
  origin = await createH2Origin(internet, {
    names: [HOST, SIGNED],
    bound: true,
    options: { settings: { enableConnectProtocol: true } },
    serve: echo,
  });
  await createH2Origin(internet, { address: PLAIN_V4, names: [PLAIN], bound: true, serve: echo });
  const transform = { Authorization: SECRET };
  gate = await startGate(internet, {
    limits: { tunnel_idle_timeout: "2s" },
    network: {
      allowlist: [
        { domain: HOST, paths: ["/chat"], methods: ["GET"], transform },
        { domain: PLAIN, transform },
        { domain: SIGNED, credential: "queue" },
      ],
    },
    credentials: [
      {
        id: "queue",
        type: "aws_sigv4",
        access_key_id: "AKIDEXAMPLE",
        secret_access_key: SECRET,
        region: "eu-west-1",
        service: "sqs",
      },
    ],
  });
});
after(() => internet.close());

function echo(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
  stream.respond({ ":status": 200, "sec-websocket-protocol": "chat" });
  if (headers[":path"] === "/chat?half") stream.resume().end();
  else stream.pipe(stream);
}

async function settings(host: string) {
  const client = await openH2(internet, gate, host);
  if (client.session.remoteSettings.maxConcurrentStreams === undefined)
    await once(client.session, "remoteSettings");
  await client.ask([":path", "/chat"]);
  return client;
}

function connectPairs(path: string, protocol = "websocket"): string[] {
  return [
    ":method",
    "CONNECT",
    ":protocol",
    protocol,
    ":scheme",
    "https",
    ":authority",
    HOST,
    ":path",
    path,
    "sec-websocket-version",
    "13",
    "sec-websocket-protocol",
    "chat",
  ];
}

test("it is offered where the upstream takes it, and nowhere else", async () => {
  assert.equal((await settings(HOST)).session.remoteSettings.enableConnectProtocol, true);
  assert.equal((await settings(PLAIN)).session.remoteSettings.enableConnectProtocol, false);
});

test("after a 2xx bytes go both ways as they are, with the secret injected before", async () => {
  const client = await settings(HOST);
  const stream = client.session.request(connectPairs("/chat"), { endStream: false });
  const [head] = await once(stream, "response");
  assert.equal(head[":status"], 200);
  assert.equal(head["sec-websocket-protocol"], "chat");
  const got: Buffer[] = [];
  stream.on("data", (bytes: Buffer) => void got.push(bytes));
  const frames = Buffer.from(Array.from({ length: 100_000 }, (_, at) => at % 251));
  stream.write(frames);
  while (Buffer.concat(got).length < frames.length) await once(stream, "data");
  assert.deepEqual(Buffer.concat(got), frames);
  const request = origin.requests.at(-1) ?? [];
  assert.deepEqual(valuesIn(request, ":protocol"), ["websocket"]);
  assert.deepEqual(valuesIn(request, "authorization"), [internet.canary.secret]);
  assert.deepEqual(valuesIn(request, "upgrade"), []);
  stream.end();
  await once(stream, "end");
  const record = await gate.record({ protocol: "ws" });
  assert.deepEqual(
    [record["method"], record["path"], record["status"], record["bytes_out"]],
    ["GET", "/chat", 200, 100_000],
  );
});

test("one that only its origin ended stays open, and not for longer than tunnel_idle_timeout", async () => {
  const client = await settings(HOST);
  const stream = client.session.request(connectPairs("/chat?half"), { endStream: false });
  stream.on("error", () => undefined);
  await once(stream.resume(), "end");
  const ended = performance.now();
  stream.write("more");
  await new Promise<void>((resolve) => void stream.on("close", () => resolve()));
  assert.ok(performance.now() - ended > 1_000, "it did not stay open");
  assert.notEqual(stream.rstCode, 0);
  await origin.until("the end of its stream", () => origin.open === 0);
  const { status, failure, bytes_out } = await gate.record({ protocol: "ws", failure: "E_TIMEOUT" });
  assert.deepEqual([status, failure, bytes_out], [200, "E_TIMEOUT", 4]);
});

test("one that is signed opens at once: its frames are no body to wait for", async () => {
  const { session } = await settings(SIGNED);
  const pairs = connectPairs("/chat").map((text) => (text === HOST ? SIGNED : text));
  const stream = session.request(pairs, { endStream: false });
  stream.on("error", () => undefined);
  const [head] = await once(stream, "response");
  assert.equal(head[":status"], 200);
  stream.write("frame");
  assert.equal(String((await once(stream, "data"))[0]), "frame");
  stream.end();
  await once(stream, "end");
  const [signature] = valuesIn(origin.requests.at(-1) ?? [], "authorization");
  assert.match(signature ?? "", /^AWS4-HMAC-SHA256 .*SignedHeaders=host;/);
  assert.doesNotMatch(signature ?? "", /upgrade|connection/);
});

for (const [what, pairs, status] of [
  ["a path that no rule allows", connectPairs("/other"), 403],
  ["another protocol than websocket", connectPairs("/chat", "connect-udp"), 403],
] as const) {
  test(`${what} is refused before anything leaves`, async () => {
    const client = await settings(HOST);
    const before = origin.requests.length;
    const stream = client.session.request([...pairs], { endStream: false });
    stream.on("error", () => undefined);
    assert.equal((await answerOf(stream)).status, status);
    assert.equal(origin.requests.length, before);
  });
}

test("one that only its origin ended is cut by a reload that refuses it", async () => {
  const client = await settings(HOST);
  const stream = client.session.request(connectPairs("/chat?half"), { endStream: false });
  stream.on("error", () => undefined);
  const closed = new Promise<void>((resolve) => void stream.on("close", () => resolve()));
  await once(stream.resume(), "end");
  await gate.reload({ network: { allowlist: [] } });
  await closed;
  await origin.until("the end of its stream", () => origin.open === 0);
  const { status, reason } = await gate.record({ protocol: "ws", verdict: "deny", status: 200 });
  assert.deepEqual([status, reason], [200, "no-rule-matched"]);
});
