/** An origin that sends back all that it was sent: the secret never arrives, in whatever coding it comes. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import {
  brotliCompressSync,
  deflateRawSync,
  deflateSync,
  gunzipSync,
  gzipSync,
  zstdCompressSync,
} from "node:zlib";
import { askInside, head } from "../support/ask.ts";
import type { Gate } from "../support/gate.ts";
import { SECRET, startGate } from "../support/gate.ts";
import { openH2 } from "../support/h2-client.ts";
import { createH2Origin } from "../support/h2-origin.ts";
import type { Message } from "../support/message-reader.ts";
import { oneValue } from "../support/message-reader.ts";
import { createOrigin, respond } from "../support/origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";

const HOST = "echo.example.com";
const OFF = "off.example.com";
const H2 = "h2.example.com";
const STARS = /\*{36}/;

const CODINGS: Readonly<Record<string, (bytes: Buffer) => Buffer>> = {
  identity: (bytes) => bytes,
  gzip: (bytes) => gzipSync(bytes),
  deflate: (bytes) => deflateSync(bytes),
  br: (bytes) => brotliCompressSync(bytes),
  zstd: (bytes) => zstdCompressSync(bytes),
  "gzip, br": (bytes) => brotliCompressSync(gzipSync(bytes)),
};

let internet: Internet;
let gate: Gate;
/** What the origins answer with, and how they cut it. */
let reply: (secret: string) => string | Buffer = () => "";

/** What ranges are answered of, by every server's rules: several in one, one, or the whole. */
let partial: string | undefined;

function partOf(page: string, request: Message): string {
  const ranges = (oneValue(request, "range") ?? "").replace("bytes=", "").split(",");
  const parts = ranges.map((range) => {
    const [first = "", last = ""] = range.split("-");
    return page.slice(Number(first), last === "" ? undefined : Number(last) + 1);
  });
  if (ranges[0] === "") return respond(page);
  const body = parts.length === 1 ? String(parts[0]) : parts.join("\r\n--part\r\n\r\n");
  return respond(body, "206 Partial Content");
}

/** The secret in each form that it may be written in, on a line of its own. */
function everyForm(secret: string): string {
  const bytes = Buffer.from(secret);
  return [
    `Bearer ${secret}`,
    JSON.stringify({ secret }),
    encodeURIComponent(secret),
    encodeURIComponent(secret).toLowerCase(),
    new URLSearchParams({ secret }).toString(),
    bytes.toString("hex"),
    ...["", "u", "us"].map((user) => Buffer.from(`${user}${secret}`).toString("base64")),
    ...["", "u", "us"].map((user) => Buffer.from(`${user}${secret}`).toString("base64url")),
    secret.toUpperCase(),
    secret.replaceAll("+", "&#43;"),
    secret.replaceAll(/[+/=]/g, (char) => `&#x${char.charCodeAt(0).toString(16)};`),
    secret.replaceAll(/[+/=]/g, (char) => `\\x${char.charCodeAt(0).toString(16)}`),
  ].join("\n");
}

function answer(lines: readonly string[], body: Buffer, chunk: number | undefined): Buffer {
  if (chunk === undefined) {
    const text = head("HTTP/1.1 200 OK", ...lines, `Content-Length: ${body.length}`);
    return Buffer.concat([Buffer.from(text, "latin1"), body]);
  }
  const parts: Buffer[] = [
    Buffer.from(head("HTTP/1.1 200 OK", ...lines, "Transfer-Encoding: chunked"), "latin1"),
  ];
  for (let at = 0; at < body.length; at += chunk) {
    const piece = body.subarray(at, at + chunk);
    parts.push(Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from("\r\n"));
  }
  return Buffer.concat([...parts, Buffer.from("0\r\n\r\n")]);
}

before(async () => {
  internet = await createInternet();
  for (const name of [HOST, OFF]) internet.dns.set(name, { A: [PUBLIC_V4] });
  internet.dns.set(H2, { A: ["11.0.0.11"] });
  await createOrigin(internet, {
    tls: [HOST, OFF],
    bound: true,
    answer: (request) => (partial === undefined ? reply(internet.canary.secret) : partOf(partial, request)),
  });
  await createH2Origin(internet, {
    address: "11.0.0.11",
    names: [H2],
    bound: true,
    serve: (stream) => {
      const secret = internet.canary.secret;
      stream.respond(
        { ":status": 200, "content-encoding": "gzip", "x-echo": secret },
        { waitForTrailers: true },
      );
      stream.on("wantTrailers", () => stream.sendTrailers({ "x-trailer": secret }));
      stream.end(gzipSync(everyForm(secret)));
    },
  });
  const transform = { Authorization: `Bearer ${SECRET}` };
  const allowlist = [
    { domain: HOST, transform },
    { domain: OFF, transform, scrub: false },
    { domain: H2, transform },
  ];
  gate = await startGate(internet, { network: { allowlist } });
});
after(() => internet.close());

function assertClean(text: string, why: string): void {
  const { secret } = internet.canary;
  for (const line of everyForm(secret).split("\n")) {
    const core = line.length > 30 ? line.slice(4, -4) : line;
    assert.equal(text.includes(core), false, `${why}: ${line.slice(0, 12)}`);
  }
  assert.match(text, STARS, why);
}

function textOf(message: Message): string {
  return JSON.stringify(message) + message.body;
}

describe("an origin that echoes the secret in every form", () => {
  for (const [coding, encode] of Object.entries(CODINGS)) {
    for (const chunk of [undefined, 1, 7, 1_000]) {
      test(`in ${coding}, ${chunk === undefined ? "by length" : `in chunks of ${chunk}`}`, async () => {
        reply = (secret) => {
          const lines = [`X-Echo: ${secret}`, `Content-Encoding: ${coding}`];
          return answer(lines, encode(Buffer.from(everyForm(secret))), chunk);
        };
        const message = await askInside(internet, gate, HOST);
        assertClean(textOf(message), coding);
        assert.equal(message.body.length, everyForm(internet.canary.secret).length);
      });
    }
  }

  test("in raw deflate, and in a reason phrase, an interim head and a redirect", async () => {
    reply = (secret) =>
      Buffer.concat([
        Buffer.from(head("HTTP/1.1 103 Early Hints", `Link: <${secret}>`), "latin1"),
        Buffer.from(
          answer(
            [`Location: /?${encodeURIComponent(secret)}`, "Content-Encoding: deflate"],
            deflateRawSync(Buffer.from(everyForm(secret))),
            undefined,
          )
            .toString("latin1")
            .replace("200 OK", `302 ${secret}`),
          "latin1",
        ),
      ]);
    assertClean(textOf(await askInside(internet, gate, HOST)), "all of a redirect");
  });

  test("over HTTP/2, in gzip, fields and trailers", async () => {
    const client = await openH2(internet, gate, H2);
    const answered = await client.ask([":path", "/"]);
    assertClean(JSON.stringify(answered), "HTTP/2");
  });
});

test("an origin that echoes secrets is counted and told of, without the secret", async () => {
  await gate.untilLogged(/warn "An answer held a secret/);
  const metrics = await gate.metrics();
  assert.ok(metrics.sum("sallyport_scrubbed_total", { rule: HOST }) >= 20);
  const told = `warn "An answer held a secret, which was masked" rule=${HOST} host=${HOST}`;
  assert.ok(gate.log.includes(told));
  assert.equal(gate.log.includes(internet.canary.secret), false);
});

test("a client that asks for UTF-16 gets no secret in it, and one that asks for EBCDIC gets no answer", async () => {
  for (const charset of ["utf-16le", "utf-16be"]) {
    reply = (secret) => {
      const wide = Buffer.from(`you said ${secret}`, "utf16le");
      const body = charset === "utf-16be" ? wide.swap16() : wide;
      return answer([`Content-Type: text/plain; charset=${charset}`], body, undefined);
    };
    const { body } = await askInside(internet, gate, HOST);
    const text = body.replaceAll("\0", "");
    assert.match(text, /^you said \*+$/, charset);
  }
  reply = (secret) => answer(["Content-Type: text/plain; charset=IBM1047"], Buffer.from(secret), undefined);
  assert.match(textOf(await askInside(internet, gate, HOST)), /E_UPSTREAM_PROTOCOL/);
});

test("a picture with a coding is decoded, and searched like all else", async () => {
  reply = (secret) =>
    answer(["Content-Type: image/png", "Content-Encoding: gzip"], gzipSync(Buffer.from(secret)), undefined);
  assert.match((await askInside(internet, gate, HOST)).body, /^\*+$/);
});

test("no series of ranges puts a secret together: neither halves, nor small parts, nor many in one", async () => {
  const { secret } = internet.canary;
  const page = `${"a".repeat(2_000)}${secret}${"b".repeat(2_000)}`;
  const asked = async (range: string): Promise<string> =>
    (
      await askInside(
        internet,
        gate,
        HOST,
        head("GET / HTTP/1.1", `Host: ${HOST}`, ...(range === "" ? [] : [`Range: bytes=${range}`])),
      )
    ).body;
  partial = page;
  let pieces = "";
  for (let at = 2_000; at < 2_000 + secret.length; at += 4) pieces += await asked(`${at}-${at + 3}`);
  const half = 2_000 + Math.floor(secret.length / 2);
  const halves = (await asked(`0-${half - 1}`)) + (await asked(`${half}-`));
  const many = await asked(`2000-2011,${2_000 + 12}-2023,2024-2060`);
  const inside = await asked("2008-2020");
  partial = undefined;
  for (const text of [pieces, halves, many]) assert.ok(!text.includes(secret.slice(8, -8)), text);
  assert.equal(halves, `${"a".repeat(2_000)}${"*".repeat(secret.length)}${"b".repeat(2_000)}`);
  assert.equal(inside, "*".repeat(13));
});

test("a coding that cannot be read is refused", async () => {
  reply = (secret) => answer(["Content-Encoding: compress"], Buffer.from(secret), undefined);
  const refused = textOf(await askInside(internet, gate, HOST));
  assert.match(refused, /E_UPSTREAM_PROTOCOL/);
});

test("an answer without the secret passes byte for byte; so does everything where scrub is off", async () => {
  const body = Buffer.from("nothing to see\n".repeat(1_000));
  reply = () => answer([], body, 777);
  const plain = await askInside(internet, gate, HOST);
  assert.deepEqual(Buffer.from(plain.body, "latin1"), body);
  reply = () => answer(["Content-Encoding: gzip"], gzipSync(body), undefined);
  const off = await askInside(internet, gate, OFF);
  assert.deepEqual(gunzipSync(Buffer.from(off.body, "latin1")), body);
});
