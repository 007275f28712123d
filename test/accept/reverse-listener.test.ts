import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect } from "node:net";
import { type TestContext, test } from "node:test";
import { answerFailure } from "../../src/accept/refusal.ts";
import type { ReverseClient } from "../../src/accept/reverse-client.ts";
import { answerReply, type BaseArrival, createReverseListener } from "../../src/accept/reverse-listener.ts";
import { Failure } from "../../src/model/failure.ts";
import { DEFAULT_LIMITS, type Limits } from "../../src/model/limits.ts";
import { eventually, listenTo, type Peer } from "../support/loopback.ts";

const ABOUT = { host: undefined, port: undefined, connect: false };

const TOO_LATE = new Failure("E_BAD_REQUEST", "client", "No");

interface Front {
  readonly arrivals: BaseArrival[];
  readonly malformed: Failure[];
  readonly clients: ReverseClient[];
  dial(): Promise<Peer>;
}

/** `answer` is what is done with each request; by default it is answered with 200. */
async function createFront(
  context: TestContext,
  answer: (arrival: BaseArrival) => void = answerOk,
  limits: Partial<Limits> = {},
): Promise<Front> {
  const arrivals: BaseArrival[] = [];
  const malformed: Failure[] = [];
  const clients: ReverseClient[] = [];
  const server = createReverseListener(
    { ...DEFAULT_LIMITS, ...limits },
    {
      connected: (client) => clients.push(client) <= 2,
      request: (arrival) => {
        arrivals.push(arrival);
        answer(arrival);
      },
      malformed: (failure) => {
        malformed.push(failure);
        return answerFailure(failure, ABOUT);
      },
    },
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  context.after(() => {
    server.close();
    server.closeAllConnections();
    for (const { socket } of clients) socket.destroy();
  });
  const { port } = server.address() as AddressInfo;
  return {
    arrivals,
    malformed,
    clients,
    dial: async () => {
      const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
      context.after(() => socket.destroy());
      return listenTo(socket);
    },
  };
}

function answerOk({ reply }: BaseArrival): void {
  if (reply.kind === "response") reply.response.end("ok");
}

test("createReverseListener hands over requests as our own codec reads them", async (context) => {
  const front = await createFront(context);
  const peer = await front.dial();
  peer.send("POST /a//b?c HTTP/1.1\r\nHost: a\r\nx-Twice: 1\r\nX-Twice: 2\r\nContent-Length: 2\r\n\r\nhi");
  await peer.until("ok");
  const [arrival] = front.arrivals;
  assert.deepEqual(
    [arrival?.request.method, arrival?.request.rawTarget, arrival?.request.framing, arrival?.request.host],
    ["POST", "/a//b?c", { kind: "length", length: 2 }, "a"],
  );
  assert.deepEqual(
    arrival?.request.fields
      .filter(({ key }) => key === "x-twice")
      .map(({ name, value }) => `${name}=${value}`),
    ["x-Twice=1", "X-Twice=2"],
  );
});

test("createReverseListener refuses what Node takes and our codec does not", async (context) => {
  for (const bytes of [
    "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
    "GET / HTTP/1.1\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n",
    "GET / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nConnection: host\r\n\r\n",
    "GET /\r\n\r\n",
  ]) {
    const front = await createFront(context);
    const peer = await front.dial();
    peer.send(bytes);
    assert.match(await peer.until("E_BAD_REQUEST"), /^HTTP\/1\.1 (400|505) /, bytes);
    assert.deepEqual([front.arrivals.length, front.malformed.length], [0, 1]);
  }
});

test("createReverseListener answers bytes that are no HTTP, once, and closes", async (context) => {
  const front = await createFront(context);
  const peer = await front.dial();
  peer.send("\x16\x03\x01\x00\x05hello");
  await peer.until("E_BAD_REQUEST");
  peer.send("more of it");
  await peer.ended;
  assert.deepEqual([front.malformed.map(({ status }) => status), front.arrivals.length], [[400], 0]);
});

test("createReverseListener keeps requests in turn, and drops those behind a last one", async (context) => {
  const front = await createFront(context, (arrival) => {
    if (arrival.request.rawTarget === "/last") answerReply(arrival, answerFailure(TOO_LATE, ABOUT));
    else setImmediate(answerOk, arrival);
  });
  const peer = await front.dial();
  peer.send(
    ["/one", "/two", "/last", "/never"].map((path) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`).join(""),
  );
  await peer.ended;
  assert.deepEqual(
    front.arrivals.map(({ request }) => request.rawTarget),
    ["/one", "/two", "/last"],
  );
  assert.match(peer.text, /ok.*ok.*HTTP\/1\.1 400.*Connection: close/s);
});

test("createReverseListener gives an upgrade to WebSocket bare, and leaves others in HTTP", async (context) => {
  const front = await createFront(context, (arrival) => answerReply(arrival, answerFailure(TOO_LATE, ABOUT)));
  const kinds = [];
  for (const upgrade of ["websocket", "h2c"]) {
    const peer = await front.dial();
    peer.send(`GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: ${upgrade}\r\n\r\n`);
    await peer.until("E_BAD_REQUEST");
    kinds.push(front.arrivals.at(-1)?.reply.kind);
  }
  assert.deepEqual(kinds, ["bare", "response"]);
});

test("createReverseListener cuts whoever is one too many", async (context) => {
  const front = await createFront(context);
  await Promise.all([front.dial(), front.dial()]);
  await eventually(() => front.clients.length === 2);
  const peer = await front.dial();
  assert.equal(await peer.ended, "reset");
});

test("answerReply is read by a client that still sends its body", async (context) => {
  const front = await createFront(context, (arrival) => answerReply(arrival, answerFailure(TOO_LATE, ABOUT)));
  const peer = await front.dial();
  peer.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
  await peer.until("E_BAD_REQUEST");
  assert.equal(peer.ending, undefined);
  peer.send(Buffer.alloc(1_000_000));
  assert.equal(await peer.ended, "end");
});

test("answerReply has no body where the request was HEAD", async (context) => {
  const front = await createFront(context, (arrival) => answerReply(arrival, answerFailure(TOO_LATE, ABOUT)));
  const peer = await front.dial();
  peer.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
  await peer.ended;
  assert.match(peer.text, /content-length: [1-9]\d*\r\n.*\r\n\r\n$/s);
});

test("createReverseListener cuts a client whose body goes wrong once its answer has begun", async (context) => {
  const front = await createFront(context, ({ reply }) => {
    if (reply.kind === "response") reply.response.write("begin");
  });
  const peer = await front.dial();
  peer.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n");
  await peer.until("begin");
  peer.send("zz\r\n");
  assert.equal(await peer.ended, "reset");
  assert.equal(front.malformed.length, 0);
});
