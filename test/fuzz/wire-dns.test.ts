/** Whatever bytes come as DNS: nothing throws, and what is read is what another codec reads. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as packet from "dns-packet";
import fc from "fast-check";
import { readDnsQuery, renderDnsAnswer } from "../../src/wire/dns-message.ts";

const label = fc.stringMatching(/^[a-z0-9_-]{1,63}$/);
const name = fc
  .array(label, { minLength: 1, maxLength: 8 })
  .map((labels) => labels.join("."))
  .filter((text) => text.length <= 253);

test("readDnsQuery: any bytes are a query, an answer to give, or nothing", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 600 }), (bytes) => {
      const message = Buffer.from(bytes);
      const read = readDnsQuery(message);
      if (read.kind === "answer") assert.ok(read.bytes.length <= 600);
      if (read.kind === "query") packet.decode(message);
    }),
    { numRuns: 2_000 },
  );
});

test("readDnsQuery: a query cut anywhere, or with any byte changed, does no harm", () => {
  fc.assert(
    fc.property(name, fc.nat(), fc.nat(255), (text, at, byte) => {
      const message = packet.encode({ type: "query", id: 1, questions: [{ type: "A", name: text }] });
      readDnsQuery(message.subarray(0, at % message.length));
      message[at % message.length] = byte;
      readDnsQuery(message);
    }),
    { numRuns: 2_000 },
  );
});

test("readDnsQuery, renderDnsAnswer: a name survives the way there and back", () => {
  fc.assert(
    fc.property(name, fc.uint8Array({ minLength: 4, maxLength: 4 }), (text, octets) => {
      const read = readDnsQuery(
        packet.encode({ type: "query", id: 7, questions: [{ type: "A", name: text }] }),
      );
      assert.ok(read.kind === "query");
      assert.equal(read.query.name, text);
      const answer = packet.decode(
        renderDnsAnswer(read.query, { code: 0, data: [Buffer.from(octets)], ttl: 5 }),
      );
      assert.deepEqual(
        answer.answers?.map((one) => ("data" in one ? one.data : undefined)),
        [octets.join(".")],
      );
    }),
  );
});
