import assert from "node:assert/strict";
import { test } from "node:test";
import type { ExchangeRecord } from "../../src/model/record.ts";
import { createMetrics } from "../../src/record/metrics.ts";
import { createRecorder } from "../../src/record/recorder.ts";
import type { RecordWriter } from "../../src/record/writer.ts";

const RECORD = {
  time: 0,
  client: "127.0.0.1",
  listener: "explicit",
  protocol: "http/1.1",
  visibility: "request",
  verdict: "allow",
  reason: "rule-allows",
  injected: [],
  policy: "0123456789ab",
  bytesOut: 0,
  bytesIn: 0,
  durationMs: 1,
} as unknown as ExchangeRecord;

function setUp(write: (line: string) => void) {
  const none: string[] = [];
  const metrics = createMetrics({ version: "0", node: "0", rules: () => none, sandboxes: () => none });
  const writer = { write } as RecordWriter;
  const logged: unknown[] = [];
  const note = (...line: unknown[]) => void logged.push(line);
  const log = { error: note, warn: note };
  return { metrics, logged, recorder: createRecorder({ metrics, writer, log, session: "s-1" }) };
}

test("createRecorder writes each exchange under one session with a rising number, and counts it", async () => {
  const lines: string[] = [];
  const { metrics, recorder } = setUp((line) => lines.push(line));
  recorder.exchange(RECORD);
  recorder.exchange(RECORD);
  const read = lines.map((line) => JSON.parse(line));
  assert.deepEqual(
    read.map(({ session, seq }) => [session, seq]),
    [
      ["s-1", 1],
      ["s-1", 2],
    ],
  );
  assert.match(await metrics.text(), /verdict="allow",reason="rule-allows"} 2\n/);
});

test("exchange never throws: what cannot be written is counted as dropped and leaves a gap in the numbers", async () => {
  const lines: string[] = [];
  const { metrics, recorder } = setUp((line) => {
    if (lines.length === 0) {
      lines.push(line);
    } else {
      throw new Error("No");
    }
  });
  recorder.exchange(RECORD);
  recorder.exchange({ ...RECORD, injected: undefined as unknown as string[] });
  recorder.exchange(RECORD);
  assert.match(await metrics.text(), /^sallyport_records_dropped_total 2$/m);
});

test("exchange tells the operator of an origin that sent a secret back, by rule and host", () => {
  const { recorder, logged } = setUp(() => undefined);
  recorder.exchange({ ...RECORD, scrubbed: false });
  recorder.exchange({ ...RECORD, rule: "r", host: "a.example.com", scrubbed: true });
  assert.deepEqual(logged, [
    ["An answer held a secret, which was masked", { rule: "r", host: "a.example.com" }],
  ]);
});

test("broke puts what it was into the operator's log, by the kind of fault and not by what it says", () => {
  const { recorder, logged } = setUp(() => undefined);
  const [cause, again] = ["Something inside", "Something else"].map((text) => new TypeError(text));
  const coded = Object.assign(new Error("No file"), { code: "ENOENT" });
  for (const one of [cause, again, coded, "a string"]) recorder.broke(one);
  const bare = new Error("No frames");
  bare.stack = "Error: No frames";
  recorder.broke(bare);
  delete bare.stack;
  recorder.broke(bare);
  const said = "Something broke in the gate";
  const seen = logged as [message: string, fields: { stack: string }, kind: string][];
  assert.deepEqual(
    seen.map(([message, { stack }]) => [message, stack]),
    [cause?.stack, again?.stack, coded.stack, "no stack", "Error: No frames", "No frames"].map((stack) => [
      said,
      stack,
    ]),
  );
  const kinds = seen.map(([, , kind]) => kind);
  assert.match(kinds[0] ?? "", /^TypeError at recorder\.test\.ts:\d+:\d+$/);
  assert.equal(kinds[1], kinds[0]);
  assert.match(kinds[2] ?? "", /^Error ENOENT at recorder\.test\.ts:\d+:\d+$/);
  assert.deepEqual(kinds.slice(3), ["no error", "Error at nowhere", "Error at nowhere"]);
});

test("createRecorder passes the other events on to the metrics", async () => {
  const { metrics, recorder } = setUp(() => undefined);
  recorder.connectionOpened("socks");
  recorder.connectionOpened("explicit");
  recorder.connectionClosed("explicit");
  recorder.upstreamConnected(5);
  recorder.leafCertificate("cached");
  const text = await metrics.text();
  assert.match(text, /^sallyport_connections{listener="socks"} 1$/m);
  assert.match(text, /^sallyport_connections{listener="explicit"} 0$/m);
  assert.match(text, /^sallyport_upstream_connect_seconds_count 1$/m);
  assert.match(text, /^sallyport_leaf_certificates_total{source="cached"} 1$/m);
});
