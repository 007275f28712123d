import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type About, type Answer, answerFailure, refusalOf } from "../../src/accept/refusal.ts";
import type { Reason } from "../../src/model/decision.ts";
import { Failure, type FailureCode, type Fault } from "../../src/model/failure.ts";

const REASONS: readonly Reason[] =
  "rule-allows no-rule-matched rule-denies network-disabled loopback address-not-public address-denied names-disagree no-name plaintext-secret needs-inspection method-refused path-ambiguous identity-unknown secret-unavailable placeholder-misplaced hook-denied approval-timeout budget-exceeded limit-exceeded cross-site".split(
    " ",
  ) as Reason[];

const CODES: readonly FailureCode[] =
  "E_BAD_REQUEST E_BAD_HELLO E_RESOLVE E_CONNECT E_UPSTREAM_TLS E_UPSTREAM_PROTOCOL E_TIMEOUT E_HOOK E_CONFIG E_INTERNAL".split(
    " ",
  ) as FailureCode[];

const ABOUT: About = { host: "api.example.com", port: 443, connect: false };

function errorOf(answer: Answer): Record<string, unknown> {
  const text = answer.body.toString("latin1");
  assert.match(text, /^[ -~]+\n$/);
  assert.ok(answer.body.length <= 4_096);
  return JSON.parse(text).error;
}

function fieldsOf(answer: Answer): Record<string, string> {
  for (const { name, key } of answer.fields) {
    assert.equal(key, name.toLowerCase());
  }
  return Object.fromEntries(answer.fields.map(({ key, value }) => [key, value]));
}

function deny(reason: Reason, rule?: string) {
  return { verdict: "deny", reason, rule } as const;
}

test("refusalOf says what was refused, why, and that retrying will not help", () => {
  const answer = refusalOf(deny("no-rule-matched"), ABOUT);
  assert.equal(answer.status, 403);
  assert.equal(answer.phrase, "Forbidden");
  assert.deepEqual(fieldsOf(answer), {
    "content-type": "application/json",
    "cache-control": "no-store",
    "x-sallyport-reason": "no-rule-matched",
  });
  assert.deepEqual(errorOf(answer), {
    verdict: "deny",
    reason: "no-rule-matched",
    host: "api.example.com",
    port: 443,
    rule: null,
    message: "Blocked by sandbox policy: no rule allows this request to api.example.com",
    hint: "Retrying will not help. The operator would have to add the host, or this port, method or path of it, to network.allowlist.",
    retry: false,
  });
});

test("refusalOf answers every reason with its status, its phrase to a CONNECT, and words of its own", () => {
  const messages = new Set<unknown>();
  for (const reason of REASONS) {
    const status = { "names-disagree": 421, "identity-unknown": 407 }[reason as string] ?? 403;
    const answer = refusalOf(deny(reason, "some-rule"), { ...ABOUT, connect: true });
    assert.equal(answer.status, status, reason);
    assert.equal(answer.phrase, status === 407 ? "Proxy Authentication Required" : `Blocked (${reason})`);
    assert.equal(fieldsOf(answer)["x-sallyport-reason"], reason);
    const error = errorOf(answer);
    assert.equal(error["rule"], "some-rule");
    assert.equal(error["retry"], false);
    assert.match(String(error["message"]), /^Blocked by sandbox policy: /);
    assert.match(String(error["hint"]), /^Retrying .*will not help/);
    messages.add(error["message"]);
  }
  assert.equal(messages.size, REASONS.length);
});

test("refusalOf asks a client without identity for one, and only it", () => {
  const challenge = 'Basic realm="Sallyport"';
  assert.equal(fieldsOf(refusalOf(deny("identity-unknown"), ABOUT))["proxy-authenticate"], challenge);
  assert.equal(fieldsOf(refusalOf(deny("rule-denies"), ABOUT))["proxy-authenticate"], undefined);
});

test("refusalOf does without a name where none is known", () => {
  const error = errorOf(refusalOf(deny("no-name"), { host: undefined, port: undefined, connect: false }));
  assert.deepEqual([error["host"], error["port"]], [null, null]);
  const message = errorOf(refusalOf(deny("rule-denies"), { ...ABOUT, host: undefined }))["message"];
  assert.equal(message, "Blocked by sandbox policy: a rule forbids the host");
});

test("refusalOf shows printable ASCII alone of any name, even once the JSON is decoded, and stays small", () => {
  const text = fc.oneof(
    fc.string({ unit: "binary", maxLength: 3_000 }),
    fc.constant("$&$'`{host}\u001b[2J\r\nx: y"),
    fc.constant('"\\'.repeat(5_000)),
  );
  fc.assert(
    fc.property(text, text, fc.constantFrom(...REASONS), (host, rule, reason) => {
      const answer = refusalOf(deny(reason, rule), { ...ABOUT, host });
      for (const value of Object.values(errorOf(answer))) {
        assert.match(String(value), /^[ -~]*$/);
      }
      assert.ok(!answer.fields.some(({ value }) => value.includes(host) && host.length > 20));
    }),
  );
  const error = errorOf(refusalOf(deny("rule-denies"), { ...ABOUT, host: "$&{host}" }));
  assert.equal(error["host"], "$&{host}");
  assert.equal(error["message"], "Blocked by sandbox policy: a rule forbids $&{host}");
});

test("answerFailure names the code, not the failure's own words", () => {
  const failure = new Failure("E_CONNECT", "upstream", "connect ECONNREFUSED 10.9.8.7:443 secret=hunter2");
  const answer = answerFailure(failure, ABOUT);
  assert.equal(answer.status, 502);
  assert.equal(answer.phrase, "Bad Gateway");
  assert.equal(fieldsOf(answer)["x-sallyport-failure"], "E_CONNECT");
  assert.equal(fieldsOf(answer)["cache-control"], "no-store");
  assert.ok(!answer.body.includes("10.9.8.7") && !answer.body.includes("hunter2"));
  assert.deepEqual(errorOf(answer), {
    failure: "E_CONNECT",
    host: "api.example.com",
    port: 443,
    message: "No connection to api.example.com can be made",
    hint: "Policy allows the host, but it does not answer on this port. It may be down; a later try may succeed.",
    retry: true,
  });
});

test("answerFailure gives every code its status and says where a retry may help", () => {
  const expected: Record<FailureCode, [status: number, retry: boolean]> = {
    E_BAD_REQUEST: [400, false],
    E_BAD_HELLO: [400, false],
    E_RESOLVE: [502, false],
    E_CONNECT: [502, true],
    E_UPSTREAM_TLS: [502, false],
    E_UPSTREAM_PROTOCOL: [502, false],
    E_TIMEOUT: [504, true],
    E_HOOK: [500, false],
    E_CONFIG: [500, false],
    E_INTERNAL: [500, false],
  };
  for (const code of CODES) {
    const answer = answerFailure(new Failure(code, "upstream", "No"), { ...ABOUT, connect: true });
    assert.deepEqual([answer.status, errorOf(answer)["retry"]], expected[code], code);
    assert.ok(answer.phrase.endsWith(` (${code})`), answer.phrase);
  }
});

test("answerFailure takes a status that belongs to the code and no other", () => {
  const cases: [FailureCode, Fault, number, expected: number][] = [
    ["E_BAD_REQUEST", "client", 408, 408],
    ["E_BAD_REQUEST", "client", 411, 411],
    ["E_BAD_REQUEST", "client", 413, 413],
    ["E_BAD_REQUEST", "client", 414, 414],
    ["E_BAD_REQUEST", "client", 417, 417],
    ["E_BAD_REQUEST", "client", 431, 431],
    ["E_BAD_REQUEST", "client", 501, 501],
    ["E_BAD_REQUEST", "client", 505, 505],
    ["E_BAD_REQUEST", "client", 499, 400],
    ["E_BAD_REQUEST", "client", 200, 400],
    ["E_RESOLVE", "upstream", 504, 504],
    ["E_CONNECT", "upstream", 504, 504],
    ["E_UPSTREAM_TLS", "upstream", 504, 504],
    ["E_UPSTREAM_PROTOCOL", "upstream", 400, 502],
    ["E_TIMEOUT", "client", 408, 408],
    ["E_INTERNAL", "gate", 503, 503],
    ["E_INTERNAL", "gate", 204, 500],
  ];
  for (const [code, fault, status, expected] of cases) {
    const answer = answerFailure(new Failure(code, fault, "No", { status }), ABOUT);
    assert.equal(answer.status, expected, `${code} ${status}`);
    assert.match(answer.phrase, /^[A-Z][A-Za-z -]+$/);
    errorOf(answer);
  }
});

test("answerFailure does without a name where none is known", () => {
  const failure = new Failure("E_BAD_REQUEST", "client", "No");
  const error = errorOf(answerFailure(failure, { host: undefined, port: undefined, connect: false }));
  assert.deepEqual([error["host"], error["port"]], [null, null]);
});
