/** Responses in HTTP/2: what is understood, what is refused, and what is written. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { DEFAULT_LIMITS } from "../../src/model/limits.ts";
import { endsWithHead, readH2Response, renderH2Response } from "../../src/wire/h2-response.ts";

function read(pairs: readonly string[], whole = false, method = "GET") {
  return readH2Response(pairs, whole, method, DEFAULT_LIMITS);
}

function line(key: string, value: string) {
  return { name: key, key, value };
}

test("readH2Response gives a head without a phrase", () => {
  assert.deepEqual(read([":status", "200", "x", "1"]).head, {
    status: 200,
    phrase: "",
    minor: 1,
    fields: [line("x", "1")],
  });
});

test("readH2Response takes the framing from END_STREAM, the status, the method and Content-Length", () => {
  const length = ["content-length", "3"];
  assert.deepEqual(read([":status", "200"]).framing, { kind: "chunked" });
  assert.deepEqual(read([":status", "200", ...length]).framing, { kind: "length", length: 3 });
  assert.deepEqual(read([":status", "200"], true).framing, { kind: "none" });
  assert.deepEqual(read([":status", "200", "content-length", "0"], true).framing, {
    kind: "length",
    length: 0,
  });
  for (const status of ["103", "204", "304"])
    assert.deepEqual(read([":status", status]).framing, { kind: "none" });
  assert.deepEqual(read([":status", "200", ...length], false, "HEAD").framing, { kind: "none" });
});

for (const [what, pairs] of [
  ["no status", ["x", "1"]],
  ["101", [":status", "101"]],
  ["a status that is none", [":status", "099"]],
  ["another pseudo field", [":status", "200", ":path", "/"]],
  ["two lengths", [":status", "200", "content-length", "1", "content-length", "1"]],
] as const) {
  test(`readH2Response refuses ${what}`, () => {
    assert.throws(() => read(pairs), { code: "E_UPSTREAM_PROTOCOL" });
  });
}

function head(status: number, ...fields: readonly ReturnType<typeof line>[]) {
  return { status, phrase: "", minor: 1, fields } as const;
}

test("renderH2Response writes the length that the framing says, and one that was told of a body not sent", () => {
  const told = line("content-length", "9");
  const written = (status: number, framing: Parameters<typeof renderH2Response>[1], field = told) =>
    renderH2Response(head(status, field), framing).slice(2);
  assert.deepEqual(written(200, { kind: "length", length: 3 }), ["content-length", "3"]);
  assert.deepEqual(written(200, { kind: "chunked" }), []);
  assert.deepEqual(written(200, { kind: "none" }), ["content-length", "9"]);
  assert.deepEqual(written(204, { kind: "none" }), []);
  assert.deepEqual(written(103, { kind: "none" }), []);
  assert.deepEqual(written(200, { kind: "none" }, line("content-length", "x")), []);
  assert.deepEqual(renderH2Response(head(304), { kind: "none" }), [":status", "304"]);
});

test("renderH2Response knows no status that HTTP/2 does not", () => {
  for (const status of [99, 101, 600, 200.5]) {
    assert.throws(() => renderH2Response(head(status), { kind: "none" }), { code: "E_INTERNAL" });
  }
});

test("endsWithHead: nothing follows where there is no body or an empty one", () => {
  assert.ok(endsWithHead({ kind: "none" }));
  assert.ok(endsWithHead({ kind: "length", length: 0 }));
  assert.ok(!endsWithHead({ kind: "length", length: 1 }));
  assert.ok(!endsWithHead({ kind: "chunked" }));
});
