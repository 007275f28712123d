/** Bodies of any size pass in constant memory, and no faster than whoever takes them (I10, I13). */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { head, inside } from "../support/ask.ts";
import type { Gate } from "../support/gate.ts";
import { startGate } from "../support/gate.ts";
import type { Connection } from "../support/origin.ts";
import { createOrigin } from "../support/origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";
import { run } from "../support/programs.ts";

const HOST = "flood.example.com";
const MIRROR = "mirror.example.com";
const MIB = 1_048_576;

let internet: Internet;
let gate: Gate;

before(async () => {
  internet = await createInternet();
  internet.dns.set(HOST, { A: [PUBLIC_V4] });
  internet.dns.set(MIRROR, { A: ["11.0.0.11"] });
  const allowlist = [HOST, MIRROR].map((domain) => ({ domain, intercept: "always" }));
  gate = await startGate(internet, { network: { allowlist } });
});
after(() => internet.close());

describe("large bodies", () => {
  test("of 192 MiB go up and come down whole, and the gate does not grow with them", async () => {
    const size = 192 * MIB;
    await createOrigin(internet, {
      address: "11.0.0.11",
      tls: [MIRROR],
      serve: ({ socket }) => mirror(socket, size),
    });
    const before = residentBytes(gate.pid);
    const up = join(internet.directory, "up");
    const args = `--cacert ${gate.caPem} -x http://127.0.0.1:8080 -H Expect: -T ${up} https://${MIRROR}/`;
    const script = `head -c ${size} /dev/urandom > ${up}; sha256sum < ${up}; curl -sS --max-time 50 ${args} | sha256sum`;
    const outcome = await run(internet, ["sh", "-c", script]);
    const [sentSum, gotSum] = outcome.stdout.split("\n");
    assert.equal(gotSum, sentSum, outcome.stderr);
    const grown = residentBytes(gate.pid) - before;
    assert.ok(grown < 120 * MIB, `the gate grew by ${Math.round(grown / MIB)} MiB`);
    const record = await gate.record({ host: MIRROR });
    assert.deepEqual([record["bytes_out"], record["bytes_in"]], [size, size]);
  });

  test("that the client does not read are not read from the origin either", async () => {
    let written = 0;
    const far = await createOrigin(internet, {
      tls: [HOST],
      serve: ({ socket }) => {
        socket.once("data", () => {
          socket.write(head("HTTP/1.1 200 OK", `Content-Length: ${1024 * MIB}`));
          const piece = Buffer.alloc(65_536);
          function more(): void {
            while (socket.writable && socket.write(piece)) written += piece.length;
          }
          socket.on("drain", more);
          more();
        });
      },
    });
    const wire = await inside(internet, gate, HOST);
    wire.write(head("GET / HTTP/1.1", `Host: ${HOST}`));
    await wire.until("the beginning", (text) => text.length > 0);
    wire.socket.pause();
    let last = -1;
    while (last !== written) {
      last = written;
      await new Promise((resolve) => setTimeout(resolve, 150));
    }
    assert.ok(written < 48 * MIB, `${Math.round(written / MIB)} MiB were taken`);
    wire.destroy();
    await far.until("the end of the upstream connection", () => far.connections.at(-1)?.closed === true);
  });
});

/** Sends the body back while it comes. */
function mirror(socket: Connection["socket"], size: number): void {
  let before = Buffer.alloc(0);
  let seenHead = false;
  socket.on("data", (bytes: Buffer) => {
    let body = bytes;
    if (!seenHead) {
      before = Buffer.concat([before, bytes]);
      const end = before.indexOf("\r\n\r\n");
      if (end < 0) return;
      seenHead = true;
      body = before.subarray(end + 4);
      socket.write(head("HTTP/1.1 200 OK", `Content-Length: ${size}`));
    }
    if (socket.write(body)) return;
    socket.pause();
    socket.once("drain", () => socket.resume());
  });
}

function residentBytes(pid: number): number {
  const pages = readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[1];
  return Number(pages) * 4096;
}
