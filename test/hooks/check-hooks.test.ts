import assert from "node:assert/strict";
import { test } from "node:test";
import { checkHooks, type Forecast } from "../../src/hooks/check-hooks.ts";
import { parseHooks } from "../../src/hooks/hooks-file.ts";

const ALLOW: Forecast = { verdict: "allow", reason: "rule-allows", injected: [] };
const DENY: Forecast = { verdict: "deny", reason: "no-rule-matched", injected: [] };

function check(event: string, hook: object, forecast: Forecast): readonly string[] {
  const file = parseHooks(
    JSON.stringify({
      g: { [event]: [{ matcher: "*", hooks: [{ type: "http", url: "https://a.example.com/x", ...hook }] }] },
    }),
  );
  return checkHooks(file, () => forecast).map(({ severity, message }) => `${severity}: ${message}`);
}

test("checkHooks: a hook that the policy lets out, with nothing secret on it, is fine", () => {
  assert.deepEqual(check("pre_tool_execution", { headers: { "X-Event-Source": "agent" } }, ALLOW), []);
});

test("checkHooks: a hook that the policy refuses is told with what would come of it", () => {
  const refused = (event: string, hook: object): string => check(event, hook, DENY)[0] ?? "";
  assert.match(
    refused("pre_tool_execution", {}),
    /^refused: The policy refuses POST to a\.example\.com \(no-rule-matched\): .*allowed/,
  );
  assert.match(refused("pre_tool_execution", { onFailure: "block" }), /would be denied/);
  assert.match(refused("post_tool_execution", {}), /lost/);
});

test("checkHooks: a missing secret of the gate is a warning that tells what would come of it", () => {
  const [missing, ...more] = check("post_tool_execution", {}, { ...ALLOW, secretMissing: true });
  assert.match(
    missing ?? "",
    /^warning: A secret for a\.example\.com cannot be had here .*events would be lost$/,
  );
  assert.deepEqual(more, []);
  assert.deepEqual(check("post_tool_execution", {}, { ...ALLOW, secretMissing: false }), []);
});

test("checkHooks: a bare secret in a header or in the query is told by its name alone", () => {
  const [header, odd, query, ...more] = check(
    "pre_tool_execution",
    {
      url: "https://a.example.com/?api_key=hunter2&q=1",
      headers: { "X-Api-Key": "hunter2", "X-Odd": "Bearer hunter2", "X-Fine": "1" },
    },
    ALLOW,
  );
  assert.match(header ?? "", /^warning: .*the header X-Api-Key.*`transform`/);
  assert.match(odd ?? "", /the header X-Odd/);
  assert.match(query ?? "", /the query's "api_key"/);
  assert.deepEqual(more, []);
  assert.doesNotMatch([header, odd, query].join(), /hunter2/);
  const replaced = check(
    "pre_tool_execution",
    { headers: { Authorization: "x" } },
    { ...ALLOW, injected: ["Authorization"] },
  );
  assert.match(replaced[0] ?? "", /the gate replaces it/);
});

test("checkHooks: what is wrong with the file itself comes first, and command handlers dial nothing", () => {
  const file = parseHooks(
    '{"g":{"pre_tool_execution":[{"matcher":"*_x","hooks":[{"type":"command","command":"x"}]}]}}',
  );
  const findings = checkHooks(file, () => assert.fail("nothing is asked"));
  assert.deepEqual(
    findings.map(({ severity, where }) => [severity, where]),
    [["warning", "g.pre_tool_execution[0].matcher"]],
  );
});
