import assert from "node:assert/strict";
import { createServer } from "node:net";
import { type TestContext, test } from "node:test";
import type { Readiness } from "../../src/admin/server.ts";
import { createPages, listenPages } from "../../src/cli/pages.ts";
import { loadConfigText } from "../../src/config/load.ts";
import { createMetrics } from "../../src/record/metrics.ts";
import { createSecrets } from "../../src/secrets/secrets.ts";
import { freeAddress } from "./program.ts";

const GOOD: Readiness["config"] = { ok: true, at: 1_000, problem: undefined };

test("createPages is undefined where the config asks for none", async () => {
  const { pages } = pagesOf("listen: { proxy: 127.0.0.1:8080 }");
  assert.equal(pages, undefined);
});

test("createPages shows what the fleet and this process say, as they say it at that time", async (context) => {
  const address = await freeAddress();
  const { config, state } = await opened(context, `listen: { proxy: 127.0.0.1:8080, admin: "${address}" }`);
  const ready = async () => (await fetch(`http://${address}/readyz`)).json();
  const first = (await ready()) as Record<string, unknown>;
  assert.deepEqual([first["policy"], first["mode"]], [config.policy.digest.slice(0, 12), "enforce"]);
  assert.deepEqual(first["secretsUnavailable"] ?? first["secrets_unavailable"], ["a-key"]);
  state.draining = true;
  assert.equal((await fetch(`http://${address}/readyz`)).status, 503);
  const metrics = await (await fetch(`http://${address}/metrics`)).text();
  assert.match(metrics, /^sallyport_/m);
});

test("createPages asks for the token of the config, and lets nobody in with one that cannot be had", async (context) => {
  const address = await freeAddress();
  const text = `listen: { proxy: 127.0.0.1:8080, admin: { address: "${address}", token: "\${env:ADMIN}" } }`;
  const { env } = await opened(context, text);
  const status = async (token: string) =>
    (await fetch(`http://${address}/approvals`, { headers: { Authorization: `Bearer ${token}` } })).status;
  assert.equal(await status("correct-horse"), 200);
  assert.equal(await status("wrong"), 401);
  delete env["ADMIN"];
  assert.equal(await status("correct-horse"), 401);
  assert.equal(await status(""), 401);
});

test("listenPages says which key of the config names an address that is taken", async (context) => {
  const address = await freeAddress();
  const other = createServer();
  context.after(() => other.close());
  const [host, port] = address.split(":");
  await new Promise<void>((resolve) => other.listen(Number(port), host, resolve));
  const { pages, config } = pagesOf(`listen: { proxy: 127.0.0.1:8080, admin: "${address}" }`);
  assert.ok(pages !== undefined);
  context.after(() => pages.close());
  await assert.rejects(listenPages(pages, config), { code: "E_CONFIG", message: /listen\.admin/ });
});

async function opened(context: TestContext, text: string) {
  const made = pagesOf(text);
  const { pages } = made;
  assert.ok(pages !== undefined);
  await listenPages(pages, made.config);
  context.after(() => pages.close());
  return made;
}

function pagesOf(text: string) {
  const loaded = loadConfigText(`version: 1\nnetwork: { allowlist: [] }\n${text}\n`, "/nowhere/c.yaml", 1);
  assert.ok(loaded.ok, JSON.stringify(loaded));
  const { config } = loaded;
  const env: Record<string, string> = { ADMIN: "correct-horse" };
  const state = { listening: true, draining: false, config: GOOD };
  const pages = createPages({
    config: () => config,
    secrets: () => createSecrets(config.templates, { env, now: () => 0 }),
    metrics: createMetrics({ version: "0.0.0", node: "0", rules: () => [], sandboxes: () => [] }),
    fleet: {
      approvals: () => Promise.resolve([]),
      resolveApproval: () => Promise.resolve(undefined),
      metrics: () => Promise.resolve([]),
      state: () => ({ secretsUnavailable: ["a-key"], recordsDropped: 0 }),
    },
    state: () => state,
  });
  return { pages, config, env, state };
}
