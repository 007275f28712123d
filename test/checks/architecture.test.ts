/** Each architecture rule fires on a tree that breaks it: a rule that cannot fire protects nothing. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { ROOT, read } from "./repository.ts";

interface Violation {
  readonly from: string;
  readonly rule: { readonly name: string };
}

interface Configuration {
  readonly forbidden: readonly { readonly name: string }[];
}

const run = promisify(execFile);
const tree = mkdtempSync(join(tmpdir(), "sallyport-architecture-"));
after(() => rmSync(tree, { recursive: true, force: true }));

const PACKAGES = [
  "@smithy/signature-v4",
  "http-proxy",
  "jose",
  "koffi",
  "node-forge",
  "prom-client",
  "re2",
  "tldts",
  "yaml",
];

/** Rule, the file that breaks it, and what that file imports. */
const BREACHES: readonly (readonly [rule: string, file: string, specifier: string])[] = [
  ["no-circular", "src/forward/left.ts", "./right.ts"],
  ["stages-are-strangers", "src/accept/door.ts", "../forward/dial.ts"],
  ["supply-rooms-know-no-stage", "src/pki/ca.ts", "../record/writer.ts"],
  ["admin-knows-only-record", "src/admin/server.ts", "../decide/policy.ts"],
  ["config-knows-only-decide", "src/config/load.ts", "../identify/client.ts"],
  ["base-is-below-all-but-model", "src/base/ip.ts", "../wire/fields.ts"],
  ["proofs-are-minted-in-decide", "src/forward/forge.ts", "../decide/proofs.ts"],
  ["core-is-sans-io", "src/transform/clock.ts", "node:timers"],
  ["model-imports-nothing", "src/model/noun.ts", "../base/plain.ts"],
  ["decide-imports-model-and-base", "src/decide/reader.ts", "../wire/fields.ts"],
  ["only-the-top-composes", "src/exchange.ts", "./app.ts"],
  ["only-the-top-runs-sentences", "src/accept/starter.ts", "../exchange.ts"],
  ["only-forward-resolves", "src/accept/lookup.ts", "node:dns"],
  ["only-hooks-and-sandbox-spawn", "src/record/shell.ts", "node:child_process"],
  ...PACKAGES.map((name) => [`${name}-has-one-adapter`, `src/secrets/uses-${name}.ts`, name] as const),
  ["no-undeclared-package", "src/admin/undeclared.ts", "stowaway"],
  ["no-unresolvable", "src/admin/lost.ts", "./gone.ts"],
  ["product-knows-no-test", "src/admin/cheat.ts", "../../test/helper.ts"],
];

/** Files that are imported above and import nothing. */
const LEAVES = [
  "src/app.ts",
  "src/base/plain.ts",
  "src/decide/policy.ts",
  "src/decide/proofs.ts",
  "src/forward/dial.ts",
  "src/identify/client.ts",
  "src/record/writer.ts",
  "src/wire/fields.ts",
  "src/wire/orphan.ts",
  "test/helper.ts",
];

test("dependency-cruiser: every rule fires on a tree that breaks it, and no rule is left untried", async () => {
  plantTree();
  const fired = (await cruise()).map(({ rule, from }) => `${rule.name} ${from}`);
  const expected = [...BREACHES.map(([rule, file]) => `${rule} ${file}`), "no-orphans src/wire/orphan.ts"];
  assert.deepEqual(
    expected.filter((line) => !fired.includes(line)),
    [],
  );
  const rules = createRequire(import.meta.url)(join(ROOT, ".dependency-cruiser.cjs")) as Configuration;
  const tried = new Set(expected.map((line) => line.split(" ")[0]));
  assert.deepEqual(
    rules.forbidden.map(({ name }) => name).filter((name) => !tried.has(name)),
    [],
  );
});

function plantTree(): void {
  for (const name of [...PACKAGES, "stowaway"]) {
    plant(`node_modules/${name}/package.json`, JSON.stringify({ name, version: "1.0.0", main: "index.js" }));
    plant(`node_modules/${name}/index.js`, "module.exports = 1;\n");
  }
  const dependencies = Object.fromEntries(PACKAGES.map((name) => [name, "1.0.0"]));
  plant("package.json", JSON.stringify({ name: "tree", type: "module", dependencies }));
  plant("tsconfig.json", read("tsconfig.json"));
  for (const file of LEAVES) plant(file, "export const leaf = 1;\n");
  plant("src/forward/right.ts", 'export * from "./left.ts";\n');
  for (const [, file, specifier] of BREACHES)
    plant(file, `import * as it from "${specifier}";\nexport const used = it;\n`);
}

function plant(file: string, text: string): void {
  const path = join(tree, file);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

async function cruise(): Promise<readonly Violation[]> {
  const config = join(ROOT, ".dependency-cruiser.cjs");
  const cruiser = join(ROOT, "node_modules/.bin/depcruise");
  const options = { cwd: tree, maxBuffer: 1 << 26 };
  const { stdout } = await run(cruiser, ["--config", config, "--output-type", "json", "src"], options).catch(
    (error: { readonly stdout: string }) => error,
  );
  return (JSON.parse(stdout) as { readonly summary: { readonly violations: readonly Violation[] } }).summary
    .violations;
}
