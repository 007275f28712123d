/** Sources beyond variables and files: systemd's directory, two halves of Basic, and what takes a while. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { Template } from "../../src/model/config.ts";
import type { Reading } from "../../src/secrets/secret-file.ts";
import { createSecrets } from "../../src/secrets/secrets.ts";
import type { Origins, SuppliedPart } from "../../src/secrets/sources.ts";

const folder = mkdtempSync(join(tmpdir(), "sallyport-sources-"));
after(() => rmSync(folder, { recursive: true, force: true }));

function secretsOf(templates: Readonly<Record<string, Template>>, more: Partial<Origins> = {}) {
  const clock = { time: 0 };
  const sources = { env: {}, now: () => clock.time, ...more };
  return { clock, secrets: createSecrets(new Map(Object.entries(templates)), sources) };
}

test("credential: a file of systemd's directory, and none without it", () => {
  writeFileSync(join(folder, "forge"), "from-systemd\n");
  const template = { a: [{ kind: "credential", name: "forge" }] } as const;
  const { secrets } = secretsOf(template, { env: { CREDENTIALS_DIRECTORY: folder } });
  assert.deepEqual(secrets.render("a"), { ok: true, value: "from-systemd", generation: 1 });
  assert.equal(secrets.redact("a from-systemd b"), "a [redacted] b");
  const { secrets: none } = secretsOf(template);
  assert.match(JSON.stringify(none.render("a")), /no `CREDENTIALS_DIRECTORY`/);
});

test("lines: a key may have line breaks where a key is asked for", () => {
  const env = { K: "one\ntwo-three\n" };
  const { secrets } = secretsOf(
    { a: [{ kind: "env", name: "K", lines: true }], b: [{ kind: "env", name: "K" }] },
    { env },
  );
  assert.equal(secrets.render("a").ok, true);
  assert.equal(secrets.render("b").ok, false);
});

function basic(user: string, password: string | undefined) {
  const env = { U: user, P: password };
  return secretsOf(
    {
      u: [{ kind: "env", name: "U" }],
      p: [{ kind: "env", name: "P" }],
      a: [
        { kind: "literal", text: "Basic " },
        { kind: "basic", user: "u", password: "p" },
      ],
    },
    { env },
  ).secrets;
}

test("basic: base64 of both, and what either lacks", () => {
  const secrets = basic("ada", "hunter2222");
  const rendered = secrets.render("a");
  assert.ok(rendered.ok);
  assert.equal(rendered.value, `Basic ${Buffer.from("ada:hunter2222").toString("base64")}`);
  assert.equal(secrets.render("a"), rendered);
  assert.equal(secrets.redact(rendered.value).includes(rendered.value.slice(-8)), false);
  assert.deepEqual(secrets.needles(["a"]).toSorted(), ["ada", "hunter2222"]);
  assert.deepEqual(basic("ada", undefined).render("a"), {
    ok: false,
    problem: "Environment variable `P` is not set",
  });
  assert.deepEqual(basic("", "p").render("a"), { ok: false, problem: "Environment variable `U` is empty" });
  assert.deepEqual(basic("a:b", "p").render("a"), { ok: false, problem: "The user's name holds a colon" });
});

test("supply: what nobody asked for is not missing; a token is held from when it is known, and after", () => {
  let reading: Reading = { ok: false, problem: "not yet", untried: true };
  const template = { a: [{ kind: "minted", credential: "c" }] } as const;
  const { secrets, clock } = secretsOf(template, { supply: () => () => reading });
  assert.deepEqual(secrets.unavailable(), []);
  reading = { ok: true, value: "first-token" };
  assert.deepEqual(secrets.render("a"), { ok: true, value: "first-token", generation: 1 });
  reading = { ok: true, value: "second-token" };
  assert.deepEqual(secrets.render("a"), { ok: true, value: "second-token", generation: 2 });
  assert.deepEqual(secrets.needles(["a"]).toSorted(), ["first-token", "second-token"]);
  assert.equal(secrets.redact("first-token second-token"), "[redacted] [redacted]");
  clock.time = 600_001;
  assert.deepEqual(secrets.needles(["a"]), ["second-token"]);
  reading = { ok: false, problem: "broken" };
  assert.deepEqual(secrets.unavailable(), [{ key: "a", problem: "broken" }]);
});

test("supply: without any, nothing is asked for", () => {
  const { secrets } = secretsOf({ a: [{ kind: "exec", command: ["/bin/false"] }] });
  assert.equal(secrets.render("a").ok, false);
  assert.deepEqual(secrets.unavailable(), []);
});

test("hold: what a caller holds is kept out of print", () => {
  const { secrets } = secretsOf({});
  secrets.hold("me", "a-refresh-token");
  assert.equal(secrets.redact("a-refresh-token"), "[redacted]");
});

test("exec: two commands whose words read alike are two sources", () => {
  const supply = (part: SuppliedPart) => {
    const reading: Reading = { ok: true, value: JSON.stringify(part.kind === "exec" && part.command) };
    return () => reading;
  };
  const a = [{ kind: "exec", command: ["/bin/x", "a b"] }] as const;
  const b = [{ kind: "exec", command: ["/bin/x", "a", "b"] }] as const;
  const { secrets } = secretsOf({ a, b }, { supply });
  assert.notDeepEqual(secrets.render("a"), secrets.render("b"));
});
