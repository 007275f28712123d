/** Ways into a namespace that exists. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { enterNamespace } from "../../src/sandbox/enter.ts";
import { unshared } from "../support/unshared.ts";

const ORDER = {
  kind: "open",
  ports: [443],
  first: true,
  exclusive: true,
  nameServers: [],
  files: [],
} as const;

test("enterNamespace: opens listeners in it", async (context) => {
  const pid = await unshared(context);
  const ports: number[] = [];
  await enterNamespace({
    path: `/proc/${pid}/ns/net`,
    order: ORDER,
    onOpen: ({ tcp, udp }) => {
      ports.push(...tcp.keys());
      for (const server of tcp.values()) server.close();
      for (const socket of udp) socket.close();
    },
  });
  assert.deepEqual(ports, [443]);
});

test("enterNamespace: says what is none, and what was not to be had in it", async () => {
  await assert.rejects(enterNamespace({ path: "/no/such", order: ORDER, onOpen: () => assert.fail() }), {
    code: "E_CONFIG",
    message: /^The namespace \/no\/such cannot be entered \(.*No such file.*\): be root/,
  });
  await assert.rejects(enterNamespace({ path: "/etc/passwd", order: ORDER, onOpen: () => assert.fail() }), {
    code: "E_CONFIG",
    message: /^\/etc\/passwd is a file and no namespace/,
  });
});
