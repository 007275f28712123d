import assert from "node:assert/strict";
import { test } from "node:test";
import { protocolFailure } from "../../src/wire/protocol-failure.ts";

test("protocolFailure() gives a client's fault a status, 400 unless told otherwise", () => {
  const { code, fault, status } = protocolFailure("client", "Malformed");
  assert.deepEqual({ code, fault, status }, { code: "E_BAD_REQUEST", fault: "client", status: 400 });
  assert.equal(protocolFailure("client", "Malformed", 431).status, 431);
});

test("protocolFailure() gives an upstream's fault no status of its own", () => {
  const { code, fault, status } = protocolFailure("upstream", "Malformed", 431);
  assert.deepEqual(
    { code, fault, status },
    { code: "E_UPSTREAM_PROTOCOL", fault: "upstream", status: undefined },
  );
});
