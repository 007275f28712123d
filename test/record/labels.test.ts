import assert from "node:assert/strict";
import { test } from "node:test";
import type { ExchangeRecord } from "../../src/model/record.ts";
import {
  createExchangeCells,
  isUpstreamCode,
  LISTENERS,
  PROTOCOLS,
  REASONS,
  VERDICTS,
} from "../../src/record/labels.ts";

function record(over: Partial<ExchangeRecord>): ExchangeRecord {
  return {
    listener: "explicit",
    protocol: "http/1.1",
    verdict: "allow",
    reason: "rule-allows",
    ...over,
  } as ExchangeRecord;
}

function everyCombination(): Pick<ExchangeRecord, "listener" | "protocol" | "verdict" | "reason">[] {
  const doors = LISTENERS.flatMap((listener) => PROTOCOLS.map((protocol) => ({ listener, protocol })));
  const answers = VERDICTS.flatMap((verdict) =>
    REASONS.map((reason) => ({ verdict, reason: reason === "" ? undefined : reason })),
  );
  return doors.flatMap((door) => answers.map((answer) => ({ ...door, ...answer })));
}

test("createExchangeCells keeps every combination of labels apart", () => {
  const cells = createExchangeCells();
  const expected = new Map<string, number>();
  for (const [at, combination] of everyCombination().entries()) {
    const { listener, protocol, verdict, reason } = combination;
    const times = 1 + (at % 7);
    expected.set([listener, protocol, verdict, reason ?? ""].join(), times);
    for (let time = 0; time < times; time += 1) {
      cells.count(record(combination));
    }
  }
  const samples = cells.samples();
  assert.equal(samples.length, expected.size);
  for (const { labels, value } of samples) {
    const { listener, protocol, verdict, reason } = labels;
    assert.equal(value, expected.get([listener, protocol, verdict, reason].join()));
  }
});

test("createExchangeCells shows the explicit proxy's allowances and refusals from the start, at zero", () => {
  const samples = createExchangeCells().samples();
  assert.ok(samples.every(({ value }) => value === 0));
  const shown = samples.map(({ labels }) => `${labels["protocol"]} ${labels["verdict"]} ${labels["reason"]}`);
  assert.ok(shown.includes("http/1.1 allow rule-allows"));
  assert.ok(shown.includes("tls-tunnel deny no-rule-matched"));
  assert.ok(!shown.includes("http/1.1 deny rule-allows"));
  assert.equal(shown.length, 2 * REASONS.length);
});

test("isUpstreamCode tells failures beyond the gate from its own and the client's", () => {
  assert.ok(isUpstreamCode("E_RESOLVE") && isUpstreamCode("E_TIMEOUT"));
  assert.ok(!isUpstreamCode("E_BAD_REQUEST") && !isUpstreamCode("E_INTERNAL"));
});
