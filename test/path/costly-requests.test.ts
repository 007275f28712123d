/** Requests and answers that are cheap to make and might be dear to serve: what they cost the gate is bounded. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { brotliCompressSync, constants, zstdCompressSync } from "node:zlib";
import { askInside, head } from "../support/ask.ts";
import type { Gate } from "../support/gate.ts";
import { SECRET, startGate } from "../support/gate.ts";
import { statusOf } from "../support/message-reader.ts";
import { createOrigin, type Reply, respond } from "../support/origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";

const BUCKET = "bucket.s3.eu-west-1.amazonaws.com";

let internet: Internet;
let gate: Gate;
let reply: Reply = respond("ok");

before(async () => {
  internet = await createInternet();
  internet.dns.set(BUCKET, { A: [PUBLIC_V4] });
  await createOrigin(internet, { tls: [BUCKET], bound: true, answer: () => reply });
  const place = { region: "eu-west-1", service: "s3" };
  const keys = { access_key_id: "AKIDEXAMPLE", secret_access_key: SECRET };
  gate = await startGate(internet, {
    workers: 1,
    limits: { decoding_bytes_per_sandbox: "1MiB" },
    credentials: [{ id: "bucket", type: "aws_sigv4", ...keys, ...place }],
    network: { allowlist: [{ domain: BUCKET, credential: "bucket" }] },
  });
});
after(() => internet.close());

/** Seconds of a processor that the gate used. */
function spent(): number {
  const fields = readFileSync(`/proc/${gate.pid}/stat`, "latin1")
    .replace(/^.*\) /s, "")
    .split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

test("a signed form of millions of pairs and a query of a thousand names are served in a moment", async () => {
  await askInside(internet, gate, BUCKET);
  const form = "A=x&".repeat(2_000_000);
  const names = Array.from({ length: 1_000 }, (_, at) => `name-${at}`).join("&");
  const lines = [`Host: ${BUCKET}`, "Content-Type: application/x-www-form-urlencoded"];
  const posted = head("POST / HTTP/1.1", ...lines, `Content-Length: ${form.length}`) + form;
  const queried = head(`GET /?${names} HTTP/1.1`, `Host: ${BUCKET}`);
  const before = spent();
  for (const bytes of [posted, queried]) {
    assert.equal(statusOf(await askInside(internet, gate, BUCKET, bytes)), 200);
  }
  assert.ok(spent() - before < 1.5, `${spent() - before} s`);
});

test("an answer that asks for 128 MiB to be decoded is broken off", async () => {
  const params = { [constants.ZSTD_c_windowLog]: 27 };
  const body = zstdCompressSync(Buffer.alloc(150_000_000, "a line of a large file\n"), { params });
  const lines = ["Content-Encoding: zstd", `Content-Length: ${body.length}`];
  reply = Buffer.concat([Buffer.from(head("HTTP/1.1 200 OK", ...lines)), body]);
  const answer = await askInside(internet, gate, BUCKET);
  assert.deepEqual([answer.complete, answer.body], [false, ""]);
  assert.equal((await gate.record({ failure: "E_UPSTREAM_PROTOCOL" }))["host"], BUCKET);
});

test("what decoders keep for a sandbox is bounded, and free again once an answer is over", async () => {
  const coded = (length: number): Buffer => {
    const body = brotliCompressSync(Buffer.alloc(length, "a line of a large file\n"));
    const lines = ["Content-Encoding: br", `Content-Length: ${body.length}`];
    return Buffer.concat([Buffer.from(head("HTTP/1.1 200 OK", ...lines)), body]);
  };
  reply = coded(3_000_000);
  assert.equal((await askInside(internet, gate, BUCKET)).complete, false);
  reply = coded(1_000_000);
  for (let at = 0; at < 3; at++) {
    const answer = await askInside(internet, gate, BUCKET);
    assert.deepEqual([answer.complete, answer.body.length], [true, 1_000_000]);
  }
});
