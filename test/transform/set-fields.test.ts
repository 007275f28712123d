import assert from "node:assert/strict";
import { test } from "node:test";
import type { Field, RequestHead } from "../../src/model/exchange.ts";
import { dropFields, setFields } from "../../src/transform/set-fields.ts";

function field(name: string, value: string): Field {
  return { name, key: name.toLowerCase(), value };
}

const HEAD: RequestHead = {
  method: "GET",
  target: "/",
  minor: 1,
  fields: [field("Host", "a"), field("x-trace", "1"), field("X_Trace", "2"), field("X-Other", "3")],
};

test("setFields: the client's lines go, under either spelling, and the value comes last", () => {
  const settings = [{ field: "X-Trace", key: "x-trace", value: "new" }];
  assert.deepEqual(setFields(HEAD, settings), {
    ...HEAD,
    fields: [field("Host", "a"), field("X-Other", "3"), field("X-Trace", "new")],
  });
});

test("setFields: a field without a value is dropped", () => {
  const { fields } = setFields(HEAD, [{ field: "X_Trace", key: "x_trace", value: undefined }]);
  assert.deepEqual(fields, [field("Host", "a"), field("X-Other", "3")]);
});

test("setFields, dropFields: without settings everything is the very same", () => {
  assert.equal(setFields(HEAD, []), HEAD);
  assert.equal(dropFields(HEAD.fields, []), HEAD.fields);
  const none: readonly Field[] = [];
  assert.equal(dropFields(none, [{ field: "A", key: "a", value: "1" }]), none);
});
