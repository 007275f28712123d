import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createCells } from "../../src/record/counts.ts";
import { buildInfo, familiesOf } from "../../src/record/families.ts";

const ROOT = join(import.meta.dirname, "../..");
const DEPLOY = join(ROOT, "deploy/prometheus");
const RULES = readFileSync(join(DEPLOY, "sallyport.rules.yml"), "utf8");

const none: string[] = [];
const KNOWN = new Set(
  [...familiesOf(createCells({ rules: () => none, sandboxes: () => none })), buildInfo("0", "0")].flatMap(
    ({ name, type }) => (type === "histogram" ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name]),
  ),
);

function promtool(...args: string[]): string {
  const { status, stdout, stderr, error } = spawnSync("promtool", args, { cwd: DEPLOY, encoding: "utf8" });
  return status === 0 ? "" : `${error ?? ""}${stdout}${stderr}`;
}

/** Names of our metrics in a text, unknown ones. */
function unknownIn(text: string): string[] {
  return [...text.matchAll(/\bsallyport_[a-z_]+/g)].map(([name]) => name).filter((name) => !KNOWN.has(name));
}

test("createMetrics feeds alerts that Prometheus accepts and that fire when they should", () => {
  assert.equal(promtool("check", "config", "prometheus.yml"), "");
  assert.equal(promtool("test", "rules", "sallyport.rules.test.yml"), "");
});

test("createMetrics has every metric that the alerts, the dashboard and the docs ask for", () => {
  const dashboard = readFileSync(join(ROOT, "deploy/grafana/sallyport.json"), "utf8");
  const panels = (JSON.parse(dashboard) as { panels: unknown[] }).panels;
  assert.ok(panels.length > 10);
  assert.deepEqual(unknownIn(RULES), []);
  assert.deepEqual(unknownIn(dashboard), []);
  const queries = readFileSync(join(ROOT, "docs/metrics.md"), "utf8").match(/```promql[^`]*```/g) ?? [];
  assert.ok(queries.length > 3);
  assert.deepEqual(unknownIn(queries.join("\n")), []);
});

test("docs/metrics.md says what to do about every alert", () => {
  const docs = readFileSync(join(ROOT, "docs/metrics.md"), "utf8");
  const alerts = [...RULES.matchAll(/- alert: (\w+)/g)].map((match) => match[1]);
  const documented = [...docs.matchAll(/^\| (Sallyport\w+) \|/gm)].map((match) => match[1]);
  assert.deepEqual(documented, alerts);
});
