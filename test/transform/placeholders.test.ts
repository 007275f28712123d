import assert from "node:assert/strict";
import { test } from "node:test";
import type { PlaceholderLocation } from "../../src/model/credential.ts";
import type { RequestHead } from "../../src/model/exchange.ts";
import { type BodyForm, BodySwap, type Swaps, swapHead } from "../../src/transform/placeholders.ts";

const A = "__SALLYPORT_CRED_a__";
const LONG = "__SALLYPORT_CRED_a__b.c__";
const SECRET = 'se"cr&t';

function swaps(...locations: readonly PlaceholderLocation[]): Swaps {
  return {
    needles: [A, LONG],
    value: (needle, location, field) =>
      locations.includes(location) && (field === undefined || field === "authorization")
        ? { ok: true, value: needle === A ? SECRET : "LONG" }
        : { ok: false, reason: "placeholder-misplaced" },
  };
}

function head(target: string, ...fields: readonly (readonly [string, string])[]): RequestHead {
  return {
    method: "GET",
    target,
    minor: 1,
    fields: fields.map(([name, value]) => ({ name, key: name.toLowerCase(), value })),
  };
}

const NONE: ReadonlySet<string> = new Set();

test("swapHead puts the secret into its fields, inside Basic too, and into the query", () => {
  const basic = Buffer.from(`user:${A}`).toString("base64");
  const all = swaps("header", "query");
  for (const [value, expected] of [
    [`Bearer ${A}`, `Bearer ${SECRET}`],
    [`Basic ${basic}`, `Basic ${Buffer.from(`user:${SECRET}`).toString("base64")}`],
    [`Bearer ${LONG}`, "Bearer LONG"],
  ] as const) {
    const done = swapHead(head("/", ["Authorization", value]), all, NONE);
    assert.ok(done.ok);
    assert.deepEqual([done.head.fields[0]?.value, done.fields], [expected, ["Authorization"]]);
  }
  const asked = swapHead({ ...head(`/p?k=${A}&x=%20`), sensitive: [] }, all, NONE);
  assert.ok(asked.ok);
  assert.equal(asked.head.target, "/p?k=se%22cr%26t&x=%20");
  assert.deepEqual(asked.head.sensitive, [":path"]);
  const plain = head("/p?x", ["Authorization", "Basic dXNlcjpw"]);
  const kept = swapHead(plain, all, NONE);
  assert.ok(kept.ok);
  assert.equal(kept.head, plain);
});

test("swapHead refuses a placeholder anywhere else, escaped or not, and leaves skipped fields alone", () => {
  const escaped = A.replaceAll("_", "%5F");
  for (const bad of [
    head(`/${A}`),
    head(`/${escaped}`),
    head(`/?k=${escaped}`),
    head("/", ["Cookie", `a=${A}`]),
    head("/", ["Referer", `https://a.example/?${escaped}`]),
    head("/", [A, "x"]),
    { ...head("/"), method: A },
  ]) {
    assert.deepEqual(swapHead(bad, swaps("header", "query"), NONE), {
      ok: false,
      reason: "placeholder-misplaced",
    });
  }
  assert.equal(swapHead(head(`/?k=${A}`), swaps("header"), NONE).ok, false);
  assert.equal(swapHead(head("/", ["Authorization", A]), swaps(), new Set(["authorization"])).ok, true);
  const broken: Swaps = { needles: [A], value: () => assert.fail("broken") };
  assert.throws(() => swapHead(head("/", ["Authorization", A]), broken, NONE), /broken/);
});

function through(swap: BodySwap, pieces: readonly string[]): string {
  const made = [...pieces.map((piece) => swap.write(Buffer.from(piece, "latin1"))), swap.end()];
  const reason = made.find((one) => typeof one === "string");
  return typeof reason === "string" ? reason : Buffer.concat(made as Buffer[]).toString("latin1");
}

test("BodySwap makes the same of a body however it is cut, and writes the secret as the body writes texts", () => {
  for (const [form, expected] of [
    ["raw", SECRET],
    ["json", 'se\\"cr&t'],
    ["form", "se%22cr%26t"],
  ] as const satisfies readonly (readonly [BodyForm, string])[]) {
    const text = `x${A}y__SALL${LONG}z${A}__SALLYPORT_CRED_a_`;
    const whole = `x${expected}y__SALLLONGz${expected}__SALLYPORT_CRED_a_`;
    for (let at = 0; at <= text.length; at += 1) {
      assert.equal(through(new BodySwap(swaps("body"), form), [text.slice(0, at), text.slice(at)]), whole);
    }
    assert.equal(through(new BodySwap(swaps("body"), form), [...text]), whole);
  }
});

test("BodySwap lets nothing of the placeholder out where it may not stand", () => {
  const text = `abc${A}`;
  for (let at = 0; at <= text.length; at += 1) {
    const made = through(new BodySwap(swaps(), "raw"), [text.slice(0, at), text.slice(at)]);
    assert.equal(made, "placeholder-misplaced");
  }
  const broken: Swaps = { needles: [A], value: () => assert.fail("broken") };
  assert.throws(() => new BodySwap(broken, "raw").write(Buffer.from(`${A}.`)), /broken/);
});
