/** Why there is no namespace: each switch of the kernel has its own remedy. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { explainNoNamespace } from "../../src/sandbox/userns-error.ts";

const DENIED = "unshare: unshare failed: Operation not permitted\n";
const CASES = [
  [DENIED, { "user/max_user_namespaces": "0" }, /sysctl -w user\.max_user_namespaces/],
  ["unshare: unshare failed: No space left on device\n", {}, /sysctl -w user\.max_user_namespaces/],
  [DENIED, { "kernel/unprivileged_userns_clone": "0" }, /sysctl -w kernel\.unprivileged_userns_clone=1/],
  [
    "unshare: write failed /proc/self/uid_map: Operation not permitted\n",
    { "kernel/apparmor_restrict_unprivileged_userns": "1" },
    /AppArmor .*kernel\.apparmor_restrict_unprivileged_userns=0/,
  ],
  [DENIED, { "user/max_user_namespaces": "1000" }, /seccomp/],
  [
    "mount: /run: permission denied.\n  dmesg(1) may have more\n",
    {},
    /^The jail cannot be set up \(mount: \/run: permission denied\.\)$/,
  ],
  ["", {}, /\(no message\)$/],
] as const;

for (const [said, switches, expected] of CASES) {
  test(`explainNoNamespace: ${JSON.stringify(said)} with ${JSON.stringify(switches)}`, () => {
    const failure = explainNoNamespace(said, (name) => (switches as Readonly<Record<string, string>>)[name]);
    assert.equal(failure.code, "E_CONFIG");
    assert.match(failure.message, expected);
  });
}

test("explainNoNamespace: asks this machine where nobody else is named", () => {
  assert.match(explainNoNamespace(DENIED).message, /Operation not permitted/);
});
