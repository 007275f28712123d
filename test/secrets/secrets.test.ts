/** Templates rendered: from variables and files, again after a change, each failing alone, nothing printed. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { Template } from "../../src/model/config.ts";
import { createSecrets, type SecretSources } from "../../src/secrets/secrets.ts";

const folder = mkdtempSync(join(tmpdir(), "sallyport-secrets-"));
after(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;

function write(content: string): string {
  const path = join(folder, String(files++));
  writeFileSync(path, content);
  return path;
}

function literal(text: string) {
  return { kind: "literal", text } as const;
}

function env(name: string) {
  return { kind: "env", name } as const;
}

function file(path: string) {
  return { kind: "file", path } as const;
}

/** Secrets of these templates, and their clock. */
function secretsOf(templates: Readonly<Record<string, Template>>, more: Partial<SecretSources> = {}) {
  const clock = { time: 0 };
  const sources = { env: {}, now: () => clock.time, ...more };
  return { clock, secrets: createSecrets(new Map(Object.entries(templates)), sources) };
}

test("render: literals, variables and files are joined in order", () => {
  const { secrets } = secretsOf(
    {
      a: [literal("Bearer "), env("T")],
      b: [file(write("f1\n")), literal("-"), env("T")],
      c: [literal("plain")],
    },
    { env: { T: "tok" } },
  );
  assert.deepEqual(secrets.render("a"), { ok: true, value: "Bearer tok", generation: 1 });
  assert.deepEqual(secrets.render("b"), { ok: true, value: "f1-tok", generation: 1 });
  assert.deepEqual(secrets.render("c"), { ok: true, value: "plain", generation: 1 });
  assert.equal(secrets.render("a"), secrets.render("a"));
});

test("render: a key that no template has is a problem", () => {
  assert.deepEqual(secretsOf({}).secrets.render("x"), { ok: false, problem: "No secret stands at `x`" });
});

test("render: variables are read once, at the start", () => {
  const variables: Record<string, string> = { T: "one" };
  const { secrets, clock } = secretsOf({ a: [env("T")] }, { env: variables });
  variables["T"] = "two";
  clock.time = 10_000;
  assert.deepEqual(secrets.render("a"), { ok: true, value: "one", generation: 1 });
});

test("render: the generation rises with the value, and only then", () => {
  const path = write("one");
  const { secrets, clock } = secretsOf({ a: [literal("x "), file(path)] });
  assert.deepEqual(secrets.render("a"), { ok: true, value: "x one", generation: 1 });
  writeFileSync(path, "one\n");
  clock.time += 1_000;
  assert.deepEqual(secrets.render("a"), { ok: true, value: "x one", generation: 1 });
  writeFileSync(path, "two");
  clock.time += 1_000;
  assert.deepEqual(secrets.render("a"), { ok: true, value: "x two", generation: 2 });
  rmSync(path);
  clock.time += 1_000;
  assert.equal(secrets.render("a").ok, false);
  writeFileSync(path, "two");
  clock.time += 1_000;
  assert.deepEqual(secrets.render("a"), { ok: true, value: "x two", generation: 2 });
});

test("render: one file in two templates changes in both", () => {
  const path = write("one");
  const { secrets, clock } = secretsOf({ a: [file(path)], b: [literal("x"), file(path)] });
  writeFileSync(path, "two");
  clock.time += 1_000;
  for (const key of ["a", "b"]) {
    const rendering = secrets.render(key);
    assert.ok(rendering.ok && rendering.value.endsWith("two") && rendering.generation === 2);
  }
});

const UNUSABLE: readonly (readonly [string, string | undefined, string])[] = [
  ["that is not set", undefined, "is not set"],
  ["that is empty", "", "is empty"],
  ["with a line break", "hunter22\r\nX: y", "holds a line break, NUL or another control character"],
  ["with an outer blank", " hunter22", "starts or ends with a blank or line break"],
  ["beyond latin1", "hunter22\u20ac", "holds a character that cannot stand in a header"],
  ["that is too long", "h".repeat(16_385), "is longer than 16 KiB"],
];

for (const [name, value, problem] of UNUSABLE) {
  test(`render: a variable ${name} is a problem that names the variable alone`, () => {
    const { secrets } = secretsOf({ a: [literal("Bearer "), env("TOKEN_A")] }, { env: { TOKEN_A: value } });
    assert.deepEqual(secrets.render("a"), {
      ok: false,
      problem: `Environment variable \`TOKEN_A\` ${problem}`,
    });
  });
}

test("render: parts that are too long together are a problem", () => {
  const { secrets } = secretsOf(
    { a: [env("A"), env("B")] },
    { env: { A: "a".repeat(10_000), B: "b".repeat(10_000) } },
  );
  assert.deepEqual(secrets.render("a"), { ok: false, problem: "The whole value is longer than 16 KiB" });
});

test("render: names that every object has are variables like others", () => {
  const { secrets } = secretsOf({ a: [env("constructor")], b: [env("__proto__")] });
  assert.deepEqual(
    secrets.unavailable().map(({ problem }) => problem),
    ["Environment variable `constructor` is not set", "Environment variable `__proto__` is not set"],
  );
});

test("unavailable: lists what is down, and the rest works", () => {
  const path = join(folder, "missing");
  const { secrets, clock } = secretsOf(
    { good: [env("G")], bad: [env("B")], gone: [file(path)] },
    { env: { G: "ok" } },
  );
  assert.deepEqual(secrets.unavailable(), [
    { key: "bad", problem: "Environment variable `B` is not set" },
    { key: "gone", problem: `File \`${path}\` cannot be read (ENOENT)` },
  ]);
  assert.ok(secrets.render("good").ok);
  writeFileSync(path, "back");
  clock.time += 1_000;
  assert.deepEqual(
    secrets.unavailable().map(({ key }) => key),
    ["bad"],
  );
});

test("redact, needles: what a placeholder stands for, written out, whole and by its words", () => {
  const key = "credentials.slack.value";
  const { secrets } = secretsOf({ [key]: [literal("ab cd efgh long-word-1")] });
  assert.equal(secrets.redact("x ab cd efgh long-word-1 y"), "x [redacted] y");
  assert.equal(secrets.redact("x long-word-1 y"), "x [redacted] y");
  const long = secrets.needles([key]).filter(({ length }) => length >= 8);
  assert.deepEqual(long.toSorted(), ["ab cd efgh long-word-1", "long-word-1"]);
  const short = secretsOf({ [key]: [literal("short")] });
  assert.deepEqual(short.secrets.short(), [key]);
});

test("redact: variables, files and secrets written out, before anything was rendered", () => {
  const { secrets } = secretsOf(
    {
      "network.allowlist[0].transform.Authorization": [literal("Bearer written-out-1")],
      "network.allowlist[0].transform.X-Client": [literal("my-client-name")],
      a: [literal("Bearer "), env("T")],
      b: [file(write("file-secret\n"))],
      c: [env("BAD")],
    },
    { env: { T: "env-secret", BAD: "bad-secret\r\nx" } },
  );
  assert.equal(
    secrets.redact("written-out-1 env-secret file-secret bad-secret\r\nx my-client-name Bearer"),
    "[redacted] [redacted] [redacted] [redacted] my-client-name Bearer",
  );
  assert.ok(!secrets.redact(Buffer.from("user:env-secret").toString("base64")).includes("ZW52LXNlY3JldA"));
});

test("redact: a secret that was replaced stays redacted for ten minutes", () => {
  const path = write("old-secret");
  const { secrets, clock } = secretsOf({ a: [file(path)] });
  writeFileSync(path, "new-secret");
  clock.time += 1_000;
  secrets.render("a");
  assert.equal(secrets.redact("old-secret new-secret"), "[redacted] [redacted]");
  clock.time += 600_000;
  assert.equal(secrets.redact("old-secret new-secret"), "old-secret [redacted]");
});

test("redact: the secrets of the policy before stay redacted for ten minutes after a reload", () => {
  const before = secretsOf({ a: [env("A")], b: [env("B")] }, { env: { A: "secret-of-a", B: "secret-of-b" } });
  const after = createSecrets(new Map([["b", [env("B")]]]), {
    env: { B: "secret-of-b" },
    now: () => before.clock.time,
    previous: before.secrets,
  });
  assert.equal(after.redact("secret-of-a secret-of-b"), "[redacted] [redacted]");
  before.clock.time += 600_000;
  assert.equal(after.redact("secret-of-a secret-of-b"), "secret-of-a [redacted]");
});

test("createSecrets: nothing of a secret is seen by whoever inspects the object", () => {
  const { secrets } = secretsOf({ a: [env("A")] }, { env: { A: "canary-9f2c" } });
  assert.doesNotMatch(JSON.stringify(secrets), /canary/);
});

test("short: names the keys whose secret is too short to be masked, and no user names", () => {
  const env = { LONG: "long-enough-secret", SHORT: "seven77" };
  const from = (name: string): Template => [{ kind: "env", name }];
  const text = (value: string): Template => [{ kind: "literal", text: value }];
  const templates = new Map<string, Template>([
    ["a.Authorization", [{ kind: "literal", text: "Bearer " }, ...from("LONG")]],
    ["b.Authorization", [{ kind: "literal", text: "Bearer " }, ...from("SHORT")]],
    ["c.X-Api-Key", text("abc")],
    ["d.X-Api-Key", text("Bearer long-enough-secret")],
    ["e.X-Team", text("abc")],
    ["f.username", from("SHORT")],
    ["g.X", from("MISSING")],
    ["h.X", [{ kind: "basic", user: "f.username", password: "a.Authorization" }]],
  ]);
  const secrets = createSecrets(templates, { env, now: () => 0 });
  assert.deepEqual(secrets.short(), ["b.Authorization", "c.X-Api-Key"]);
});
