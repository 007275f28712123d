import assert from "node:assert/strict";
import { once } from "node:events";
import { appendFileSync, existsSync, readFileSync, renameSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { parseMetrics } from "../support/metrics-text.ts";
import { type Serving, serving, until } from "./program.ts";

const ONE = "workers: 1\nnetwork: { allowlist: [ { domain: one.example } ] }\n";
const OTHER = "workers: 1\nnetwork: { allowlist: [ { id: other, domain: other.example } ] }\n";

test("runService: takes up the file when it changes, and again on SIGHUP", async () => {
  const gate = await serving({ config: ONE });
  assert.deepEqual(await explained(gate), ["rule-allows", "no-rule-matched"]);
  gate.replace(OTHER);
  await gate.untilSaid(/info "Config taken up" why="the file changed"/);
  assert.deepEqual(await explained(gate), ["no-rule-matched", "rule-allows"]);
  gate.signal("SIGHUP");
  await gate.untilSaid(/info "Config taken up" why=SIGHUP/);
  assert.equal(await metric(gate, "sallyport_config_reloads_total", { result: "success" }), 3);
  assert.equal((await readiness(gate)).config.last_reload, "success");
});

test("runService: a bad file leaves the last good policy in force, and says so everywhere", async () => {
  const gate = await serving({ config: ONE });
  const before = await readiness(gate);
  gate.replace('workers: 1\nnetwork: { allowlist: [ { domain: "a..b" } ] }\n');
  await gate.untilSaid(/error "Config refused; the last good one stays in force"/);
  assert.match(gate.stderr, /sallyport\.yaml:5:\d+: /);
  const ready = await readiness(gate);
  assert.equal(ready.ready, true);
  assert.equal(ready.policy, before.policy);
  assert.equal(ready.config.last_reload, "failure");
  assert.match(ready.config.problem ?? "", /sallyport\.yaml:5:\d+: /);
  assert.equal(await metric(gate, "sallyport_config_reloads_total", { result: "failure" }), 1);
  assert.deepEqual(await explained(gate), ["rule-allows", "no-rule-matched"]);
  gate.replace(OTHER);
  await gate.untilSaid(/info "Config taken up"/);
  assert.equal((await readiness(gate)).config.problem, null);
});

test("runService: changes that need a restart are said, and change nothing", async () => {
  const gate = await serving({ config: ONE });
  gate.replace(ONE.replace("workers: 1", "workers: 3\nrecords: { file: other.jsonl }"));
  await gate.untilSaid(/info "Config taken up"/);
  for (const key of ["workers", "records.file"]) {
    assert.match(gate.stderr, new RegExp(`warn "A change needs a restart to take effect" key=${key}`));
  }
  assert.doesNotMatch(gate.stderr, /key=listen/);
  const said = gate.stderr.length;
  gate.replace(ONE);
  await until(
    async () => gate.stderr.slice(said),
    (text) => /info "Config taken up"/.test(text),
  );
  assert.doesNotMatch(gate.stderr.slice(said), /next start/);
});

test("runService: a secret that is too short to be masked is told of by its key", async () => {
  const config = ONE.replace(
    "domain: one.example",
    `domain: one.example, transform: { X-Key: "\${env:SHORT}" }`,
  );
  const gate = await serving({ config, env: { SHORT: "zq7xw" } });
  await gate.untilSaid(/warn "A secret is under 8 bytes, .*" key=\S*X-Key/);
  assert.doesNotMatch(gate.stderr, /zq7xw/);
});

test("runService: a secret that cannot be had is said at the start and with each config, by its key", async () => {
  const config = ONE.replace(
    "domain: one.example",
    `domain: one.example, transform: { X-Key: "\${env:NOT_THERE}" }`,
  );
  const gate = await serving({ config });
  await gate.untilSaid(
    /warn "A secret cannot be had; what needs it is refused" key=\S*X-Key\S* problem=.*NOT_THERE/,
  );
  gate.replace(ONE);
  await gate.untilSaid(/info "Config taken up"/);
  assert.equal(gate.stderr.match(/A secret cannot be had/g)?.length, 1);
});

test("runService: SIGHUP opens the records file anew", async () => {
  const gate = await serving({ config: `records: { file: records.jsonl }\n${ONE}` });
  const file = join(gate.configFile, "../records.jsonl");
  await gate.ask("http://a.example/");
  await until(
    async () => readFileSync(file, "utf8"),
    (text) => text.includes("a.example"),
  );
  renameSync(file, `${file}.1`);
  gate.signal("SIGHUP");
  await gate.untilSaid(/info "Config taken up" why=SIGHUP/);
  await until(async () => existsSync(file), Boolean);
  await gate.ask("http://b.example/");
  await until(
    async () => readFileSync(file, "utf8"),
    (text) => text.includes("b.example"),
  );
  assert.doesNotMatch(readFileSync(`${file}.1`, "utf8"), /b\.example/);
});

test("runService: counts itself once", async () => {
  const gate = await serving({ config: ONE });
  const { samples } = parseMetrics((await gate.page("/metrics")).text);
  const [started] = samples.filter(({ name }) => name === "process_start_time_seconds");
  const [resident] = samples.filter(({ name }) => name === "process_resident_memory_bytes");
  const [, kib = "0"] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${gate.pid}/status`, "utf8")) ?? [];
  assert.ok(started !== undefined && Math.abs(started.value - Date.now() / 1_000) < 60);
  assert.ok(
    resident !== undefined && resident.value < Number(kib) * 1_024 * 1.5,
    `${resident?.value} of ${kib} KiB`,
  );
});

test("runService: a second SIGTERM ends it at once, whatever is still open", async () => {
  const gate = await serving({ config: ONE });
  const socket = await halfARequest(gate);
  gate.signal("SIGTERM");
  await gate.untilSaid(/info "Draining" signal=SIGTERM/);
  assert.equal((await readiness(gate)).draining, true);
  gate.signal("SIGTERM");
  assert.deepEqual(await codeOf(gate), { code: 1, signal: undefined });
  socket.destroy();
});

test("runService: a reload that comes while it drains is left alone", async () => {
  const gate = await serving({ config: `limits: { drain_timeout: 2s }\n${ONE}` });
  const socket = await halfARequest(gate);
  gate.signal("SIGTERM");
  await gate.untilSaid(/info "Draining"/);
  gate.signal("SIGHUP");
  appendFileSync(gate.configFile, "# changed\n");
  assert.deepEqual(await codeOf(gate), { code: 0, signal: undefined });
  assert.doesNotMatch(gate.stderr, /taken up/);
  socket.destroy();
});

interface Ready {
  readonly ready: boolean;
  readonly draining: boolean;
  readonly policy: string;
  readonly config: { readonly last_reload: string; readonly problem: string | null };
}

async function readiness(gate: Serving): Promise<Ready> {
  return JSON.parse((await gate.page("/readyz")).text) as Ready;
}

async function metric(
  gate: Serving,
  name: string,
  labels: Readonly<Record<string, string>>,
): Promise<number> {
  return parseMetrics((await gate.page("/metrics")).text).sum(name, labels);
}

/** The reasons for one.example and other.example, with whatever is in force: nothing of these names resolves. */
async function explained(gate: Serving): Promise<readonly string[]> {
  const reasons: string[] = [];
  for (const host of ["one.example", "other.example"]) {
    const { status, reason } = await gate.ask(`http://${host}/`);
    reasons.push(reason ?? (status >= 502 ? "rule-allows" : `${status}`));
  }
  return reasons;
}

/** A connection on which the gate waits for more. */
async function halfARequest(gate: Serving): Promise<ReturnType<typeof connect>> {
  const [host = "", port = ""] = gate.proxy.split(":");
  const socket = connect(Number(port), host);
  socket.on("error", () => undefined);
  await once(socket, "connect");
  socket.write("GET http://one.example/ HTTP/1.1\r\nHost: one");
  await until(
    () => metric(gate, "sallyport_connections", {}),
    (count) => count > 0,
  );
  return socket;
}

async function codeOf(gate: Serving): Promise<{ code: number | undefined; signal: string | undefined }> {
  const { code, signal } = await gate.ended;
  return { code, signal };
}
