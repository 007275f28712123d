/** The script of a jail: what it does, in which order, and that nobody's words become its own. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { type JailPlan, outerScript } from "../../src/sandbox/jail-script.ts";

const PLAN: JailPlan = {
  tools: {
    unshare: "/bin/unshare",
    setpriv: "/bin/setpriv",
    mount: "/bin/mount",
    env: "/bin/env",
    sh: "/bin/sh",
  },
  helper: ["/bin/node", "helper.ts"],
  uid: 1000,
  gid: 1001,
  emptied: ["/run", "/srv/a b"],
  made: ["/run/user/1000"],
  masked: ["/etc/key"],
  readOnly: [{ path: "/etc/$(reboot)'s", flags: ["nosuid"] }],
  own: "/run/sallyport",
  shown: [{ from: "/run/sallyport/resolv.conf", at: "/etc/resolv.conf" }],
  argv: ["echo", "'; reboot #", "$(reboot)"],
};

/** What `sh -c` of a quoted script runs, without its layers of quotes. */
function layersOf(plan: JailPlan): readonly string[] {
  const inner = /-c '(.*)'$/s.exec(outerScript(plan))?.[1]?.replaceAll("'\\''", "'") ?? "";
  return [outerScript(plan), inner];
}

test("outerScript: reads as a shell script, at each layer", () => {
  for (const layer of layersOf(PLAN)) {
    assert.equal(spawnSync("sh", ["-n", "-c", layer]).status, 0, layer);
  }
});

test("outerScript: empties, hands over, shows, guards and masks, in this order", () => {
  const [, inner = ""] = layersOf(PLAN);
  const steps = [
    "set -e",
    "sallyport /run\n",
    "/bin/node helper.ts",
    "remount,bind,ro,nosuid,nodev /run/sallyport",
    "--bind /run/sallyport/resolv.conf /etc/resolv.conf",
    "remount,bind,ro,nosuid '/etc/$(reboot)'\\''s'",
    "--bind /dev/null /etc/key",
    "unset NODE_CHANNEL_FD",
    "--map-user=1000 --map-group=1001",
  ];
  const places = steps.map((step) => inner.indexOf(step));
  assert.ok(!places.includes(-1), `${places}`);
  assert.deepEqual(
    places,
    [...places].sort((a, b) => a - b),
  );
});

test("outerScript: root's command loses its bounding set too, anybody else's cannot have any", () => {
  assert.doesNotMatch(outerScript(PLAN), /--bounding-set/);
  assert.match(outerScript({ ...PLAN, uid: 0 }), /--bounding-set -all/);
});
