/** A jail without a gate behind it: started, signalled, ended. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Jail, type JailOptions, startJail } from "../../src/sandbox/jail.ts";

async function start(argv: readonly string[], changes: Partial<JailOptions> = {}): Promise<Jail> {
  return await startJail({
    argv,
    uid: process.getuid?.() ?? 0,
    gid: process.getgid?.() ?? 0,
    secretFiles: [],
    readOnlyFiles: [],
    env: { PATH: "/usr/bin:/bin" },
    files: new Map(),
    roots: undefined,
    ports: [443],
    onOpen: ({ tcp, udp }) => {
      assert.deepEqual([...tcp.keys()], [443]);
      for (const server of tcp.values()) server.close();
      for (const socket of udp) socket.close();
    },
    onSharedProcesses: () => undefined,
    ...changes,
  });
}

test("startJail: the command ends with its own status", async () => {
  assert.equal(await (await start(["sh", "-c", "exit 3"])).ended, 3);
});

test("startJail: a signal that is handed on is the command's", async () => {
  const jail = await start(["sleep", "60"]);
  // Until the last exec it is a signal to a shell on its way; the command dies of the next.
  const timer = setInterval(() => jail.signal("SIGTERM"), 50);
  assert.ok([143, 125].includes(await jail.ended));
  clearInterval(timer);
  jail.signal("SIGTERM");
});

test("startJail: what cannot be taken over starts nothing", async () => {
  const failure = new Error("No");
  const onOpen = (): void => {
    throw failure;
  };
  await assert.rejects(start(["true"], { onOpen }), failure);
});

test("startJail: what the helper cannot do is told with its words", async () => {
  const files = new Map([["../../dev/null/file", Buffer.from("x")]]);
  await assert.rejects(start(["true"], { files }), {
    code: "E_CONFIG",
    message: /^The namespace cannot be set up: E[A-Z]+/,
  });
});
