/** 5 GiB up and 5 GiB down through TLS interception, in HTTP/1.1 and in HTTP/2: what the gate holds does not grow with it. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import type { ServerHttp2Stream } from "node:http2";
import { after, before, describe, test } from "node:test";
import { setInterval } from "node:timers/promises";
import type { Gate } from "../support/gate.ts";
import { SECRET, startGate } from "../support/gate.ts";
import { createH2Origin } from "../support/h2-origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";
import { run } from "../support/programs.ts";

const HOST = "bulk.example.com";
const MIB = 1_048_576;
const GIB = 1_024 * MIB;
const SIZE = 5 * GIB;
const BOUND = 250 * MIB;
const PROTOCOLS = [
  { name: "HTTP/1.1", flag: "--http1.1", protocol: "http/1.1" },
  { name: "HTTP/2", flag: "--http2", protocol: "h2" },
] as const;

let internet: Internet;
let gate: Gate;

before(async () => {
  internet = await createInternet();
  internet.dns.set(HOST, { A: [PUBLIC_V4] });
  const origin = await createH2Origin(internet, {
    names: [HOST],
    bound: true,
    serve: mirror,
    options: { allowHTTP1: true },
  });
  origin.server.on("request", (request, response) => {
    if (request.httpVersionMajor > 1) return;
    response.writeHead(200);
    request.pipe(response);
  });
  gate = await startGate(internet, {
    network: { allowlist: [{ domain: HOST, transform: { "X-Key": SECRET } }] },
  });
});
after(() => internet.close());

describe("5 GiB go up and come down at once, whole, in constant memory", () => {
  for (const { name, flag, protocol } of PROTOCOLS) {
    test(name, async (context) => {
      const common = `curl -sS ${flag} --max-time 1200 --cacert ${gate.caPem} -x http://127.0.0.1:8080`;
      const script = `head -c ${SIZE} /dev/zero | ${common} -H Expect: -T - https://${HOST}/ | wc -c`;
      const before = residentBytes();
      const over = new AbortController();
      const peak = watchMemory(over.signal);
      const { stdout, stderr } = await run(internet, ["sh", "-c", script]);
      over.abort();
      assert.equal(Number(stdout), SIZE, stderr);
      const grown = (await peak) - before;
      context.diagnostic(
        `grew by ${Math.round(grown / MIB)} MiB at most, from ${Math.round(before / MIB)} MiB`,
      );
      assert.ok(grown < BOUND, `the gate grew by ${Math.round(grown / MIB)} MiB`);
      const record = await gate.record({ host: HOST, protocol, method: "PUT" });
      assert.deepEqual([record["bytes_out"], record["bytes_in"]], [SIZE, SIZE]);
    });
  }
});

function mirror(stream: ServerHttp2Stream): void {
  stream.respond({ ":status": 200 });
  stream.pipe(stream);
}

async function watchMemory(signal: AbortSignal): Promise<number> {
  let most = 0;
  try {
    for await (const _ of setInterval(100, undefined, { signal })) most = Math.max(most, residentBytes());
  } catch {
    // Aborted: the transfer is over.
  }
  return most;
}

function residentBytes(): number {
  const pages = readFileSync(`/proc/${gate.pid}/statm`, "utf8").split(" ")[1];
  return Number(pages) * 4096;
}
