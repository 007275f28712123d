/** Which exchanges are signed, whose body has to be there first, and what is refused. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Permit } from "../src/model/decision.ts";
import type { Inbound } from "../src/model/inbound.ts";
import { DEFAULT_LIMITS } from "../src/model/limits.ts";
import type { SigningSource } from "../src/model/signing.ts";
import { createSecrets } from "../src/secrets/secrets.ts";
import { hold, needsBody, refuseBody, sign, signingOf } from "../src/signing.ts";

const SIGNING: SigningSource = {
  id: "c",
  accessKeyId: "id",
  secretAccessKey: "key",
  sessionToken: undefined,
  region: "r",
  service: "s3",
  unsignedPayload: false,
};
const PERMIT = {
  rule: "a-rule",
  injections: [{ field: "Authorization", key: "authorization", secret: "key", signing: SIGNING }],
} as unknown as Permit;
const HEAD = {
  method: "GET",
  target: "/",
  minor: 1,
  fields: [{ name: "Host", key: "host", value: "h" }],
} as const;

function secretsOf(...keys: readonly string[]) {
  const templates = new Map(keys.map((key) => [key, [{ kind: "literal", text: `${key}-value` } as const]]));
  return createSecrets(templates, { env: {}, now: () => 0 });
}

function withFraming(framing: Inbound["framing"]): Inbound {
  return { framing } as unknown as Inbound;
}

test("signingOf, needsBody: a body that is signed and not there yet", () => {
  assert.equal(signingOf(PERMIT), SIGNING);
  assert.equal(signingOf({ ...PERMIT, injections: [] }), undefined);
  assert.equal(needsBody(SIGNING, withFraming({ kind: "chunked" }), undefined), true);
  assert.equal(needsBody(SIGNING, withFraming({ kind: "chunked" }), Buffer.alloc(0)), false);
  assert.equal(needsBody(SIGNING, withFraming({ kind: "none" }), undefined), false);
  assert.equal(
    needsBody({ ...SIGNING, unsignedPayload: true }, withFraming({ kind: "chunked" }), undefined),
    false,
  );
});

test("hold: a length over the limit is not waited for", async () => {
  const limits = { ...DEFAULT_LIMITS, signed_body_bytes: 5 };
  assert.deepEqual(await hold(withFraming({ kind: "length", length: 6 }), false, limits, () => true), {
    kind: "over",
  });
});

test("sign: a head with a signature, or a denial that names the rule", async () => {
  const parts = { permit: PERMIT, signing: SIGNING, body: undefined };
  const signed = await sign(HEAD, parts, secretsOf("id", "key"));
  assert.ok("fields" in signed && signed.fields.some(({ key }) => key === "authorization"));
  const unsigned = { ...parts, signing: { ...SIGNING, unsignedPayload: true, sessionToken: "session" } };
  const open = await sign(HEAD, unsigned, secretsOf("id", "key", "session"));
  assert.ok("fields" in open && open.fields.some(({ value }) => value === "UNSIGNED-PAYLOAD"));
  const lost = await sign(HEAD, unsigned, secretsOf("id", "key"));
  assert.deepEqual(lost, { verdict: "deny", reason: "secret-unavailable", rule: "a-rule" });
  const refused = await sign({ ...HEAD, target: "/?%ff" }, parts, secretsOf("id", "key"));
  assert.ok("verdict" in refused && refused.reason === "rule-denies");
});

test("refuseBody: a form that asks for a session", () => {
  assert.equal(refuseBody(PERMIT, Buffer.from("Version=1&Action=AssumeRoleWithSAML"))?.reason, "rule-denies");
  assert.equal(refuseBody(PERMIT, Buffer.from("Action=ListUsers")), undefined);
});

test("refuseBody: however the form writes it, and wherever in it", () => {
  const padded = `x=${"a".repeat(5_000)}&Action=AssumeRole`;
  for (const body of [
    "Action=%41ssumeRole",
    "%41ction=AssumeRole",
    padded,
    "Action=AssumeRoot",
    "x&Action=%43reateAccess%4bey",
  ])
    assert.equal(refuseBody(PERMIT, Buffer.from(body))?.reason, "rule-denies", body.slice(-24));
  assert.equal(refuseBody(PERMIT, Buffer.from("Note=Action%3DAssumeRole")), undefined);
});

test("refuseBody: time in proportion to the body, whatever is in it", () => {
  for (const text of ["A=x&", "Action=AssumeR&", "%41ction=%41", "&"]) {
    const body = Buffer.from(text.repeat(8_000_000 / text.length));
    const before = process.cpuUsage();
    assert.equal(refuseBody(PERMIT, body), undefined);
    assert.ok(process.cpuUsage(before).user < 1_000_000, text);
  }
});
