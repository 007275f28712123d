import assert from "node:assert/strict";
import { test } from "node:test";
import { loadConfigText } from "../src/config/load.ts";
import { takeUp } from "../src/in-force.ts";
import type { SupplyDesk } from "../src/secrets/supply-desk.ts";

const TEXT = `version: 1
network: { allowlist: [{ domain: a.example, transform: { Authorization: "\${env:TOKEN}" } }] }
sandboxes: [{ id: box, source: [10.80.0.2] }]
`;

test("takeUp compiles the policy, makes its secrets and hands both to whoever supplies them", () => {
  const loaded = loadConfigText(TEXT, "/nowhere/sallyport.yaml", 3);
  assert.ok(loaded.ok, JSON.stringify(loaded));
  const adopted: unknown[] = [];
  const supplies: SupplyDesk = {
    supply: () => () => undefined as never,
    adopt: (secrets, templates) => void adopted.push(secrets, templates),
  };
  const parts = { env: { TOKEN: "correct-horse-battery" }, supplies, now: () => 0 };
  const force = takeUp(loaded.config, undefined, parts);
  assert.equal(force.policy.generation, 3);
  assert.equal(force.digest, loaded.config.policy.digest.slice(0, 12));
  assert.deepEqual(
    force.sandboxes.map(({ id }) => id),
    ["box"],
  );
  assert.deepEqual(adopted, [force.secrets, loaded.config.templates]);
  const [key = ""] = loaded.config.templates.keys();
  const rendered = force.secrets.render(key);
  assert.ok(rendered.ok);
  assert.equal(rendered.value, "correct-horse-battery");
  // What exchanges under way may still use is not shown after a reload either.
  const next = takeUp(loaded.config, force.secrets, { ...parts, env: {} });
  assert.doesNotMatch(next.secrets.redact("correct-horse-battery"), /horse/);
});
