import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { parseMetrics } from "../support/metrics-text.ts";
import { childrenOf, type Serving, serving, until } from "./program.ts";

const TWO = "workers: 2\nnetwork: { allowlist: [ { domain: one.example } ] }\n";

test("createWorkerFleet: both serve, the metrics are their sum, and no record cuts into another", async () => {
  const gate = await serving({ config: TWO });
  assert.equal(workersOf(gate).length, 2);
  const count = 400;
  const long = "x".repeat(900);
  const lanes = Array.from({ length: 20 }, async (_, lane) => {
    for (let at = lane; at < count; at += 20) await gate.ask(`http://h${at}.example/${long}`);
  });
  await Promise.all(lanes);
  await until(
    () => metric(gate, "sallyport_exchanges_total", { verdict: "deny" }),
    (sum) => sum === count,
  );
  await until(
    async () => gate.stdout.split("\n").length,
    (lines) => lines > count,
  );
  const records = gate.stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  assert.equal(records.length, count);
  assert.equal(new Set(records.map(({ host }) => host)).size, count);
  assert.equal(new Set(records.map(({ session }) => session)).size, 2);
  gate.signal("SIGTERM");
  assert.equal((await gate.ended).code, 0);
});

test("createWorkerFleet: a worker that is killed is replaced, and the others serve meanwhile", async () => {
  const gate = await serving({ config: TWO });
  const [victim = -1, other = -1] = workersOf(gate);
  process.kill(victim, "SIGKILL");
  await gate.untilSaid(new RegExp(`error "A worker died" pid=${victim} code=- signal=SIGKILL`));
  assert.equal((await gate.ask("http://no.example/")).reason, "no-rule-matched");
  const now = await until(
    async () => workersOf(gate),
    (pids) => pids.length === 2 && !pids.includes(victim),
  );
  assert.ok(now.includes(other));
  gate.signal("SIGTERM");
  assert.equal((await gate.ended).code, 0);
});

test("createWorkerFleet: a reload reaches every worker, and one that dies in the middle does not fail it", async () => {
  const gate = await serving({ config: TWO });
  gate.replace(TWO.replace("one.example", "other.example"));
  process.kill(workersOf(gate)[0] ?? -1, "SIGKILL");
  await gate.untilSaid(/info "Config taken up"/);
  await until(
    async () => workersOf(gate),
    (pids) => pids.length === 2,
  );
  for (let at = 0; at < 10; at += 1) {
    assert.equal((await gate.ask("http://one.example/")).reason, "no-rule-matched");
  }
});

test("createWorkerFleet: workers that never live long are given up, with 1", async () => {
  const gate = await serving({ config: TWO });
  const killing = setInterval(() => {
    for (const pid of workersOf(gate)) kill(pid);
  }, 20);
  assert.equal((await gate.ended.finally(() => clearInterval(killing))).code, 1);
});

test("createWorkerFleet: SIGTERM lets what is open end in each worker, then cuts it", async () => {
  const gate = await serving({ config: `limits: { drain_timeout: 1s }\n${TWO}` });
  const [host = "", port = ""] = gate.proxy.split(":");
  const sockets = await Promise.all(
    Array.from({ length: 4 }, async () => {
      const socket = connect(Number(port), host);
      socket.on("error", () => undefined);
      await once(socket, "connect");
      socket.write("GET http://one.example/ HTTP/1.1\r\nHost: one");
      return socket;
    }),
  );
  await until(
    () => metric(gate, "sallyport_connections", {}),
    (open) => open === sockets.length,
  );
  const pids = workersOf(gate);
  gate.signal("SIGTERM");
  await gate.untilSaid(/info "Draining"/);
  assert.equal((await gate.ended).code, 0);
  for (const pid of pids) assert.throws(() => process.kill(pid, 0), { code: "ESRCH" });
  for (const socket of sockets) socket.destroy();
});

test("createWorkerFleet: a worker that hangs is ended when its time to drain is over", async () => {
  const gate = await serving({ config: `limits: { drain_timeout: 100ms }\n${TWO}` });
  process.kill(workersOf(gate)[0] ?? -1, "SIGSTOP");
  gate.signal("SIGTERM");
  assert.equal((await gate.ended).code, 0);
});

test("createWorkerFleet: a second SIGTERM ends all of them at once", async () => {
  const gate = await serving({ config: TWO });
  const pids = workersOf(gate);
  process.kill(pids[0] ?? -1, "SIGSTOP");
  gate.signal("SIGTERM");
  await gate.untilSaid(/info "Draining"/);
  gate.signal("SIGTERM");
  process.kill(pids[0] ?? -1, "SIGCONT");
  assert.equal((await gate.ended).code, 1);
});

function workersOf(gate: Serving): readonly number[] {
  try {
    return childrenOf(gate.pid);
  } catch {
    return [];
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It is gone already.
  }
}

async function metric(
  gate: Serving,
  name: string,
  labels: Readonly<Record<string, string>>,
): Promise<number> {
  return parseMetrics((await gate.page("/metrics")).text).sum(name, labels);
}
