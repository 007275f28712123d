import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { ExchangeRecord } from "../../src/model/record.ts";
import { LINE_BYTES, renderRecord, timestamp } from "../../src/record/render.ts";

const FIELDS =
  "time session seq sandbox client listener protocol visibility method host port path verdict reason rule would injected policy status bytes_out bytes_in duration_ms failure".split(
    " ",
  );

const BASE: ExchangeRecord = {
  time: Date.UTC(2026, 4, 1, 12, 0, 0, 7),
  sandbox: "ci-17",
  client: "10.80.0.2",
  listener: "explicit",
  protocol: "http/1.1",
  visibility: "request",
  method: "POST",
  host: "telemetry.example.com",
  port: 443,
  path: "/api/v1/agent-events",
  verdict: "allow",
  reason: "rule-allows",
  rule: "telemetry.example.com",
  would: undefined,
  injected: ["Authorization", "X-Team"],
  policy: "0123456789ab",
  status: 204,
  bytesOut: 512,
  bytesIn: 0,
  durationMs: 12.345_678,
  failure: undefined,
  overheadMs: 0.2,
};

const hostile = fc
  .array(
    fc.oneof(
      fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)),
      fc.string({ unit: "binary", maxLength: 300 }),
    ),
    { maxLength: 40 },
  )
  .map((parts) => parts.join(""));

test("renderRecord writes the fields in their order, on one line that ends in a newline", () => {
  const line = renderRecord(BASE, "s-1", 42);
  assert.equal(
    line,
    '{"time":"2026-05-01T12:00:00.007Z","session":"s-1","seq":42,"sandbox":"ci-17","client":"10.80.0.2","listener":"explicit","protocol":"http/1.1","visibility":"request","method":"POST","host":"telemetry.example.com","port":443,"path":"/api/v1/agent-events","verdict":"allow","reason":"rule-allows","rule":"telemetry.example.com","would":null,"injected":["Authorization","X-Team"],"policy":"0123456789ab","status":204,"bytes_out":512,"bytes_in":0,"duration_ms":12.346,"failure":null}\n',
  );
  assert.deepEqual(Object.keys(JSON.parse(line)), FIELDS);
});

test("renderRecord writes null for what is undefined, and an empty list of injections", () => {
  const line = renderRecord(
    {
      ...BASE,
      sandbox: undefined,
      method: undefined,
      host: undefined,
      port: undefined,
      path: undefined,
      verdict: "deny",
      reason: undefined,
      rule: undefined,
      injected: [],
      status: undefined,
      failure: "E_BAD_REQUEST",
    },
    "s",
    1,
  );
  const read = JSON.parse(line);
  for (const key of ["sandbox", "method", "host", "port", "path", "reason", "rule", "would", "status"]) {
    assert.equal(read[key], null, key);
  }
  assert.deepEqual(read.injected, []);
  assert.equal(read.failure, "E_BAD_REQUEST");
});

test("renderRecord gives one short line of printable ASCII for any text in any field", () => {
  fc.assert(
    fc.property(fc.array(hostile, { minLength: 8, maxLength: 8 }), fc.array(hostile), (texts, injected) => {
      const [sandbox, client = "", method, host, path, rule, policy = "", session = ""] = texts;
      const line = renderRecord(
        { ...BASE, sandbox, client, method, host, path, rule, policy, injected },
        session,
        7,
      );
      assert.match(line, /^[ -~]*\n$/);
      assert.ok(line.length <= LINE_BYTES, `${line.length}`);
      const read = JSON.parse(line);
      assert.deepEqual(Object.keys(read), FIELDS);
      for (const [key, text] of Object.entries({ sandbox, client, method, host, path, rule, policy })) {
        assert.ok(
          read[key] === text || (read[key].endsWith("…") && text?.startsWith(read[key].slice(0, -1))),
          key,
        );
      }
    }),
  );
});

test("renderRecord keeps the longest line that there can be within one atomic write", () => {
  const long = '"'.repeat(5_000);
  const line = renderRecord(
    {
      ...BASE,
      time: Number.POSITIVE_INFINITY,
      sandbox: long,
      client: long,
      method: long,
      host: long,
      port: 65_535,
      path: long,
      reason: "placeholder-misplaced",
      rule: long,
      would: "deny",
      injected: Array(100).fill("X-Some-Header-Of-Forty-Letters-In-Its-Name"),
      policy: long,
      bytesOut: Number.MAX_VALUE,
      bytesIn: Number.MAX_VALUE,
      durationMs: 123_456_789_012.123,
      failure: "E_UPSTREAM_PROTOCOL",
    },
    long,
    Number.MAX_SAFE_INTEGER,
  );
  assert.ok(line.length <= LINE_BYTES, `${line.length}`);
  assert.ok(JSON.parse(line).path.length > 500);
});

test("renderRecord keeps a long path whole where the line has room for it", () => {
  const path = `/${"a".repeat(1_023)}`;
  assert.equal(JSON.parse(renderRecord({ ...BASE, path }, "s", 1)).path, path);
});

test("renderRecord leaves out names of injections past their room and says so", () => {
  const injected = Array.from({ length: 200 }, (_, at) => `X-Field-${at}`);
  const read = JSON.parse(renderRecord({ ...BASE, injected }, "s", 1)).injected as string[];
  assert.equal(read.at(-1), "…");
  assert.deepEqual(read.slice(0, -1), injected.slice(0, read.length - 1));
  assert.deepEqual(JSON.parse(renderRecord({ ...BASE, injected: ["x".repeat(2_000)] }, "s", 1)).injected, [
    "…",
  ]);
});

test("renderRecord writes null for a number that JSON does not know", () => {
  const read = JSON.parse(
    renderRecord(
      { ...BASE, bytesOut: Number.NaN, durationMs: Number.NaN, port: Number.POSITIVE_INFINITY },
      "s",
      1,
    ),
  );
  assert.deepEqual([read.bytes_out, read.duration_ms, read.port], [null, null, null]);
});

test("timestamp agrees with Date for every millisecond, whatever came before it", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 4_102_444_800_000 })), (times) => {
      for (const time of times) {
        for (const near of [time, time + 1, time + 999, time]) {
          assert.equal(timestamp(near), new Date(near).toISOString());
        }
      }
    }),
  );
});

test("timestamp clamps what no calendar holds", () => {
  assert.equal(timestamp(Number.NaN), "1970-01-01T00:00:00.000Z");
  assert.equal(timestamp(-5), "1970-01-01T00:00:00.000Z");
  assert.equal(timestamp(Number.POSITIVE_INFINITY), "9999-12-31T23:59:59.999Z");
});
