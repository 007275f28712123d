/** On which ports a sandbox is listened to. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { portsOf } from "../../src/sandbox/ports.ts";
import { buildSource } from "../decide/build.ts";

test("portsOf: DNS, the web, and what its own rules name, in order and once", () => {
  const policy = buildSource({
    network: {
      allowlist: [
        { domain: "a.test", ports: [8443, 80] },
        { domain: "b.test", ports: [5432, 8443] },
      ],
    },
    sandboxes: [{ id: "one", network: { allowlist: [{ domain: "a.test", ports: [22] }] } }, { id: "two" }],
  });
  assert.deepEqual(portsOf(policy, undefined), [53, 80, 443, 5432, 8443]);
  assert.deepEqual(portsOf(policy, "one"), [22, 53, 80, 443]);
  assert.deepEqual(portsOf(policy, "two"), [53, 80, 443]);
  assert.deepEqual(portsOf(policy, "gone"), [53, 80, 443]);
});
