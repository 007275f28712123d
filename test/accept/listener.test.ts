import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, type Server, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { createListener, listen } from "../../src/accept/listener.ts";
import { breakOff, listenTo } from "../support/loopback.ts";

const ANY = { host: "127.0.0.1", port: 0 };

test("createListener hands over half-open sockets: a client may close its side and still be answered", async (context) => {
  const sockets: Socket[] = [];
  const server = createListener((socket) => sockets.push(socket));
  const client = await reach(context, server);
  await once(server, "connection");
  const [socket] = sockets;
  assert.ok(socket !== undefined);
  assert.equal(socket.allowHalfOpen, true);
  const peer = listenTo(client);
  client.end("request");
  await once(socket.resume(), "end");
  socket.write("answer");
  await peer.until("answer");
});

test("createListener hears every error of its sockets, so that none brings the process down", async (context) => {
  const server = createListener(() => undefined);
  const client = await reach(context, server);
  const [[socket]] = await Promise.all([once(server, "connection"), once(client, "connect")]);
  socket.resume();
  breakOff(client);
  await new Promise((resolve) => socket.once("close", resolve));
  assert.equal(socket.errored?.message, "read ECONNRESET");
});

test("listen says which address cannot be had and why, in brackets where it is IPv6", async (context) => {
  const taken = createListener(() => undefined);
  await listen(taken, ANY, "listen.proxy");
  context.after(() => void taken.close());
  const { port } = taken.address() as AddressInfo;
  await assert.rejects(
    listen(
      createListener(() => undefined),
      { host: "127.0.0.1", port },
      "listen.proxy",
    ),
    {
      name: "Failure",
      code: "E_CONFIG",
      fault: "operator",
      message: `Cannot listen on 127.0.0.1:${port} (listen.proxy): something else listens there`,
    },
  );
  await assert.rejects(
    listen(
      createListener(() => undefined),
      { host: "2001:db8::1", port },
      "listen.proxy",
    ),
    {
      code: "E_CONFIG",
      message: new RegExp(
        `^Cannot listen on \\[2001:db8::1\\]:${port} \\(listen\\.proxy\\): (?:this machine has no such address|E[A-Z]+)$`,
      ),
    },
  );
});

test("listen leaves a listener for errors to come", async (context) => {
  const server = createListener(() => undefined);
  await listen(server, ANY, "listen.proxy");
  context.after(() => void server.close());
  server.emit("error", new Error("accept EMFILE"));
  assert.equal(server.listening, true);
});

async function reach(context: TestContext, server: Server): Promise<Socket> {
  await listen(server, ANY, "listen.proxy");
  const { port } = server.address() as AddressInfo;
  const client = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  context.after(() => {
    client.destroy();
    server.close();
  });
  return client;
}
