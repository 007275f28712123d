/** The operator's hooks: asked before an allowed exchange leaves, they may refuse it, and whatever goes wrong refuses it. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { askConnect, askInside, askPlain, head } from "../support/ask.ts";
import type { Gate } from "../support/gate.ts";
import { SECRET, startGate } from "../support/gate.ts";
import type { Message } from "../support/message-reader.ts";
import { oneValue, statusOf, valuesOf } from "../support/message-reader.ts";
import type { Origin } from "../support/origin.ts";
import { createOrigin, respond } from "../support/origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";
import { assertRefused } from "../support/refusal.ts";

/** A whole policy hook. */
const GATE_PY = `
import json, sys
context = json.load(sys.stdin)
path = context["tool_call"]["args"]["path"] or ""
if path.startswith("/forbidden"):
    verdict = {"decision": "deny", "reason": "path", "message": "This path is not for agents"}
elif path.startswith("/odd"):
    verdict = {"decision": "allow", "warnings": [{"reason": "odd", "message": "An unusual path"}]}
elif path.startswith("/ask"):
    verdict = {"decision": "deny", "reason": "ask-a-person", "approval": {}}
elif path.startswith("/trace"):
    verdict = {"decision": "transform", "transform": {"path": '$target.headers["X-Trace"]', "value": "t-1"}}
elif path.startswith("/elsewhere"):
    verdict = {"decision": "transform", "transform": {"path": "$target.host", "value": "evil.example.com"}}
else:
    verdict = {"decision": "allow"}
print(json.dumps(verdict))
`;

const HOST = "api.example.com";
const POLICY_HOST = "policy.example.com";
const POLICY_V4 = "11.0.0.20";
/** What a hook does, by the first label of the host that it is asked about, and the reason that must come of it. */
const BROKEN: readonly (readonly [name: string, command: readonly string[], reason: string])[] = [
  ["killed", ["/bin/sh", "-c", "kill -KILL $$"], "host_error:interceptor_failed"],
  ["failed", ["/bin/sh", "-c", `echo '{"decision":"allow"}'; exit 1`], "host_error:interceptor_failed"],
  ["absent", ["/does/not/exist"], "host_error:interceptor_failed"],
  ["flood", ["/usr/bin/yes"], "host_error:interceptor_failed"],
  ["nonsense", ["/bin/echo", "hello"], "host_error:interceptor_failed"],
  ["slow", ["/bin/sh", "-c", "trap '' TERM; sleep 60"], "host_error:interceptor_timeout"],
  ["invalid", ["/bin/echo", '{"decision":"warn"}'], "host_error:verdict_invalid"],
  ["posing", ["/bin/echo", '{"decision":"deny","reason":"host_error:x"}'], "host_error:verdict_invalid"],
];

let internet: Internet;
let gate: Gate;
let origin: Origin;
let policy: Origin;
const seen: string[] = [];

before(async () => {
  internet = await createInternet();
  const broken = BROKEN.map(([name]) => `${name}.example.com`);
  const names = [HOST, "central.example.com", "free.example.com", "shut.example.com", ...broken];
  for (const name of names) internet.dns.set(name, { A: [PUBLIC_V4] });
  internet.dns.set(POLICY_HOST, { A: [POLICY_V4] });
  origin = await createOrigin(internet, { tls: names, bound: true });
  policy = await createOrigin(internet, {
    address: POLICY_V4,
    tls: [POLICY_HOST],
    answer: ({ body }) => {
      seen.push(body);
      const { path } = JSON.parse(body).tool_call.args;
      if (path === "/moved") return head("HTTP/1.1 302 Found", "Location: /", "Content-Length: 0");
      return respond(path === "/no" ? '{"decision":"deny","reason":"central"}' : '{"decision":"allow"}');
    },
  });
  const directory = join(internet.directory, `gate-${internet.gate.pid}`);
  gate = await startGate(
    internet,
    {
      records: { file: "records.jsonl" },
      network: {
        allowlist: [
          { domain: HOST, transform: { Authorization: `Bearer ${SECRET}` } },
          { domain: "shut.example.com", intercept: "never" },
          { domain: "*" },
        ],
      },
      hooks: [
        {
          name: "gate",
          type: "command",
          command: ["/usr/bin/python3", join(directory, "gate.py")],
          domains: [HOST],
          may_set: ["X-Trace"],
        },
        {
          name: "central",
          type: "http",
          url: `https://${POLICY_HOST}/decide?v=1`,
          domains: ["central.example.com"],
          points: ["pre_tool_call"],
        },
        {
          name: "shut",
          type: "command",
          command: ["/bin/sh", "-c", `cat > ${join(directory, "shut.json")}; echo '{"decision":"deny"}'`],
          domains: ["shut.example.com"],
        },
        ...BROKEN.map(([name, command]) => ({
          name,
          type: "command",
          command,
          domains: [`${name}.example.com`],
          timeout: "500ms",
          points: ["pre_tool_call"],
        })),
      ],
    },
    { files: { "gate.py": GATE_PY } },
  );
});
after(() => internet.close());

function get(path: string, host = HOST, ...lines: readonly string[]): Promise<Message> {
  return askInside(internet, gate, host, head(`GET ${path} HTTP/1.1`, `Host: ${host}`, ...lines));
}

type Line = Readonly<Record<string, unknown>> & { readonly verdict?: Readonly<Record<string, unknown>> };

function lines(): readonly Line[] {
  const file = join(internet.directory, `gate-${internet.gate.pid}`, "records.jsonl");
  return readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Line);
}

/** The newest line that fits, once it is there. */
async function lineWhere(fits: (line: Line) => boolean): Promise<Line> {
  for (const end = Date.now() + 5_000; Date.now() < end; await delay(10)) {
    const found = lines().findLast(fits);
    if (found !== undefined) return found;
  }
  throw new Error("Waited in vain for a line of records");
}

function detailOf(answer: Message): unknown {
  return (JSON.parse(answer.body) as { error: { detail?: unknown } }).error.detail;
}

describe("a hook in Python", () => {
  test("denies by path; nothing leaves, and its words reach the client", async () => {
    const before = origin.requests.length;
    const answer = await get("/forbidden?token=hidden");
    assert.deepEqual([statusOf(answer), oneValue(answer, "x-sallyport-reason")], [403, "hook-denied"]);
    assert.equal(detailOf(answer), "This path is not for agents");
    assert.equal(origin.requests.length, before);
    const record = await lineWhere((line) => line["reason"] === "hook-denied" && line["host"] === HOST);
    assert.deepEqual([record.verdict, record["rule"], record["injected"]], ["deny", HOST, []]);
    const interception = await lineWhere((line) => line.verdict?.["reason"] === "path");
    assert.equal(interception["interception_point"], "pre_tool_call");
    assert.deepEqual(
      [interception["mode"], interception["decided_by"], interception["interceptors_registered"]],
      ["enforce", 0, 1],
    );
    assert.match(String(interception["input_identity"]), /^sha256:[0-9a-f]{64}$/);
    assert.doesNotMatch(JSON.stringify(interception), /forbidden|hidden|api\.example/);
  });

  test("allows with a warning, which is recorded; the outcome is told to it afterwards", async () => {
    assert.equal(statusOf(await get("/odd")), 200);
    const request = origin.requests.at(-1);
    assert.deepEqual(valuesOf(request ?? { fields: [] }, "authorization"), [
      `Bearer ${internet.canary.secret}`,
    ]);
    const told = await lineWhere(
      (line) => line["interception_point"] === "post_tool_call" && line.verdict?.["warnings"] !== undefined,
    );
    assert.equal(told["mode"], "evaluate_only");
    assert.deepEqual(told.verdict?.["warnings"], [{ reason: "odd", message: "An unusual path" }]);
    const sequences = lines().flatMap((line) =>
      typeof line["sequence"] === "number" ? [line["sequence"]] : [],
    );
    assert.deepEqual(
      sequences.toSorted((a, b) => a - b),
      sequences.map((_, index) => index),
    );
  });

  test("asks for approval: nobody can give one, so it is a denial", async () => {
    const answer = await get("/ask");
    assert.deepEqual([statusOf(answer), oneValue(answer, "x-sallyport-reason")], [403, "hook-denied"]);
    assert.equal(detailOf(answer), "ask-a-person");
  });
});

describe("a hook that rewrites", () => {
  test("sets a field that it may set, over the client's own value, and the secret goes with it", async () => {
    assert.equal(statusOf(await get("/trace", HOST, "X-Trace: mine", "x_trace: alias")), 200);
    const request = origin.requests.at(-1) ?? { fields: [] };
    assert.deepEqual([valuesOf(request, "x-trace"), valuesOf(request, "x_trace")], [["t-1"], []]);
    assert.equal(valuesOf(request, "authorization").length, 1);
    const record = await lineWhere((line) => line.verdict?.["decision"] === "transform");
    assert.deepEqual(record.verdict?.["transform"], { path: '$target.headers["X-Trace"]' });
    assert.notEqual(record["input_identity"], record["enforced_identity"]);
  });

  test("has its field set once: not again behind the body, under either spelling", async () => {
    const chunked = head("POST /trace HTTP/1.1", `Host: ${HOST}`, "Transfer-Encoding: chunked");
    const trailers = "X-Trace: mine\r\nx_trace: alias\r\nX-Else: kept\r\n";
    assert.equal(statusOf(await askInside(internet, gate, HOST, `${chunked}0\r\n${trailers}\r\n`)), 200);
    const { trailers: arrived } = origin.requests.at(-1) ?? { trailers: [] };
    assert.deepEqual(arrived, [["X-Else", "kept"]]);
  });

  test("is refused with its exchange where it would send it elsewhere", async () => {
    const before = origin.requests.length;
    const answer = await get("/elsewhere");
    assert.equal(detailOf(answer), "host_error:transform_target_forbidden");
    assert.equal(origin.requests.length, before);
  });
});

for (const [name, , reason] of BROKEN) {
  test(`a hook that is ${name} refuses the exchange as ${reason}`, async () => {
    const before = origin.requests.length;
    const answer = await get("/", `${name}.example.com`);
    assert.deepEqual([statusOf(answer), oneValue(answer, "x-sallyport-reason")], [403, "hook-denied"]);
    assert.equal(detailOf(answer), reason);
    assert.equal(origin.requests.length, before);
  });
}

describe("a hook over HTTP", () => {
  test("is asked without query and secret, and decides", async () => {
    assert.equal(statusOf(await get("/yes?q=1", "central.example.com")), 200);
    const asked = JSON.parse(seen.at(-1) ?? "");
    assert.deepEqual(asked.tool_call.args, {
      method: "GET",
      scheme: "https",
      host: "central.example.com",
      port: 443,
      path: "/yes",
      sandbox: null,
    });
    assert.deepEqual([asked.spec, asked.tool_call.name], ["agent-hooks/0.1", "http_request"]);
    assert.equal(policy.requests.at(-1)?.start, "POST /decide?v=1 HTTP/1.1");
    assert.equal(detailOf(await get("/no", "central.example.com")), "central");
  });

  test("that redirects has failed", async () => {
    const answer = await get("/moved", "central.example.com");
    assert.equal(detailOf(answer), "host_error:interceptor_failed");
  });

  test("is no destination for a sandbox, though `*` is allowed", async () => {
    const before = policy.requests.length;
    assertRefused(await askConnect(internet, `${POLICY_HOST}:443`), {
      status: 403,
      reason: "address-not-public",
    });
    assert.equal(policy.requests.length, before);
  });
});

test("a tunnel that policy keeps shut is asked about once, as CONNECT without a path", async () => {
  const answer = await askConnect(internet, "shut.example.com:443");
  assert.deepEqual([statusOf(answer), oneValue(answer, "x-sallyport-reason")], [403, "hook-denied"]);
  const directory = join(internet.directory, `gate-${internet.gate.pid}`);
  const { args } = JSON.parse(readFileSync(join(directory, "shut.json"), "utf8")).tool_call;
  assert.deepEqual([args.method, args.path, args.host], ["CONNECT", null, "shut.example.com"]);
});

test("a host that no hook covers is tunnelled as ever, and clear text is asked about too", async () => {
  assert.equal(statusOf(await askConnect(internet, "free.example.com:443")), 200);
  const plain = await askPlain(
    internet,
    head("GET http://central.example.com/no HTTP/1.1", "Host: central.example.com"),
  );
  assert.equal(oneValue(plain, "x-sallyport-reason"), "hook-denied");
});

test("a reload changes who is asked", async () => {
  const allowlist = [{ domain: "*" }];
  const hook = { name: "no", type: "command", command: ["/bin/echo", '{"decision":"deny"}'], domains: ["*"] };
  const asIs = { records: { file: "records.jsonl" }, network: { allowlist } };
  await gate.reload({ ...asIs, hooks: [hook] });
  assert.equal(oneValue(await get("/", "free.example.com"), "x-sallyport-reason"), "hook-denied");
  await gate.reload({ ...asIs, hooks: [hook], hook_options: { mode: "evaluate_only" } });
  assert.equal(statusOf(await get("/tried-out", "free.example.com")), 200);
  const record = await lineWhere((line) => line["path"] === "/tried-out");
  assert.deepEqual([record.verdict, record["reason"], record["would"]], ["allow", "rule-allows", "deny"]);
  await gate.reload({ ...asIs, mode: "evaluate_only", hooks: [hook] });
  assert.equal(statusOf(await get("/opinion", "free.example.com")), 200);
  const opinion = await lineWhere((line) => line["path"] === "/opinion");
  assert.deepEqual([opinion.verdict, opinion["reason"], opinion["would"]], ["allow", "hook-denied", "deny"]);
});
