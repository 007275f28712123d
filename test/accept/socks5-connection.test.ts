import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { after, before, describe, test } from "node:test";
import type { Asking } from "../../src/accept/arrival.ts";
import { Socks5Connection, type SocksHandlers } from "../../src/accept/socks5-connection.ts";
import { createDeadlines, type TickingDeadlines } from "../../src/base/deadlines.ts";
import type { Door } from "../../src/model/arrival.ts";
import { Failure } from "../../src/model/failure.ts";
import { DEFAULT_LIMITS } from "../../src/model/limits.ts";

const DOOR: Door = {
  listener: "socks",
  address: "10.0.0.1",
  tunnel: undefined,
  scheme: "http",
  serverName: undefined,
};
const CONNECT = `050100${"03"}0b${Buffer.from("api.example").toString("hex")}01bb`;

const server = createServer({ allowHalfOpen: true });
before(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});
const sockets: Socket[] = [];
after(() => {
  for (const socket of sockets) socket.destroy();
  server.close();
});

describe("Socks5Connection", () => {
  test("hands over the request, its early bytes and who asks", async () => {
    const { client, arrival } = await open({ identified: (value) => value !== undefined });
    const credentials = `01${"03"}${hex("box")}02${hex("pw")}`;
    client.write(Buffer.from(`050102${credentials}${CONNECT}${hex("early")}`, "hex"));
    const { claims, inbound } = await arrival;
    assert.equal(claims.proxyAuthorization, `Basic ${Buffer.from("box:pw").toString("base64")}`);
    assert.equal(claims.authority?.port, 443);
    assert.equal(inbound.head.target, "api.example:443");
    const raw = inbound.takeOver({ status: 200, phrase: "", minor: 1, fields: [] });
    assert.equal(raw.early.toString(), "early");
    assert.equal(await received(client, 14), "0502" + "0100" + "05000001000000000000");
  });

  test("loses nothing of what comes after the request, however long its answer takes", async () => {
    const { client, arrival } = await open({});
    client.write(Buffer.from(`050100${CONNECT}`, "hex"));
    const { inbound, transport } = await arrival;
    client.write("early");
    // The bytes are here before anybody reads them.
    const sent = CONNECT.length / 2 + 3 + 5;
    while (transport.bytesRead < sent) await new Promise((resolve) => setImmediate(resolve));
    const { socket, early } = inbound.takeOver({ status: 200, phrase: "", minor: 1, fields: [] });
    assert.equal(early.length, 0);
    socket.resume();
    const [chunk] = (await once(socket, "data")) as [Buffer];
    assert.equal(chunk.toString(), "early");
  });

  const REPLIES: readonly (readonly [status: number, failure: string | undefined, reply: string])[] = [
    [403, undefined, "02"],
    [407, undefined, "02"],
    [421, undefined, "02"],
    [400, undefined, "01"],
    [502, "E_RESOLVE", "04"],
    [502, "E_CONNECT", "05"],
    [504, "E_TIMEOUT", "06"],
    [502, "E_UPSTREAM_TLS", "01"],
  ];
  for (const [status, failure, reply] of REPLIES) {
    test(`says ${status} ${failure ?? ""} as reply ${reply} and closes`, async () => {
      const { client, arrival } = await open({});
      client.write(Buffer.from(`050100${CONNECT}`, "hex"));
      const { inbound } = await arrival;
      const key = "x-sallyport-failure";
      const fields = failure === undefined ? [] : [{ name: key, key, value: failure }];
      inbound.respond({ status, phrase: "", minor: 1, fields }, { kind: "none" });
      inbound.write(Buffer.from("words that SOCKS cannot say"));
      inbound.end([]);
      assert.equal(await received(client, 12), `050005${reply}0001000000000000`);
      assert.equal(inbound.responded, status);
      await once(client.resume(), "end");
    });
  }
});

describe("Socks5Connection: no request comes of it", () => {
  test("a client that goes away", async () => {
    const { client, failure } = await open({});
    client.end(Buffer.from("0501", "hex"));
    assert.equal(codeOf(await failure), "E_BAD_REQUEST");
  });

  test("a client that is too slow", async () => {
    const { failure, deadlines } = await open({});
    deadlines.tick(DEFAULT_LIMITS.head_timeout + 1);
    assert.equal(codeOf(await failure), "E_TIMEOUT");
  });

  test("bytes without end that make no message", async () => {
    const { client, failure } = await open({ identified: () => false });
    client.write(Buffer.concat([Buffer.of(5, 1, 2, 1, 255), Buffer.alloc(2_000, 0x61)]));
    assert.notEqual(await failure, undefined);
  });

  test("another version", async () => {
    const { client, failure } = await open({});
    client.write(Buffer.from("0401", "hex"));
    assert.equal(codeOf(await failure), "E_BAD_REQUEST");
  });

  test("nobody in particular", async () => {
    const { client, failure } = await open({ identified: () => false });
    client.write(Buffer.from("050100", "hex"));
    assert.equal(await received(client, 2), "05ff");
    assert.equal(await failure, "identity-unknown");
  });
});

interface Opened {
  readonly client: Socket;
  readonly deadlines: TickingDeadlines;
  readonly arrival: Promise<Asking>;
  readonly failure: Promise<Failure | "identity-unknown">;
}

async function open(handlers: Partial<SocksHandlers>): Promise<Opened> {
  const accepted = once(server, "connection");
  const { port } = server.address() as { port: number };
  const client = connect(port, "127.0.0.1");
  client.on("error", () => {});
  const [socket] = (await accepted) as [Socket];
  socket.on("error", () => {});
  sockets.push(client, socket);
  const deadlines = createDeadlines(0);
  const arrival = Promise.withResolvers<Asking>();
  const failure = Promise.withResolvers<Failure | "identity-unknown">();
  const all = { identified: () => true, request: arrival.resolve, failed: failure.resolve, ...handlers };
  new Socks5Connection(socket, DOOR, all, { limits: DEFAULT_LIMITS, deadlines }).begin(Buffer.alloc(0));
  return { client, deadlines, arrival: arrival.promise, failure: failure.promise };
}

async function received(client: Socket, length: number): Promise<string> {
  let bytes = Buffer.alloc(0);
  while (bytes.length < length) {
    const [chunk] = (await once(client, "data")) as [Buffer];
    bytes = Buffer.concat([bytes, chunk]);
  }
  return bytes.toString("hex");
}

function codeOf(outcome: Failure | string): string {
  return outcome instanceof Failure ? outcome.code : outcome;
}

function hex(text: string): string {
  return Buffer.from(text).toString("hex");
}
