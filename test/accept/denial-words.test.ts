import assert from "node:assert/strict";
import { test } from "node:test";
import { denialWords } from "../../src/accept/denial-words.ts";

test("denialWords does not speak of a proxy's variables where nobody was told of a proxy", () => {
  assert.match(denialWords("loopback", "explicit").hint, /NO_PROXY/);
  assert.match(denialWords("loopback", undefined).hint, /NO_PROXY/);
  for (const listener of ["jail", "gateway"] as const) {
    const { message, hint } = denialWords("loopback", listener);
    assert.equal(message, denialWords("loopback", "explicit").message);
    assert.match(hint, /by its own loopback address, on a port that the gate does not/);
    assert.doesNotMatch(hint, /PROXY/);
    assert.deepEqual(denialWords("rule-denies", listener), denialWords("rule-denies", "explicit"));
  }
});
