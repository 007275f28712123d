/** The adapter with a far end that the test plays: what http-proxy would do by itself, it does not do here. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect } from "node:net";
import { type TestContext, test } from "node:test";
import util from "node:util";
import { createReverseListener } from "../../src/accept/reverse-listener.ts";
import { createReverseRelay, type Relaying } from "../../src/accept/reverse-relay.ts";
import { createStreamPair, type StreamEnd } from "../../src/accept/stream-pair.ts";
import { parseHostname } from "../../src/base/hostname.ts";
import type { Hostname } from "../../src/model/exchange.ts";
import { DEFAULT_LIMITS } from "../../src/model/limits.ts";
import { eventually, listenTo, type Peer } from "../support/loopback.ts";

const HOST = parseHostname("api.example.com") as Hostname;
const BASE = "/api.example.com";

interface Scene {
  dial(): Peer;
  /** Far ends of the streams that were opened, in order. */
  readonly far: Peer[];
  /** The far end of this index, once it holds this text. */
  until(index: number, text: string): Promise<string>;
}

async function createScene(context: TestContext): Promise<Scene> {
  const far: Peer[] = [];
  const relay = createReverseRelay(DEFAULT_LIMITS);
  const open = (): StreamEnd => {
    const [near, other] = createStreamPair();
    far.push(listenTo(other));
    return near;
  };
  const server = createReverseListener(DEFAULT_LIMITS, {
    connected: () => true,
    request: (arrival) => {
      const target = arrival.request.rawTarget.slice(BASE.length);
      const destination = { kind: "name", host: HOST, port: 443 } as const;
      const relaying: Relaying = {
        arrival,
        scope: { base: BASE, destination, target },
        host: HOST,
        key: HOST,
        open,
      };
      relay(relaying);
    },
    malformed: () => assert.fail("Nothing here is malformed"),
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  context.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return {
    far,
    dial: () => {
      const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
      context.after(() => socket.destroy());
      return listenTo(socket);
    },
    until: async (index, text) => {
      await eventually(() => far.length > index);
      return (far[index] as Peer).until(text);
    },
  };
}

function ask(method: string, path: string, ...lines: readonly string[]): string {
  return `${[`${method} ${BASE}${path} HTTP/1.1`, "Host: a", ...lines].join("\r\n")}\r\n\r\n`;
}

test("createReverseRelay keeps the framing of a DELETE (CVE-2026-29057)", async (context) => {
  const scene = await createScene(context);
  scene.dial().send(`${ask("DELETE", "/d", "Transfer-Encoding: chunked")}3\r\nabc\r\n0\r\n\r\n`);
  assert.equal(
    await scene.until(0, "0\r\n\r\n"),
    "DELETE /d HTTP/1.1\r\nHost: api.example.com\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
  );
});

test("createReverseRelay keeps path and fields as they came", async (context) => {
  const scene = await createScene(context);
  scene.dial().send(ask("GET", "/a\\..\\b//c?d=//e", "x-B: 1", "X-A: 2", "x-b: 3", "Connection: close, X-A"));
  assert.equal(
    await scene.until(0, "\r\n\r\n"),
    "GET /a\\..\\b//c?d=//e HTTP/1.1\r\nHost: api.example.com\r\nx-B: 1\r\nx-B: 3\r\nConnection: keep-alive\r\n\r\n",
  );
});

test("createReverseRelay asks again on the stream that is idle, and keeps the client's connection", async (context) => {
  const scene = await createScene(context);
  const peer = scene.dial();
  for (const path of ["/1", "/2", "/3"]) {
    peer.send(ask("GET", path));
    await scene.until(0, `GET ${path} `);
    scene.far[0]?.send(`HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Path: ${path}\r\n\r\nok`);
    await peer.until(`X-Path: ${path}`);
  }
  assert.equal(scene.far.length, 1);
  assert.doesNotMatch(peer.text, /connection: close/i);
});

test("createReverseRelay lets the stream go when the client leaves", async (context) => {
  const scene = await createScene(context);
  const peer = scene.dial();
  peer.send(ask("GET", "/"));
  await scene.until(0, "\r\n\r\n");
  scene.far[0]?.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegin");
  await peer.until("begin");
  peer.socket.destroy();
  scene.far[0]?.send("more");
  await scene.far[0]?.ended;
});

test("createReverseRelay resets the client when the stream breaks off, before and within an answer", async (context) => {
  for (const part of [
    "",
    "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegin",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbegin\r\n",
  ]) {
    const scene = await createScene(context);
    const peer = scene.dial();
    peer.send(ask("GET", "/"));
    await scene.until(0, "\r\n\r\n");
    if (part !== "") {
      scene.far[0]?.send(part);
      await peer.until("begin");
    }
    scene.far[0]?.socket.destroy();
    assert.equal(await peer.ended, "reset");
  }
});

test("createReverseRelay passes trailers on, and only where there are chunks", async (context) => {
  const scene = await createScene(context);
  const peer = scene.dial();
  peer.send(`${ask("PUT", "/t", "Transfer-Encoding: chunked", "Trailer: X-S")}1\r\na\r\n0\r\nX-S: 1\r\n\r\n`);
  assert.match(await scene.until(0, "X-S: 1\r\n\r\n"), /1\r\na\r\n0\r\nX-S: 1\r\n\r\n$/);
  scene.far[0]?.send(
    "HTTP/1.1 200 OK\r\nTrailer: X-T\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nb\r\n0\r\nX-T: 2\r\n\r\n",
  );
  assert.match(await peer.until("X-T: 2"), /Trailer: X-T.*1\r\nb\r\n0\r\nX-T: 2\r\n\r\n$/s);
  peer.send(ask("GET", "/u"));
  await scene.until(0, "GET /u ");
  scene.far[0]?.send("HTTP/1.1 200 OK\r\nTrailer: X-T\r\nContent-Length: 4\r\n\r\nlast");
  assert.doesNotMatch((await peer.until("last")).slice(-150), /Trailer/);
});

test("createReverseRelay frames what answers an upgrade without switching", async (context) => {
  const upgrade = [
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
  ];
  for (const [answer, end] of [
    ["200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n", "2\r\nno\r\n0\r\n\r\n"],
    ["426 No\r\nContent-Length: 2\r\n\r\nno", "\r\n\r\nno"],
    ["304 No\r\n\r\n", "\r\n\r\n"],
    ["304 No\r\nContent-Length: 2\r\n\r\n", "\r\n\r\n"],
    ["204 No\r\n\r\n", "\r\n\r\n"],
  ] as const) {
    const scene = await createScene(context);
    const peer = scene.dial();
    peer.send(ask("GET", "/ws", ...upgrade));
    assert.match(await scene.until(0, "\r\n\r\n"), /Connection: Upgrade\r\nUpgrade: websocket\r\n/);
    scene.far[0]?.send(`HTTP/1.1 ${answer}`);
    assert.equal(await peer.ended, "end");
    assert.ok(peer.text.startsWith(`HTTP/1.1 ${answer.slice(0, 6)}`) && peer.text.endsWith(end), peer.text);
    assert.match(peer.text, /Connection: close/);
  }
});

test("createReverseRelay: what its library calls for each request warns of nothing (DEP0060)", () => {
  assert.equal(Reflect.get(util, "_extend"), Object.assign);
});
