import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { type ProcessOrder, runBounded } from "../../src/hooks/bounded-process.ts";

function sh(script: string, more: Partial<ProcessOrder> = {}): ReturnType<typeof runBounded> {
  return runBounded({
    command: ["/bin/sh", "-c", script],
    env: { PATH: "/usr/bin:/bin" },
    input: "in",
    timeoutMs: 10_000,
    maxOutputBytes: 1_000,
    ...more,
  });
}

function lives(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

test("runBounded: a program gets its input and gives its output, its status and its complaints", async () => {
  assert.deepEqual(await sh("cat; echo no >&2; exit 3"), {
    kind: "exited",
    code: 3,
    stdout: "in",
    stderr: "no\n",
  });
});

test("runBounded: only the environment that was given is there", async () => {
  const end = await sh("env", { env: { PATH: "/usr/bin:/bin", ONLY: "this" } });
  assert.ok(end.kind === "exited");
  assert.match(end.stdout, /ONLY=this/);
  assert.doesNotMatch(end.stdout, /HOME=/);
});

test("runBounded: whoever ignores SIGTERM is killed at the timeout, with all its children", async () => {
  const script = "trap '' TERM; (trap '' TERM; while :; do sleep 1; done) & echo $! >&2; wait";
  const end = await sh(script, { timeoutMs: 300 });
  assert.ok(end.kind === "failed");
  assert.deepEqual([end.why, end.problem], ["timeout", "did not answer within 0.3 s"]);
  const child = Number(end.stderr.trim());
  assert.ok(child > 1);
  // Killed at once; gone from the table as soon as init takes it.
  const last = Date.now() + 5_000;
  while (lives(child) && !isZombie(child)) assert.ok(Date.now() < last, "the child lives on");
});

test("runBounded: a child that holds the pipe does not hold up the answer, and is killed", async () => {
  const started = performance.now();
  const end = await sh("sleep 60 & echo $! >&2; echo done");
  assert.ok(end.kind === "exited");
  assert.equal(end.stdout, "done\n");
  assert.ok(performance.now() - started < 8_000);
  const last = Date.now() + 5_000;
  const child = Number(end.stderr.trim());
  while (lives(child) && !isZombie(child)) assert.ok(Date.now() < last, "the child lives on");
});

test("runBounded: a flood on stdout ends it; one on stderr is read and thrown away", async () => {
  const flood = await sh("yes");
  assert.ok(flood.kind === "failed");
  assert.deepEqual([flood.why, flood.problem], ["output", "printed more than 1000 bytes"]);
  const noisy = await sh("yes | head -c 3000000 >&2; echo ok");
  assert.ok(noisy.kind === "exited");
  assert.deepEqual([noisy.stdout, noisy.stderr.length], ["ok\n", 4_096]);
});

test("runBounded: a megabyte that nobody reads is no failure", async () => {
  const end = await sh("echo ok", { input: "x".repeat(1 << 20) });
  assert.ok(end.kind === "exited");
  assert.equal(end.stdout, "ok\n");
});

test("runBounded: what cannot be started, and what a signal ended, is told by its kind", async () => {
  const missing = await sh("", { command: ["/does/not/exist"] });
  assert.ok(missing.kind === "failed");
  assert.deepEqual([missing.why, missing.problem], ["start", "could not be started (ENOENT)"]);
  const bad = await sh("", { command: ["/bin/echo", "\0"] });
  assert.ok(bad.kind === "failed");
  assert.equal(bad.why, "start");
  const killed = await sh("kill -KILL $$");
  assert.ok(killed.kind === "failed");
  assert.deepEqual([killed.why, killed.problem], ["signal", "was ended by SIGKILL"]);
});

test("runBounded: an abort ends it, also one that came before", async () => {
  const controller = new AbortController();
  const running = sh("echo up >&2; sleep 60", { signal: controller.signal });
  controller.abort();
  const end = await running;
  assert.ok(end.kind === "failed");
  assert.equal(end.why, "abort");
  const late = await sh("sleep 60", { signal: controller.signal });
  assert.ok(late.kind === "failed");
  assert.equal(late.why, "abort");
});

function isZombie(pid: number): boolean {
  try {
    return / Z /.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch {
    return true;
  }
}
