import assert from "node:assert/strict";
import { PassThrough, Writable } from "node:stream";
import { mock, test } from "node:test";
import fc from "fast-check";
import { createLog, type Log } from "../../src/record/log.ts";

function setUp(redact: (text: string) => string = (text) => text): { log: Log; text: () => string } {
  const stream = new PassThrough();
  let text = "";
  return { log: createLog(stream, redact), text: () => (text += stream.read()?.toString("utf8") ?? "") };
}

test("createLog writes time, level, message and fields on one line", () => {
  const { log, text } = setUp();
  log.info("Listening", { address: "127.0.0.1:8080", workers: 2, enforcing: true, skipped: undefined });
  log.warn("Config was not taken up", { problem: 'key "x" is unknown', file: "/etc/sallyport.yaml" });
  log.error("Something broke");
  assert.match(
    text(),
    /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z info "Listening" address=127\.0\.0\.1:8080 workers=2 enforcing=true\n\S+ warn "Config was not taken up" problem="key \\"x\\" is unknown" file=\/etc\/sallyport\.yaml\n\S+ error "Something broke"\n$/,
  );
  log.flush();
});

test("createLog never breaks a line or a terminal, whatever a field holds", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 3_000 }), (value) => {
      const { log, text } = setUp();
      log.warn("Odd", { value: `\u001b[31m\n${value}\u2028` });
      assert.match(text(), /^[ -~]+\n$/);
      log.flush();
    }),
  );
});

test("createLog redacts before it cuts or escapes, so that no part of a secret is left", () => {
  const secret = 'hunter2-"quoted"-and-long';
  const { log, text } = setUp((value) => value.replaceAll(secret, "[redacted]"));
  log.error(`Broke at ${secret}`, { head: `x${secret}`, tail: `${"a".repeat(1_010)}${secret}` });
  assert.ok(!text().includes("hunter2"));
  assert.match(text(), /"Broke at \[redacted\]"/);
  log.flush();
});

test("createLog shows nothing of a text whose redaction failed", () => {
  const { log, text } = setUp(() => {
    throw new Error("No secrets today");
  });
  log.error("Secret thing", { value: "secret value" });
  assert.match(text(), /error "\[not shown\]" value="\[not shown\]"\n$/);
  log.flush();
});

test("createLog holds back a message that repeats, says how often, and starts afresh", () => {
  mock.timers.enable({ apis: ["setTimeout", "Date"] });
  try {
    const { log, text } = setUp();
    for (let at = 0; at < 50_000; at += 1) {
      log.warn("Refused", { host: `h${at}.example` });
    }
    log.error("Refused");
    assert.equal(text().split("\n").length - 1, 11);
    mock.timers.tick(10_000);
    assert.match(text(), /warn "Refused" suppressed=49990\n$/);
    log.warn("Refused", { host: "again.example" });
    assert.match(text(), /host=again\.example\n$/);
    mock.timers.tick(10_000);
    assert.match(text(), /host=again\.example\n$/);
  } finally {
    mock.timers.reset();
  }
});

test("createLog says a fault once for each of its kinds, and how often each came", () => {
  mock.timers.enable({ apis: ["setTimeout", "Date"] });
  try {
    const { log, text } = setUp();
    for (let at = 0; at < 1_000; at += 1) log.error("Broke", { stack: `one ${at}` }, "TypeError at a.ts:1:2");
    log.error("Broke", { stack: "two" }, "RangeError at b.ts:3:4");
    assert.match(text(), /^\S+ error "Broke" stack="one 0"\n\S+ error "Broke" stack=two\n$/);
    mock.timers.tick(10_000);
    assert.match(text(), /\n\S+ error "Broke" kind="TypeError at a\.ts:1:2" suppressed=999\n$/);
    log.error("Broke", { stack: "one again" }, "TypeError at a.ts:1:2");
    assert.match(text(), /stack="one again"\n$/);
    log.flush();
    assert.match(text(), /stack="one again"\n$/);
  } finally {
    mock.timers.reset();
  }
});

test("createLog remembers a bounded number of messages", () => {
  const { log, text } = setUp();
  for (let at = 0; at < 1_000; at += 1) {
    log.warn(`Message ${at}`);
  }
  log.flush();
  const lines = text().trimEnd().split("\n");
  assert.equal(lines.length, 256 + 10 + 1);
  assert.match(lines.at(-1) ?? "", /warn "Other messages" suppressed=734$/);
});

test("createLog holds back what a stalled reader does not take, and survives one that is gone", () => {
  const stalled = new Writable({ write: () => undefined });
  stalled.write(Buffer.alloc(2_000_000));
  const log = createLog(stalled, (text) => text);
  log.error("Unheard");
  assert.equal(stalled.writableLength, 2_000_000);
  assert.doesNotThrow(() => stalled.emit("error", new Error("EPIPE")));
  log.flush();
});
