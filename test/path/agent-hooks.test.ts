/** The agent's own hooks, inside the jail: a security gate, and an audit trail whose token no file in there holds. */
import assert from "node:assert/strict";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { SECRET } from "../support/gate.ts";
import { type Ended, type JailSetup, runJail, setUpJail } from "../support/jail.ts";
import { valuesOf } from "../support/message-reader.ts";
import type { Origin } from "../support/origin.ts";
import { createOrigin, respond } from "../support/origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";

const TELEMETRY = "telemetry.example.com";
const MAIN = fileURLToPath(new URL("../../src/start.mjs", import.meta.url));

const GATE_PY = `
import json, sys
call = json.load(sys.stdin)["tool_call"]
if "rm -rf" in call["args"].get("code", ""):
    print(json.dumps({"decision": "deny", "reason": "Destructive command blocked"}))
else:
    print(json.dumps({"decision": "allow"}))
`;

const HOOKS = {
  "security-gate": {
    enabled: true,
    pre_tool_execution: [
      {
        matcher: "code_execution",
        hooks: [{ type: "command", command: "python3 .agents/hooks-scripts/gate.py", timeout: 10 }],
      },
    ],
  },
  "audit-logging": {
    post_tool_execution: [
      {
        matcher: "read_file|write_file",
        hooks: [
          {
            type: "http",
            url: `https://${TELEMETRY}/api/v1/agent-events`,
            headers: { "X-Event-Source": "agent-sandbox" },
            timeout: 10,
          },
        ],
      },
    ],
  },
  elsewhere: {
    pre_tool_execution: [
      { matcher: "list_files", hooks: [{ type: "http", url: "https://unlisted.example.com/", timeout: 10 }] },
    ],
  },
};

let internet: Internet;
let setup: JailSetup;
let origin: Origin;

before(async () => {
  internet = await createInternet();
  internet.dns.set(TELEMETRY, { A: [PUBLIC_V4] });
  origin = await createOrigin(internet, { tls: [TELEMETRY], bound: true, answer: () => respond("{}") });
  setup = setUpJail(internet, {
    network: { allowlist: [{ domain: TELEMETRY, transform: { Authorization: `Bearer ${SECRET}` } }] },
  });
  const folder = join(setup.directory, ".agents");
  mkdirSync(join(folder, "hooks-scripts"), { recursive: true });
  writeFileSync(join(folder, "hooks.json"), JSON.stringify(HOOKS));
  writeFileSync(join(folder, "hooks-scripts/gate.py"), GATE_PY);
  for (const path of [folder, join(folder, "hooks-scripts")]) chmodSync(path, 0o755);
});
after(() => internet.close());

function hook(event: string, payload: object): Promise<Ended> {
  const command = [process.execPath, "--disable-warning=ExperimentalWarning", MAIN, "hook", event];
  return runJail(internet, setup, command, { stdin: JSON.stringify(payload) });
}

function call(name: string, args: object): object {
  return { tool_call: { name, args }, environment_id: "env_xyz789" };
}

test("the security gate denies rm -rf, and lets all else run", async () => {
  const denied = await hook(
    "pre_tool_execution",
    call("code_execution", { code: "rm -rf /data/forbidden", language: "bash" }),
  );
  assert.deepEqual(
    [denied.code, JSON.parse(denied.stdout)],
    [0, { decision: "deny", reason: "Destructive command blocked" }],
  );
  const allowed = await hook("pre_tool_execution", call("code_execution", { code: "ls", language: "bash" }));
  assert.equal(allowed.stdout, '{"decision":"allow"}\n');
});

test("the audit hook's POST arrives with the token that the gate adds", async () => {
  const event = { ...call("write_file", { path: "a.txt" }), error: "disk full" };
  const ended = await hook("post_tool_execution", event);
  assert.deepEqual([ended.stdout, ended.stderr], ["{}\n", ""]);
  const request = origin.requests.at(-1);
  assert.ok(request);
  assert.equal(request.start, "POST /api/v1/agent-events HTTP/1.1");
  assert.deepEqual(JSON.parse(request.body), event);
  assert.deepEqual(valuesOf(request, "authorization"), [`Bearer ${internet.canary.secret}`]);
  assert.deepEqual(valuesOf(request, "x-event-source"), ["agent-sandbox"]);
});

test("a hook that the policy refuses fails open, and names the gate's reason", async () => {
  const ended = await hook("pre_tool_execution", call("list_files", {}));
  assert.equal(ended.stdout, '{"decision":"allow"}\n');
  assert.match(
    ended.stderr,
    /elsewhere\.pre_tool_execution\[0\]\.hooks\[0\] answered with status 403, no-rule-matched/,
  );
});
