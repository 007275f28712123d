import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createHookServer, type HookServer } from "../support/hook-server.ts";

const MAIN = fileURLToPath(new URL("../../src/start.mjs", import.meta.url));
const EVENT =
  '{"tool_call":{"name":"code_execution","args":{"code":"rm -rf /data/forbidden"}},"environment_id":"e"}';
const POLICY = {
  version: 1,
  network: {
    allowlist: [{ domain: "hook.example.com", methods: ["POST"], transform: { "X-Api-Key": "a$$b" } }],
  },
};

const directory = mkdtempSync(join(tmpdir(), "sallyport-cli-hook-"));
let server: HookServer;
before(async () => {
  server = await createHookServer((_taken, response) => response.end('{"decision":"deny","reason":"no"}'));
  mkdirSync(join(directory, ".agents"));
  writeFileSync(join(directory, "policy.yaml"), JSON.stringify(POLICY));
  writeFileSync(join(directory, "root.pem"), server.ca);
});
after(() => {
  server.close();
  rmSync(directory, { recursive: true, force: true });
});

interface Ended {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

async function sallyport(args: readonly string[], input = ""): Promise<Ended> {
  const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", MAIN, "hook", ...args], {
    cwd: directory,
    env: { PATH: "/usr/bin:/bin", NODE_EXTRA_CA_CERTS: join(directory, "root.pem"), ...server.env },
  });
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (bytes) => {
    stdout += bytes;
  });
  child.stderr.on("data", (bytes) => {
    stderr += bytes;
  });
  child.stdin.end(input);
  const [status] = await once(child, "close");
  return { status, stdout, stderr };
}

/** A zombie lives no more. */
function lives(group: number): boolean {
  try {
    process.kill(-group, 0);
    return !/ Z /.test(readFileSync(`/proc/${group}/stat`, "latin1"));
  } catch {
    return false;
  }
}

function hooks(...handlers: readonly object[]): void {
  const file = { gate: { pre_tool_execution: [{ matcher: "code_execution", hooks: handlers }] } };
  writeFileSync(join(directory, ".agents/hooks.json"), JSON.stringify(file));
}

test("hook: a denial is an answer on stdout with exit status 0; the proxy and the roots of the sandbox are used", async () => {
  hooks({ type: "command", command: "echo noise >&2; exit 7" }, { type: "http", url: server.url });
  const ended = await sallyport(["pre_tool_execution"], EVENT);
  assert.deepEqual([ended.status, ended.stdout], [0, '{"decision":"deny","reason":"no"}\n']);
  assert.match(
    ended.stderr,
    /^sallyport hook: gate\.pre_tool_execution\[0\]\.hooks\[0\] ended with exit status 7; .*noise\n$/,
  );
  assert.equal(server.taken.at(-1)?.body, EVENT);
});

test("hook: --hooks names another file, and a wrong call is exit status 2 with nothing on stdout", async () => {
  writeFileSync(join(directory, "none.json"), "{}");
  const none = await sallyport(["pre_tool_execution", "--hooks", "none.json"], EVENT);
  assert.deepEqual([none.status, none.stdout], [0, '{"decision":"allow"}\n']);
  for (const args of [[], ["no_event"], ["pre_tool_execution", "--json"], ["pre_tool_execution", "x"]]) {
    const wrong = await sallyport(args, EVENT);
    assert.deepEqual([wrong.status, wrong.stdout], [2, ""], args.join(" "));
  }
  assert.equal((await sallyport(["pre_tool_execution"], "no json")).status, 2);
});

test("hook: whoever ends it gets no answer, and its handlers end with it", async () => {
  hooks({ type: "command", command: "echo $$ > pid; kill -TERM $PPID; sleep 60" });
  const ended = await sallyport(["pre_tool_execution"], EVENT);
  assert.deepEqual([ended.status, ended.stdout], [143, ""]);
  const group = Number(readFileSync(join(directory, "pid"), "latin1"));
  // Killed at once; gone from the table as soon as somebody takes it.
  for (const last = Date.now() + 5_000; lives(group); await delay(10)) assert.ok(Date.now() < last);
});

test("hook check: what the policy lets out with its own secret is fine", async () => {
  hooks({ type: "http", url: server.url });
  const ended = await sallyport(["check", "--config", "policy.yaml"]);
  assert.deepEqual([ended.status, ended.stdout], [0, ".agents/hooks.json: ok\n"]);
});

test("hook check: a refused hook is exit status 3, a bare secret a warning; no value is shown", async () => {
  hooks(
    { type: "http", url: "https://other.example.com/", headers: { Authorization: "Bearer hunter2" } },
    { type: "http", url: "https://hook.example.com/", headers: { "X-Api-Key": "hunter2" } },
  );
  const ended = await sallyport(["check", "--config", "policy.yaml", "--json"]);
  const { ok, findings } = JSON.parse(ended.stdout);
  assert.deepEqual(
    [ended.status, ok, findings.map(({ severity }: { severity: string }) => severity)],
    [3, false, ["refused", "warning", "warning"]],
  );
  assert.doesNotMatch(ended.stdout, /hunter2/);
});

test("hook check: where sandboxes are named it hints at --sandbox until one is said", async () => {
  const policy = `version: 1
sandboxes:
  - { id: one, source: [10.0.0.2], network: { allowlist: [ { domain: hook.example.com } ] } }
  - { id: two, source: [10.0.0.3] }
`;
  writeFileSync(join(directory, "sandboxes.yaml"), policy);
  hooks({ type: "http", url: "https://hook.example.com/" });
  const nobody = await sallyport(["check", "--config", "sandboxes.yaml"]);
  assert.equal(nobody.status, 3);
  assert.match(
    nobody.stdout,
    /^\.agents\/hooks\.json: warning: .* --sandbox ID .*\(one, two\)\n.*\(identity-unknown\)/,
  );
  const one = await sallyport(["check", "--config", "sandboxes.yaml", "--sandbox", "one"]);
  assert.deepEqual([one.status, one.stdout], [0, ".agents/hooks.json: ok\n"]);
});

test("hook check: a secret of the gate that cannot be had here is a warning, not a refusal", async () => {
  const entry = `domain: hook.example.com, transform: { X-Key: "\${env:NOT_SET_HERE}" }`;
  writeFileSync(join(directory, "missing.yaml"), `version: 1\nnetwork: { allowlist: [ { ${entry} } ] }\n`);
  hooks({ type: "http", url: "https://hook.example.com/" });
  const ended = await sallyport(["check", "--config", "missing.yaml"]);
  assert.equal(ended.status, 0);
  assert.match(
    ended.stdout,
    /warning: A secret for hook\.example\.com cannot be had here .*being asked about\n$/,
  );
});

test("hook check: without a usable config, hooks file or sandbox it is exit status 2", async () => {
  for (const args of [
    ["--config", "none.yaml"],
    ["--config", "policy.yaml", "--sandbox", "nobody"],
  ]) {
    assert.equal((await sallyport(["check", ...args])).status, 2, args.join(" "));
  }
  rmSync(join(directory, ".agents/hooks.json"));
  assert.equal((await sallyport(["check", "--config", "policy.yaml"])).status, 2);
});
