/** The helper inside a namespace that is made for the test. */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { release, takeOver } from "../../src/sandbox/hand-over.ts";
import { helperCommand } from "../../src/sandbox/plan.ts";
import { unshared } from "../support/unshared.ts";

function enter(pid: number): readonly string[] {
  return ["-t", `${pid}`, "-U", "-n", "--preserve-credentials"];
}

test("helper: makes every address local, opens what it is told to, writes files, and ends", async (context) => {
  const folder = mkdtempSync(join(tmpdir(), "sallyport-helper-"));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  const pid = await unshared(context);
  const start = () =>
    spawn("nsenter", [...enter(pid), ...helperCommand()], { stdio: ["ignore", "inherit", "inherit", "ipc"] });
  const child = start();
  const opened = await takeOver(child, {
    kind: "open",
    ports: [53, 443],
    first: true,
    exclusive: true,
    nameServers: ["127.0.0.53", "2001:db8::53"],
    files: [{ path: join(folder, "a/b"), base64: Buffer.from("text").toString("base64") }],
  });
  assert.deepEqual([[...opened.tcp.keys()], opened.taken], [[53, 443], []]);
  assert.ok(opened.udp.length >= 1);
  release(child);
  assert.equal((await once(child, "exit"))[0], 0);
  assert.equal(readFileSync(join(folder, "a/b"), "utf8"), "text");
  const { stdout } = spawnSync("nsenter", [...enter(pid), "ip", "-o", "addr"], { encoding: "utf8" });
  assert.match(stdout, /127\.0\.0\.53\/32/);
  const route = spawnSync("nsenter", [...enter(pid), "ip", "route", "get", "93.184.216.34"], {
    encoding: "utf8",
  });
  assert.match(route.stdout, /^local 93\.184\.216\.34 dev lo/);

  const again = start();
  const second = await takeOver(again, {
    kind: "open",
    ports: [443, 8443],
    first: false,
    exclusive: true,
    nameServers: [],
    files: [],
  });
  assert.deepEqual([[...second.tcp.keys()], second.taken, second.udp], [[8443], [443], []]);
  release(again);
  await once(again, "exit");
  for (const { tcp, udp } of [opened, second]) {
    for (const server of tcp.values()) server.close();
    for (const socket of udp) socket.close();
  }
});

test("helper: says what it may not do", async () => {
  // In the network that everybody is in, an ordinary user changes nothing; root in a namespace of its own neither.
  const child = spawn("unshare", ["-Ur", ...helperCommand()], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  const order = {
    kind: "open",
    ports: [],
    first: true,
    exclusive: false,
    nameServers: [],
    files: [],
  } as const;
  await assert.rejects(takeOver(child, order), {
    code: "E_CONFIG",
    message: /The namespace cannot be set up: ip: /,
  });
  child.kill("SIGKILL");
});
