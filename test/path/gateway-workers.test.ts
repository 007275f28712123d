/** Several workers and one gateway: the names that its DNS gave out are known where the connections arrive. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Box } from "../support/box.ts";
import { boxAddress, createBox, forward, shell } from "../support/box.ts";
import type { Gate } from "../support/gate.ts";
import { startGate } from "../support/gate.ts";
import { createOrigin, respond } from "../support/origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";

const ALL = `${"server speaks first\n".repeat(20)}ok`;

let internet: Internet;
let gate: Gate;
let box: Box;

before(async () => {
  internet = await createInternet();
  for (const name of ["api.test", "db.test"]) internet.dns.set(name, { A: [PUBLIC_V4] });
  await createOrigin(internet, { answer: () => respond("ok") });
  await createOrigin(internet, {
    port: 5432,
    serve: ({ socket }) => void socket.end("server speaks first\n"),
  });
  await forward(internet);
  box = await createBox(internet, { link: "sbx0", net: 80, host: 2, mac: "02:00:00:00:00:11" });
  gate = await startGate(internet, {
    workers: 3,
    listen: {
      admin: "127.0.0.1:9464",
      gateway: { address: "[::]:15001", dns: "[::]:15053", interfaces: ["sbx0"] },
    },
    sandboxes: [
      {
        id: "box",
        source: [boxAddress(80, 2).v4],
        network: {
          allowlist: [{ domain: "api.test" }, { domain: "db.test", ports: [5432], protocol: "tcp" }],
        },
      },
    ],
  });
});
after(() => internet.close());

/** Twenty connections, of which some would meet a worker that did not answer for the name. */
function connectAll(): ReturnType<Box["run"]> {
  const script =
    "for i in $(seq 20); do (exec 3<>/dev/tcp/db.test/5432; head -1 <&3) & done; wait; curl -sS --max-time 5 http://api.test/";
  return box.run(["bash", "--norc", "-c", script]);
}

test("every connection finds the name that its address stands for", async () => {
  const { stdout, stderr } = await connectAll();
  assert.equal(stdout, ALL, stderr);
});

test("a worker that dies takes nothing with it that its successor does not learn anew", async () => {
  const children = await shell(internet.gate, [`ps -o pid= --ppid ${gate.pid}`]);
  const workers = children.trim().split(/\s+/);
  assert.ok(workers.length >= 3, children);
  for (const pid of workers) process.kill(Number(pid), "SIGKILL");
  await gate.untilLogged(/(?:A worker died[\s\S]*?){3}/);
  const end = Date.now() + 10_000;
  let last = await connectAll();
  while (last.stdout !== ALL && Date.now() < end) last = await connectAll();
  assert.equal(last.stdout, ALL, last.stderr);
});
