/** nginx, a reader of its own mind, takes what passes the gate for exactly what was sent. Needs Debian's `nginx`. */
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import fc from "fast-check";
import { head, inside } from "../support/ask.ts";
import { type Gate, SECRET, startGate } from "../support/gate.ts";
import { type Message, statusOf } from "../support/message-reader.ts";
import { startNginx } from "../support/nginx.ts";
import { createOrigin, type Origin, respond } from "../support/origin.ts";
import { createInternet, type Internet, PUBLIC_V4 } from "../support/private-internet.ts";
import { curl } from "../support/programs.ts";

const HOST = "nginx.example.com";
const BACK = { address: "11.0.0.20", port: 8000 } as const;

let internet: Internet;
let gate: Gate;
/** Behind nginx: it tells what nginx understood. */
let back: Origin;

before(async () => {
  internet = await createInternet();
  internet.dns.set(HOST, { A: [PUBLIC_V4] });
  back = await createOrigin(internet, { ...BACK, bound: true, answer: () => respond("ok") });
  await startServer();
  gate = await startGate(internet, {
    network: { allowlist: [{ domain: HOST, transform: { Authorization: SECRET } }] },
  });
});
after(() => internet.close());

async function startServer(): Promise<void> {
  const directory = join(internet.directory, "nginx");
  mkdirSync(join(directory, "files"), { recursive: true });
  writeFileSync(join(directory, "files", "large"), Buffer.alloc(3_000_000, "0123456789"));
  const http = `
  underscores_in_headers on; ignore_invalid_headers off; merge_slashes off; client_max_body_size 0;
  server {
    listen ${PUBLIC_V4}:443 ssl;
    location / {
      proxy_pass http://${BACK.address}:${BACK.port}; proxy_http_version 1.1;
      proxy_set_header Host $http_host; proxy_set_header Connection "";
    }
    location /files/ { root ${directory}; }
  }`;
  await startNginx(internet, { directory, hosts: [HOST], address: PUBLIC_V4, http });
}

const token = fc.stringMatching(/^[A-Za-z][A-Za-z0-9_.~!#$%&'*+^`|-]{0,12}$/);
const value = fc.stringMatching(/^(?:[!-~\x80-\xff](?:[ -~\x80-\xff]{0,30}[!-~\x80-\xff])?)?$/);
const segment = fc
  .stringMatching(/^[A-Za-z0-9_.~!$&'()*+,=:@-]{1,10}$/)
  .filter((text) => !/^\.+$/.test(text));

interface Sent {
  readonly method: string;
  readonly target: string;
  readonly fields: readonly (readonly [string, string])[];
  /** Pieces; undefined: no body. */
  readonly body: readonly string[] | undefined;
  readonly chunked: boolean;
}

const sent: fc.Arbitrary<Sent> = fc.record({
  method: fc.constantFrom("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PROPFIND"),
  target: fc
    .tuple(fc.array(segment, { maxLength: 4 }), fc.option(fc.stringMatching(/^[A-Za-z0-9%20&=/?.-]{0,20}$/)))
    .map(([segments, query]) => `/${segments.join("/")}${query === null ? "" : `?${query}`}`),
  fields: fc.array(
    fc.tuple(
      token.map((name) => `X-${name}`),
      value,
    ),
    { maxLength: 8 },
  ),
  body: fc.option(
    fc.array(fc.string({ unit: "binary-ascii", minLength: 1, maxLength: 200 }), { maxLength: 5 }),
    { nil: undefined },
  ),
  chunked: fc.boolean(),
});

function bytesOf({ method, target, fields, body, chunked }: Sent): string {
  const lines = [
    `${method} ${target} HTTP/1.1`,
    `Host: ${HOST}`,
    ...fields.map(([name, text]) => `${name}: ${text}`),
  ];
  if (body === undefined) return head(...lines);
  if (!chunked) return head(...lines, `Content-Length: ${body.join("").length}`) + body.join("");
  const chunks = body.map((piece) => `${piece.length.toString(16)};x=y\r\n${piece}\r\n`);
  return `${head(...lines, "Transfer-Encoding: chunked")}${chunks.join("")}0\r\n\r\n`;
}

/** What nginx passes on of its own accord is left out. */
function understood(message: Message): unknown {
  const own = /^(host|content-length|authorization)$/i;
  return {
    start: message.start,
    body: message.body,
    fields: message.fields.filter(([name]) => !own.test(name)),
  };
}

describe("nginx behind the gate", () => {
  test("reads three hundred generated requests as they were meant, one by one on kept connections", async () => {
    const samples = fc.sample(sent, { numRuns: 300, seed: 7 });
    const wire = await inside(internet, gate, HOST);
    for (const sample of samples) {
      const count = back.requests.length;
      const answer = await wire.send(bytesOf(sample));
      assert.equal(statusOf(answer), 200, bytesOf(sample));
      assert.equal(back.requests.length, count + 1);
      const last = back.requests.at(-1) as Message;
      const meant = {
        start: `${sample.method} ${sample.target} HTTP/1.1`,
        body: (sample.body ?? []).join(""),
        fields: sample.fields,
      };
      assert.deepEqual(understood(last), meant, bytesOf(sample));
      assert.equal(last.fields.filter(([name]) => /^authorization$/i.test(name)).length, 1);
    }
  });

  test("sends static files, whole and in ranges, with its own fields", async () => {
    const whole = await curl(internet, gate.caPem, `https://${HOST}/files/large`);
    assert.equal(whole.stdout.length, 3_000_000, whole.stderr);
    const range = await curl(internet, gate.caPem, "-r", "10-19", "-i", `https://${HOST}/files/large`);
    assert.match(
      range.stdout,
      /^HTTP\/1.1 206 [\s\S]*Content-Range: bytes 10-19\/3000000[\s\S]*\r\n\r\n0123456789$/i,
    );
    const none = await curl(internet, gate.caPem, "-I", `https://${HOST}/files/absent`);
    assert.match(none.stdout, /^HTTP\/1.1 404 [\s\S]*Server: nginx/i);
  });
});
