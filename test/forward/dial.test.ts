import assert from "node:assert/strict";
import { once } from "node:events";
import { syncBuiltinESMExports } from "node:module";
import net, { type AddressInfo, createServer, type Server, Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { parseIpAddress } from "../../src/base/ip.ts";
import { dial } from "../../src/forward/dial.ts";
import type { Dialable } from "../../src/model/decision.ts";
import { Failure } from "../../src/model/failure.ts";

const NEVER = new AbortController().signal;
const OPTIONS = { timeoutMs: 5_000, signal: NEVER, stagger: 250 };

test("dial reaches a listener, over IPv4 and IPv6, with a socket made for relaying", async (context) => {
  for (const host of ["127.0.0.1", "::1"]) {
    const { port } = await listen(context, host);
    const socket = await dial([target(host, port)], OPTIONS);
    assert.equal(socket.remoteAddress, host);
    assert.equal(socket.allowHalfOpen, true);
    assert.ok(socket.readableHighWaterMark >= 65_536);
    assert.ok(socket.listenerCount("error") > 0);
    socket.destroy();
  }
});

test("dial tries the next address at once where one is refused", async (context) => {
  const { port } = await listen(context, "127.0.0.1");
  const started = performance.now();
  // Nothing listens on these: each refuses, and no stagger is waited for.
  const candidates = ["::1", "127.0.0.2", "127.0.0.3", "127.0.0.1"].map((host) => target(host, port));
  const socket = await dial(candidates, { ...OPTIONS, stagger: 60_000 });
  assert.equal(socket.remoteAddress, "127.0.0.1");
  assert.ok(performance.now() - started < 2_000);
  socket.destroy();
});

test("dial begins with IPv6 and takes the families in turn", async (context) => {
  const { attempts } = fakeSockets(context);
  const candidates = ["192.0.2.1", "192.0.2.2", "192.0.2.3", "2001:db8::1", "2001:db8::2"];
  const dialled = dial(
    candidates.map((host) => target(host, 1)),
    { ...OPTIONS, stagger: 1 },
  );
  while (attempts.length < 5) await new Promise(setImmediate);
  const order = attempts.map(({ host }) => host);
  assert.deepEqual(order, ["2001:db8::1", "192.0.2.1", "2001:db8::2", "192.0.2.2", "192.0.2.3"]);
  for (const { socket } of attempts) socket.destroy(withCode("EHOSTUNREACH"));
  await assert.rejects(dialled, { code: "E_CONNECT" });
});

test("dial starts a second try beside a silent first, and destroys whichever loses", async (context) => {
  const { attempts } = fakeSockets(context);
  const dialled = dial([target("2001:db8::1", 1), target("192.0.2.1", 1)], { ...OPTIONS, stagger: 20 });
  assert.equal(attempts.length, 1);
  while (attempts.length < 2) await new Promise(setImmediate);
  const [first, second] = attempts;
  assert.ok(first !== undefined && second !== undefined);
  second.connect("192.0.2.1", 1);
  assert.equal(await dialled, second.socket);
  assert.equal(first.socket.destroyed, true);
  assert.equal(second.socket.destroyed, false);
});

test("dial accepts no other peer than the one it dialled", async (context) => {
  const { attempts } = fakeSockets(context);
  const peers = [
    ["192.0.2.2", 443],
    ["192.0.2.1", 444],
    ["", 443],
    ["10.0.0.1", 443],
  ] as const;
  for (const [address, port] of peers) {
    const dialled = dial([target("192.0.2.1", 443)], OPTIONS);
    const attempt = attempts.at(-1);
    attempt?.connect(address, port);
    await assert.rejects(dialled, {
      code: "E_CONNECT",
      fault: "upstream",
      message: /not where it was dialled/,
    });
    assert.equal(attempt?.socket.destroyed, true);
  }
});

test("dial takes a peer that the system shows as an IPv4-mapped address for the IPv4 address that it is", async (context) => {
  const { attempts } = fakeSockets(context);
  const dialled = dial([target("192.0.2.1", 443)], OPTIONS);
  attempts[0]?.connect("::ffff:192.0.2.1", 443);
  assert.equal(await dialled, attempts[0]?.socket);
});

test("dial looks nothing up: each option is a literal, and a lookup would fail", async (context) => {
  const { attempts } = fakeSockets(context);
  const controller = new AbortController();
  const dialled = dial([target("192.0.2.1", 443)], { ...OPTIONS, signal: controller.signal });
  const [attempt] = attempts;
  assert.equal(attempt?.options.autoSelectFamily, false);
  assert.equal(net.isIP(attempt?.options.host ?? ""), 4);
  let answer: Error | null = null;
  attempt?.options.lookup?.("name.example", {}, (error) => {
    answer = error;
  });
  assert.ok((answer as unknown) instanceof Failure);
  controller.abort();
  await assert.rejects(dialled);
});

test("dial says how it failed, in words without an address", async (context) => {
  const { attempts } = fakeSockets(context);
  const cases = [
    ["ECONNREFUSED", "E_CONNECT", "upstream", "The upstream refused the connection"],
    ["EHOSTUNREACH", "E_CONNECT", "upstream", "The upstream cannot be reached"],
    ["ETIMEDOUT", "E_TIMEOUT", "upstream", "The upstream did not answer in time"],
    ["EMFILE", "E_CONNECT", "gate", "The gate has no socket left to dial with"],
  ] as const;
  for (const [system, code, fault, message] of cases) {
    const dialled = dial([target("192.0.2.1", 443)], OPTIONS);
    attempts.at(-1)?.socket.destroy(withCode(system));
    await assert.rejects(dialled, { name: "Failure", code, fault, message });
  }
  await assert.rejects(dial([], OPTIONS), {
    code: "E_CONNECT",
    message: "The upstream has no address to dial",
  });
});

test("dial fails in time where nobody answers, and leaves nothing open", async (context) => {
  const { attempts } = fakeSockets(context);
  const dialled = dial([target("192.0.2.1", 443), target("192.0.2.2", 443)], {
    ...OPTIONS,
    timeoutMs: 30,
    stagger: 5,
  });
  await assert.rejects(dialled, { code: "E_TIMEOUT", fault: "upstream" });
  assert.deepEqual(
    attempts.map(({ socket }) => socket.destroyed),
    [true, true],
  );
});

test("dial ends with its signal, whose Failure it passes on", async (context) => {
  const { attempts } = fakeSockets(context);
  const controller = new AbortController();
  const dialled = dial([target("192.0.2.1", 443)], { ...OPTIONS, signal: controller.signal });
  controller.abort();
  await assert.rejects(dialled, { code: "E_CONNECT", fault: "client" });
  assert.equal(attempts[0]?.socket.destroyed, true);

  const failure = new Failure("E_TIMEOUT", "upstream", "Over");
  const before = dial([target("192.0.2.1", 443)], { ...OPTIONS, signal: AbortSignal.abort(failure) });
  await assert.rejects(before, (error) => error === failure);
  assert.equal(attempts.length, 1, "nothing is dialled for nobody");
});

test("dial hands over a socket that survives a reset by the peer", async (context) => {
  const { server, port } = await listen(context, "127.0.0.1");
  server.on("connection", (peer) => peer.once("data", () => peer.resetAndDestroy()));
  const socket = await dial([target("127.0.0.1", port)], OPTIONS);
  const closed = new Promise((resolve) => socket.once("close", resolve));
  socket.resume().write("x");
  await closed;
  assert.equal(socket.destroyed, true);
});

interface Attempt {
  readonly host: string;
  readonly options: net.TcpNetConnectOpts;
  readonly socket: Socket;
  connect(address: string, port: number): void;
}

/** Puts sockets that do nothing of themselves in the place of real ones. */
function fakeSockets(context: TestContext): { attempts: Attempt[] } {
  const attempts: Attempt[] = [];
  context.mock.method(net, "connect", (options: net.TcpNetConnectOpts) => {
    const socket = new Socket();
    attempts.push({
      host: options.host ?? "",
      options,
      socket,
      connect(address, port) {
        Object.defineProperty(socket, "remoteAddress", { value: address === "" ? undefined : address });
        Object.defineProperty(socket, "remotePort", { value: port });
        socket.emit("connect");
      },
    });
    return socket;
  });
  syncBuiltinESMExports();
  context.after(() => {
    context.mock.restoreAll();
    syncBuiltinESMExports();
  });
  return { attempts };
}

async function listen(context: TestContext, host: string): Promise<{ server: Server; port: number }> {
  const server = createServer((socket) => socket.on("error", () => undefined).resume());
  server.listen(0, host);
  await once(server, "listening");
  context.after(() => void server.close());
  return { server, port: (server.address() as AddressInfo).port };
}

/** Unvetted: tests alone may say that an address was checked. */
function target(text: string, port: number): Dialable {
  const address = parseIpAddress(text);
  assert.ok(address !== undefined);
  return { address, port } as Dialable;
}

function withCode(code: string): Error {
  return Object.assign(new Error(`connect ${code} 192.0.2.1:443`), { code });
}
