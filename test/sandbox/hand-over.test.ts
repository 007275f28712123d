/** A hand-over from a helper that the test plays. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { type TestContext, test } from "node:test";
import { HandOverError, release, takeOver } from "../../src/sandbox/hand-over.ts";

const ORDER = { kind: "open", ports: [], first: true, exclusive: true, nameServers: [], files: [] } as const;

/** Its program answers an order by `open(order)`. */
function play(context: TestContext, program: string): ChildProcess {
  const child = spawn(
    process.execPath,
    ["-e", `process.on("message", (order) => { if (order.kind === "done") process.exit(7); ${program} })`],
    { stdio: ["ignore", "ignore", "inherit", "ipc"] },
  );
  context.after(() => child.kill("SIGKILL"));
  return child;
}

test("takeOver: gives the sockets by their port, and what was taken; then the helper may end", async (context) => {
  const child = play(
    context,
    `const server = require("net").createServer();
     const socket = require("dgram").createSocket("udp4");
     server.listen(0, "127.0.0.1", () => process.send({ kind: "tcp", port: 443 }, server, () => socket.bind(0, "127.0.0.1", () =>
       process.send({ kind: "udp" }, socket, () => { process.send({ kind: "taken", port: 80 }); process.send({ kind: "opened", v6: true }); }))));`,
  );
  const { tcp, udp, taken, v6 } = await takeOver(child, ORDER);
  assert.deepEqual([[...tcp.keys()], udp.length, taken, v6], [[443], 1, [80], true]);
  release(child);
  assert.equal((await once(child, "exit"))[0], 7);
  release(child);
  for (const server of tcp.values()) server.close();
  for (const socket of udp) socket.close();
});

test("takeOver: says what the helper says, and closes what came before", async (context) => {
  const ways = play(context, `process.send({ kind: "ways-out", interfaces: ["eth0"] })`);
  await assert.rejects(takeOver(ways, ORDER), {
    code: "E_CONFIG",
    message: /another way out: eth0\. Take it away/,
  });
  const two = play(context, `process.send({ kind: "ways-out", interfaces: ["eth0", "wg0"] })`);
  await assert.rejects(takeOver(two, ORDER), { message: /other ways out: eth0, wg0\. Take them away/ });
  const failed = play(
    context,
    `const server = require("net").createServer();
     server.listen(0, "127.0.0.1", () => process.send({ kind: "tcp", port: 1 }, server, () => process.send({ kind: "failed", message: "ip: no" })))`,
  );
  await assert.rejects(takeOver(failed, ORDER), {
    code: "E_CONFIG",
    message: "The namespace cannot be set up: ip: no",
  });
});

test("takeOver: a helper that ends, or never starts, is an error of its own", async (context) => {
  await assert.rejects(takeOver(play(context, "process.exit(1)"), ORDER), HandOverError);
  const none = spawn("/no/such/program", { stdio: ["ignore", "ignore", "ignore", "ipc"] });
  await assert.rejects(takeOver(none, ORDER), HandOverError);
});
