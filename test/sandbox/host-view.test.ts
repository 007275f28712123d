/** What of the host a jail must not see, and how its mounts are flagged. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import {
  hostSockets,
  isInside,
  kindOf,
  lockedFlags,
  parseUnixSockets,
  realPath,
} from "../../src/sandbox/host-view.ts";

let folder: string;
before(() => {
  folder = mkdtempSync(join(tmpdir(), "sallyport-view-"));
});
after(() => rmSync(folder, { recursive: true, force: true }));

test("parseUnixSockets: absolute paths, blanks and all, each once; abstract ones are the namespace's own", () => {
  const table = `Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 12345 /run/a b.sock
0000000000000000: 00000002 00000000 00010000 0001 01 12346 /run/a b.sock
0000000000000000: 00000002 00000000 00010000 0001 01 12347 @abstract
0000000000000000: 00000003 00000000 00000000 0001 03 12348
`;
  assert.deepEqual(parseUnixSockets(table), ["/run/a b.sock"]);
});

test("hostSockets: those that the kernel lists, that a variable names, and that lie in /tmp", async () => {
  const path = join(folder, "own.sock");
  const server = createServer().listen(path);
  await new Promise((resolve) => server.once("listening", resolve));
  assert.ok(hostSockets({}).includes(path));
  assert.ok(hostSockets({ BUS: `unix:path=${path},guid=1` }).includes(path));
  assert.ok(hostSockets({ AGENT: path, OTHER: "/no/such", NONE: undefined }).includes(path));
  server.close();
  await new Promise((resolve) => server.once("close", resolve));
  assert.ok(!hostSockets({ AGENT: path }).includes(path));
});

test("lockedFlags: of the mount that the path is on, the later of two on one point", () => {
  const table = `21 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
22 21 0:5 / /tmp rw,nosuid,nodev,relatime - tmpfs tmpfs rw
23 22 0:6 / /tmp/with\\040blank rw,noexec - tmpfs tmpfs rw
24 21 0:5 / /tmp rw,nodev,noatime - tmpfs tmpfs rw
`;
  assert.deepEqual(lockedFlags("/etc/x", table), ["relatime"]);
  assert.deepEqual(lockedFlags("/tmp/x", table), ["nodev", "noatime"]);
  assert.deepEqual(lockedFlags("/tmp/with blank/x", table), ["noexec"]);
  assert.deepEqual(lockedFlags("/tmpx", table), ["relatime"]);
  assert.deepEqual(lockedFlags("/x", ""), []);
  assert.ok(Array.isArray(lockedFlags("/")));
});

test("realPath, kindOf: links are followed, and one that leads nowhere says where", () => {
  const [file, link, dangling] = ["file", "link", "dangling"].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  writeFileSync(file, "");
  mkdirSync(join(folder, "sub"));
  symlinkSync(file, link);
  symlinkSync("sub/../gone", dangling);
  assert.equal(realPath(link), file);
  assert.equal(realPath(dangling), join(folder, "gone"));
  assert.equal(realPath(join(folder, "nothing")), undefined);
  assert.deepEqual(
    [file, folder, "/dev/null", dangling].map((path) => kindOf(path)),
    ["file", "directory", "other", undefined],
  );
});

test("isInside: whole names count", () => {
  assert.ok(isInside("/run", "/run") && isInside("/run/x", "/run") && isInside("/x", "/"));
  assert.ok(!isInside("/runx", "/run"));
});
