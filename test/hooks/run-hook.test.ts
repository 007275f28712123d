import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type HookRunEnd, runHook } from "../../src/hooks/run-hook.ts";
import { createHookServer, type HookServer } from "../support/hook-server.ts";

const directory = mkdtempSync(join(tmpdir(), "sallyport-run-hook-"));
let server: HookServer;
before(async () => {
  server = await createHookServer(({ path }, response) => {
    if (path === "/deny") response.end('{"decision":"deny","reason":"the server says no"}');
    else if (path === "/500") response.writeHead(500).end('{"decision":"deny"}');
    else if (path === "/text") response.end("fine");
    else if (path !== "/never") response.writeHead(204).end();
  });
});
after(() => {
  server.close();
  rmSync(directory, { recursive: true, force: true });
});

interface Ran {
  readonly end: HookRunEnd;
  readonly reports: readonly string[];
  /** What `touch` marked, in order. */
  readonly log: string;
}

const PAYLOAD = JSON.stringify({
  tool_call: { name: "code_execution", args: { code: "rm -rf /data/forbidden", language: "bash" } },
  environment_id: "env_xyz789",
});
const CLAUDE = JSON.stringify({
  hook_event_name: "PreToolUse",
  tool_name: "code_execution",
  tool_input: { a: 1 },
});

let runs = 0;

async function run(
  handlers: readonly object[],
  { event = "pre_tool_execution", payload = PAYLOAD, matcher = "code_execution" } = {},
): Promise<Ran> {
  runs += 1;
  const hooksFile = join(directory, `hooks-${runs}.json`);
  const log = join(directory, `log-${runs}`);
  writeFileSync(log, "");
  const kind = event.startsWith("P") ? (event === "PreToolUse" ? "pre_tool_execution" : "") : event;
  writeFileSync(hooksFile, JSON.stringify({ g: { [kind]: [{ matcher, hooks: handlers }] } }));
  const reports: string[] = [];
  const end = await runHook({
    event,
    payload,
    hooksFile,
    way: { env: { PATH: "/usr/bin:/bin", LOG: log, ...server.env }, ca: server.ca },
    report: (line) => reports.push(line),
  });
  return { end, reports, log: readFileSync(log, "utf8") };
}

function command(script: string, more: object = {}): object {
  return { type: "command", command: script, ...more };
}

function http(path: string, more: object = {}): object {
  return { type: "http", url: new URL(path, server.url).href, ...more };
}

const ALLOWED = { ok: true, denied: false, answer: '{"decision":"allow"}' };
const DENY = `echo '{"decision":"deny","reason":"no"}'`;

/** The rows of the format's failure table, `pre` column: what a handler does, what comes of it, what is reported. */
const TABLE: readonly (readonly [
  row: string,
  handler: () => object,
  answer: object,
  report: RegExp | null,
])[] = [
  ["a command that denies", () => command(DENY), { decision: "deny", reason: "no" }, null],
  ["a command that allows", () => command(`echo '{"decision":"allow"}'`), { decision: "allow" }, null],
  ["a command that prints other JSON", () => command("echo '{}'"), { decision: "allow" }, null],
  ["a command that prints text", () => command("echo hello"), { decision: "allow" }, /not a JSON object/],
  ["a command that prints nothing", () => command("true"), { decision: "allow" }, null],
  [
    "a command with an unrecognised decision",
    () => command(`echo '{"decision":"perhaps"}'`),
    { decision: "allow" },
    /neither allow nor deny/,
  ],
  [
    "a command that fails, though it printed a denial",
    () => command(`${DENY}; echo oops >&2; exit 1`),
    { decision: "allow" },
    /ended with exit status 1; the call is allowed all the same; it said: oops/,
  ],
  [
    "a command that is too slow",
    () => command(`sleep 60; ${DENY}`, { timeout: 0.3 }),
    { decision: "allow" },
    /did not answer within 0\.3 s/,
  ],
  ["a command that floods", () => command("yes"), { decision: "allow" }, /printed more than 1048576 bytes/],
  ["a command that does not exist", () => command("/no/such"), { decision: "allow" }, /exit status 127/],
  ["a server that denies", () => http("/deny"), { decision: "deny", reason: "the server says no" }, null],
  ["a server with a 204", () => http("/none"), { decision: "allow" }, null],
  ["a server that answers text", () => http("/text"), { decision: "allow" }, /not a JSON object/],
  ["a server with a 500", () => http("/500"), { decision: "allow" }, /answered with status 500/],
  [
    "a server that is too slow",
    () => http("/never", { timeout: 0.3 }),
    { decision: "allow" },
    /within 0\.3 s/,
  ],
  [
    "a server that cannot be reached",
    () => ({ type: "http", url: "https://elsewhere.example.com/" }),
    { decision: "allow" },
    /could not be reached/,
  ],
  ["a handler that is broken", () => ({ type: "x" }), { decision: "allow" }, /`type`/],
];

for (const [row, handler, answer, report] of TABLE) {
  test(`runHook: ${row} comes to ${JSON.stringify(answer)}`, async () => {
    const { end, reports } = await run([handler()]);
    assert.ok(end.ok);
    assert.deepEqual(JSON.parse(end.answer), answer);
    if (report === null) assert.deepEqual(reports, []);
    else assert.match(reports.at(-1) ?? "", report);
  });

  test(`runHook: after the tool ran, ${row} changes nothing`, async () => {
    const { end } = await run([handler()], { event: "post_tool_execution" });
    assert.deepEqual(end, { ok: true, denied: false, answer: "{}" });
  });
}

for (const [what, handler] of [
  ["fails", () => command("exit 1", { onFailure: "block" })],
  ["prints text", () => command("echo hello", { onFailure: "block" })],
  ["prints nothing", () => command("true", { onFailure: "block" })],
  ["is too slow", () => command("sleep 60", { timeout: 0.3, onFailure: "block" })],
  ["gets a 500", () => http("/500", { onFailure: "block" })],
  ["is broken", () => ({ type: "x", onFailure: "block" })],
] as const) {
  test(`runHook: with onFailure block a handler that ${what} denies, and says so`, async () => {
    const { end, reports } = await run([handler()]);
    assert.ok(end.ok && end.denied);
    assert.match(end.answer, /The hook g\.pre_tool_execution\[0\]\.hooks\[0\]/);
    assert.match(reports.at(-1) ?? "", /the call is denied/);
  });
}

test("runHook: with onFailure block an empty object is an answer", async () => {
  assert.deepEqual((await run([command("echo '{}'", { onFailure: "block" })])).end, ALLOWED);
});

test("runHook: handlers run one after the other in their order, and the first denial ends it", async () => {
  const mark = (name: string): string => `echo ${name} >> $LOG`;
  const { end, log } = await run([
    command(`sleep 0.2; ${mark("one")}`),
    command(`exit 1`),
    command(`${mark("two")}; ${DENY}`),
    command(mark("three")),
  ]);
  assert.ok(end.ok && end.denied);
  assert.equal(log, "one\ntwo\n");
});

test("runHook: after the tool ran, a denial ends nothing", async () => {
  const { log } = await run([command(`${DENY}; echo one >> $LOG`), command("echo two >> $LOG")], {
    event: "post_tool_execution",
  });
  assert.equal(log, "one\ntwo\n");
});

test("runHook: a handler reads the event as it came", async () => {
  assert.equal((await run([command("cat > $LOG")])).log, PAYLOAD);
  await run([http("/none", { headers: { "X-Event-Source": "agent-sandbox" } })]);
  assert.equal(server.taken.at(-1)?.body, PAYLOAD);
  assert.equal(server.taken.at(-1)?.headers["x-event-source"], "agent-sandbox");
});

test("runHook: a handler whose matcher fits another tool is not asked", async () => {
  assert.deepEqual((await run([command(DENY)], { matcher: "read_file" })).end, ALLOWED);
  const invalid = await run([command(DENY)], { matcher: "*_execution" });
  assert.deepEqual(invalid.end, ALLOWED);
  assert.match(invalid.reports[0] ?? "", /matches no tool/);
});

test("runHook: in Claude's shape the answer comes in that shape, and a rewrite reaches the next handler", async () => {
  const rewrite = `echo '{"hookSpecificOutput":{"permissionDecision":"allow","updatedInput":{"a":2}}}'`;
  const { end, log } = await run([command(rewrite), command("cat > $LOG")], {
    event: "PreToolUse",
    payload: CLAUDE,
  });
  assert.ok(end.ok);
  assert.deepEqual(JSON.parse(end.answer), {
    hookSpecificOutput: { hookEventName: "PreToolUse", permissionDecision: "allow", updatedInput: { a: 2 } },
  });
  assert.deepEqual(JSON.parse(log).tool_input, { a: 2 });
  const blocked = await run([command(`echo '{"decision":"block","reason":"no"}'`)], {
    event: "PreToolUse",
    payload: CLAUDE,
  });
  assert.ok(blocked.end.ok && blocked.end.denied);
});

test("runHook: without a file nobody objects; a file that is broken is reported and objects to nothing", async () => {
  const reports: string[] = [];
  const order = {
    event: "pre_tool_execution",
    payload: PAYLOAD,
    way: { env: {} },
    report: (line: string) => void reports.push(line),
  };
  assert.deepEqual(await runHook({ ...order, hooksFile: undefined }), ALLOWED);
  assert.deepEqual(reports, []);
  const broken = join(directory, "broken.json");
  writeFileSync(broken, "{");
  assert.deepEqual(await runHook({ ...order, hooksFile: broken }), ALLOWED);
  assert.match(reports[0] ?? "", /is not JSON/);
});

test("runHook: a wrong call asks nobody", async () => {
  const { end, log } = await run([command("echo x > $LOG")], { payload: "no event" });
  assert.deepEqual([end.ok, log], [false, ""]);
});

test("runHook: what a handler wrote is reported as one printable line", async () => {
  const { reports } = await run([
    command("printf 'a\\033[31m\\nb' >&2; head -c 5000 /dev/zero | tr '\\0' x >&2; exit 1"),
  ]);
  assert.match(reports[0] ?? "", /^[\x20-\x7e]{1,603}$/);
});
