/** docs/metrics.md lists every metric of the gate with its labels, and no other. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createMetrics } from "../../src/record/metrics.ts";
import { differences, namesOf, tableRows } from "./repository.ts";

const PAGE = "docs/metrics.md";

test("metrics.md: its metrics are those that a scrape shows", async () => {
  const documented = tableRows(PAGE, ["metric", "name"]).flatMap(namesOf);
  assert.deepEqual(differences(await scrapedNames(), documented.filter(isOurs)), []);
});

async function scrapedNames(): Promise<readonly string[]> {
  const metrics = createMetrics({ version: "0", node: "0", rules: () => ["a"], sandboxes: () => ["b"] });
  const types = [...(await metrics.text()).matchAll(/^# TYPE (\S+)/gm)];
  return types.map((match) => match[1] ?? "").filter(isOurs);
}

function isOurs(name: string): boolean {
  return name.startsWith("sallyport_");
}
