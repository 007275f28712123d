/** A body is held whole and given again; too much of it, silence and a client that leaves end the wait. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Held, holdBody } from "../../src/accept/held-body.ts";
import { Failure } from "../../src/model/failure.ts";
import type { Inbound, InboundEvents } from "../../src/model/inbound.ts";

const CALLS = [
  "closeAfter",
  "inform",
  "respond",
  "write",
  "end",
  "abort",
  "takeOver",
  "whenLost",
  "pause",
  "resume",
];

function harness() {
  const called: string[] = [];
  const state: { events?: InboundEvents } = {};
  const stubs = Object.fromEntries(CALLS.map((name) => [name, () => void called.push(name)]));
  const inbound = {
    ...stubs,
    protocol: "http/1.1",
    head: { method: "PUT", target: "/", minor: 1, fields: [] },
    framing: { kind: "chunked" },
    responded: 200,
    start: (events: InboundEvents) => {
      state.events = events;
    },
  } as unknown as Inbound;
  const events = (): InboundEvents => {
    assert.ok(state.events);
    return state.events;
  };
  return { called, inbound, events };
}

const HOLDING = { max: 5, take: () => true, timeout: 1_000, expectContinue: false };

function heard() {
  const said: string[] = [];
  const whole = Promise.withResolvers<void>();
  const events: InboundEvents = {
    data: (bytes) => void said.push(bytes.toString()),
    end: (trailers) => {
      said.push(`end ${trailers.length}`);
      whole.resolve();
    },
    drained: () => void said.push("drained"),
    gone: ({ code }) => void said.push(`gone ${code}`),
  };
  return { said, events, whole: whole.promise };
}

async function heldOf(
  { inbound, events }: ReturnType<typeof harness>,
  body = "hello",
): Promise<Held & { kind: "held" }> {
  const holding = holdBody(inbound, HOLDING);
  events().drained();
  events().data(Buffer.from(body));
  events().end([]);
  const held = await holding;
  assert.ok(held.kind === "held");
  return held;
}

test("holdBody: the body with its length, given again as often as it is asked for", async () => {
  const source = harness();
  const { inbound, body } = await heldOf(source);
  assert.deepEqual([body.toString(), inbound.framing], ["hello", { kind: "length", length: 5 }]);
  for (let times = 0; times < 2; times++) {
    const { said, events, whole } = heard();
    inbound.start(events);
    await whole;
    source.events().drained();
    assert.deepEqual(said, ["hello", "end 0", "drained"]);
  }
});

test("holdBody: only the last who asks hears of it, and an empty body has no piece", async () => {
  const { inbound } = await heldOf(harness(), "");
  const [first, second] = [heard(), heard()];
  inbound.start(first.events);
  inbound.start(second.events);
  await second.whole;
  assert.deepEqual([first.said, second.said], [[], ["end 0"]]);
});

test("holdBody: everything else is the client's own exchange", async () => {
  const source = harness();
  const { inbound } = await heldOf(source);
  const head = { status: 200, phrase: "", minor: 1, fields: [] } as const;
  inbound.inform(head);
  inbound.respond(head, { kind: "none" });
  inbound.write(Buffer.alloc(1));
  inbound.end([]);
  inbound.abort();
  inbound.takeOver(head);
  inbound.closeAfter();
  inbound.pause();
  inbound.resume();
  assert.equal(inbound.responded, 200);
  assert.deepEqual(source.called, ["inform", "respond", "write", "end", "abort", "takeOver", "closeAfter"]);
});

test("holdBody: too much", async () => {
  const { inbound, events } = harness();
  const holding = holdBody(inbound, HOLDING);
  events().data(Buffer.alloc(6));
  events().data(Buffer.alloc(6));
  events().end([]);
  assert.deepEqual(await holding, { kind: "over" });
});

test("holdBody: so is what there is no room for", async () => {
  const { inbound, events } = harness();
  const holding = holdBody(inbound, { ...HOLDING, take: (bytes) => bytes < 3 });
  events().data(Buffer.from("ab"));
  events().data(Buffer.from("cde"));
  assert.deepEqual(await holding, { kind: "over" });
});

test("holdBody: silence, and a client that goes away", async () => {
  const silent = harness();
  await assert.rejects(holdBody(silent.inbound, { ...HOLDING, timeout: 1 }), { code: "E_TIMEOUT" });
  const left = harness();
  const holding = holdBody(left.inbound, { ...HOLDING, expectContinue: true });
  left.events().gone(new Failure("E_BAD_REQUEST", "client", "Gone"));
  await assert.rejects(holding, { code: "E_BAD_REQUEST" });
  assert.deepEqual(left.called, ["inform"]);
});

test("holdBody: a client that goes away later is told of to whoever listens then, and to whoever asks after", async () => {
  const source = harness();
  const { inbound } = await heldOf(source);
  let lost = 0;
  inbound.whenLost(() => {
    lost += 1;
  });
  source.events().gone(new Failure("E_BAD_REQUEST", "client", "Gone"));
  inbound.whenLost(() => {
    lost += 1;
  });
  const { said, events } = heard();
  inbound.start(events);
  assert.deepEqual([lost, said], [2, ["gone E_BAD_REQUEST"]]);
});
