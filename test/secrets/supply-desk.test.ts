/** What was had is kept from one policy to the next; rotated refresh tokens are kept and put where they came from. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { Template } from "../../src/model/config.ts";
import type { OAuth2Source, VaultSource } from "../../src/model/credential.ts";
import type { Hostname } from "../../src/model/exchange.ts";
import { createSecrets, type Secrets } from "../../src/secrets/secrets.ts";
import { createSupplyDesk } from "../../src/secrets/supply-desk.ts";

const folder = mkdtempSync(join(tmpdir(), "sallyport-desk-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const SOURCE: OAuth2Source = {
  kind: "oauth2",
  id: "o",
  endpoint: {
    scheme: "https",
    destination: { kind: "name", host: "a.example" as Hostname, port: 443 },
    target: "/",
  },
  clientId: "id",
  clientSecret: undefined,
  refreshToken: "refresh",
  scopes: [],
  style: "body",
};

function harness(refresh: Template) {
  const clock = { time: 0 };
  const bodies: string[] = [];
  const failures: string[] = [];
  const ran: string[] = [];
  const asked: string[] = [];
  const desk = createSupplyDesk({
    now: () => clock.time,
    failed: (what, problem) => failures.push(`${what}: ${problem}`),
    run: async ([file]) => {
      ran.push(file);
      return { value: "printed-secret", lifetime: 60_000 };
    },
    ttl: () => 300_000,
    get: async ({ endpoint, fields }) => {
      asked.push(`${endpoint.target} ${fields.map(([, value]) => value).join(" ")}`);
      return { status: 200, text: JSON.stringify({ data: { data: { a: "from-vault", id: "client" } } }) };
    },
    post: async ({ body }) => {
      bodies.push(body);
      const grant = {
        access_token: `token-${bodies.length}`,
        expires_in: 100,
        refresh_token: `rotated-${bodies.length}`,
      };
      return { status: 200, text: JSON.stringify(grant) };
    },
  });
  const templates = new Map<string, Template>([
    ["id", [{ kind: "literal", text: "client" }]],
    ["refresh", refresh],
    ["token", [{ kind: "minted", credential: "o" }]],
    ["exec", [{ kind: "exec", command: ["/bin/get"] }]],
    ["lost", [{ kind: "minted", credential: "nobody" }]],
  ]);
  const has: { vault: VaultSource | undefined } = { vault: undefined };
  function take(previous?: Secrets): Secrets {
    const env = { R: "first-refresh" };
    const supply = desk.supply({ tokens: [SOURCE], vault: has.vault });
    const secrets = createSecrets(templates, { env, now: () => clock.time, supply, previous });
    desk.adopt(secrets, templates);
    return secrets;
  }
  return { clock, bodies, failures, ran, asked, has, templates, take };
}

async function had(secrets: Secrets, key: string): Promise<unknown> {
  const rendering = secrets.render(key);
  if (!rendering.ok) await rendering.whenKnown?.();
  const known = secrets.render(key);
  return known.ok ? known.value : known.problem;
}

test("supply: programs are run at once, tokens when they are needed, and neither again for a reload", async () => {
  const { take, ran, bodies } = harness([{ kind: "env", name: "R" }]);
  const secrets = take();
  assert.deepEqual([ran, bodies], [["/bin/get"], []]);
  assert.equal(await had(secrets, "exec"), "printed-secret");
  assert.equal(await had(secrets, "token"), "token-1");
  const next = take(secrets);
  assert.equal(await had(next, "token"), "token-1");
  assert.deepEqual([ran.length, bodies.length], [1, 1]);
  assert.equal(next.redact("rotated-1 token-1"), "[redacted] token-1");
  assert.equal(await had(next, "lost"), "No such credential");
});

test("rotated: in memory where it did not come from a file", async () => {
  const { take, clock, bodies } = harness([{ kind: "env", name: "R" }]);
  const secrets = take();
  await had(secrets, "token");
  clock.time = 100_000;
  await had(secrets, "token");
  const sent = bodies.map((body) => new URLSearchParams(body).get("refresh_token"));
  assert.deepEqual(sent, ["first-refresh", "rotated-1"]);
});

test("rotated: back into its file, whose next change by somebody else counts", async () => {
  const path = join(folder, "refresh");
  writeFileSync(path, "first\n");
  const { take, clock, bodies } = harness([{ kind: "file", path }]);
  const secrets = take();
  await had(secrets, "token");
  assert.equal(readFileSync(path, "utf8"), "rotated-1\n");
  writeFileSync(path, "by-the-operator\n");
  clock.time = 100_000;
  await had(secrets, "token");
  assert.equal(new URLSearchParams(bodies[1]).get("refresh_token"), "by-the-operator");
});

test("rotated: what cannot be written is said, and nothing is lost", async () => {
  const path = join(folder, "gone");
  writeFileSync(path, "first\n");
  const { take, failures } = harness([{ kind: "file", path }]);
  const secrets = take();
  rmSync(path);
  assert.equal(await had(secrets, "token"), "token-1");
  assert.match(failures[0] ?? "", /^credentials\.o\.refresh_token: .*ENOENT/);
});

test("secret: what a token needs and cannot be had is the token's problem", async () => {
  const { take, failures } = harness([{ kind: "env", name: "ABSENT" }]);
  assert.equal(await had(take(), "token"), "Environment variable `ABSENT` is not set");
  assert.equal(failures.length, 1);
});

const VAULT: VaultSource = {
  endpoint: { ...SOURCE.endpoint, target: "/base" },
  token: "vault.token",
  namespace: undefined,
};

function vaultPart(field: string): Template {
  return [{ kind: "vault", mount: "kv", path: "p", field }];
}

test("vault: it is asked at once, not again for a reload, and anew where it is another", async () => {
  const { take, asked, has, templates } = harness([{ kind: "env", name: "R" }]);
  has.vault = VAULT;
  templates.set("vault.token", [{ kind: "env", name: "R" }]);
  templates.set("kv", vaultPart("a"));
  const secrets = take();
  assert.deepEqual(asked, ["/base/v1/kv/data/p first-refresh true"]);
  assert.equal(await had(secrets, "kv"), "from-vault");
  assert.equal(await had(take(secrets), "kv"), "from-vault");
  assert.equal(asked.length, 1);
  has.vault = { ...VAULT, namespace: "team" };
  assert.equal(await had(take(secrets), "kv"), "from-vault");
  assert.equal(asked[1], "/base/v1/kv/data/p first-refresh true team");
});

test("vault: without one its references are not to be had", async () => {
  const { take, templates, failures } = harness([{ kind: "env", name: "R" }]);
  templates.set("kv", vaultPart("a"));
  assert.equal(await had(take(), "kv"), "There is no `vault` section");
  assert.deepEqual(failures, ["vault:kv/p#a: There is no `vault` section"]);
});

test("minted: a token waits for what it is asked for with", async () => {
  const { take, has, templates, bodies } = harness([{ kind: "env", name: "R" }]);
  has.vault = VAULT;
  templates.set("vault.token", [{ kind: "env", name: "R" }]);
  templates.set("credentials.o.client_id", vaultPart("id"));
  templates.set("credentials.o.token", [{ kind: "minted", credential: "o" }]);
  assert.equal(await had(take(), "token"), "token-1");
  assert.equal(bodies.length, 1);
});
