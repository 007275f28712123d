import assert from "node:assert/strict";
import { test } from "node:test";
import type { Permit } from "../src/model/decision.ts";
import type { Leg } from "../src/model/leg.ts";
import { type Search, scrubLeg } from "../src/scrub.ts";
import { createSecrets } from "../src/secrets/secrets.ts";

const KEY = "network.allowlist[0].transform.X";
const LEG: Leg = {
  head: { method: "GET", target: "/", minor: 1, fields: [] },
  framing: { kind: "none" },
  upgrade: false,
  expectContinue: false,
  response: (head) => head,
  requestTrailers: (trailers) => trailers,
  responseTrailers: (trailers) => trailers,
};

function secretsOf(value: string) {
  const templates = new Map([[KEY, [{ kind: "env", name: "S" } as const]]]);
  return createSecrets(templates, { env: { S: value }, now: () => 0 });
}

function searchOf(secrets: Search["secrets"], found: Search["found"] = () => undefined): Search {
  return { secrets, generation: "1", room: () => ({ take: () => true, release: () => undefined }), found };
}

function permitOf(fields: Partial<Permit> = {}): Permit {
  return { injections: [{ field: "X", key: "x", secret: KEY }], ...fields } as Permit;
}

test("scrubLeg leaves a leg alone where there is nothing to look for, or the rule says so", () => {
  const secrets = secretsOf("secret-of-gate");
  assert.equal(scrubLeg(LEG, permitOf({ injections: [] }), searchOf(secrets)), LEG);
  assert.equal(scrubLeg(LEG, permitOf({ scrub: false }), searchOf(secrets)), LEG);
  assert.equal(scrubLeg(LEG, permitOf(), searchOf(secretsOf("short"))), LEG);
});

test("scrubLeg masks the secret that is in force, in heads, interim ones too, and trailers", () => {
  const permit = permitOf();
  let found = 0;
  for (const value of ["secret-of-gate", "another-secret"]) {
    const leg = scrubLeg(
      LEG,
      permit,
      searchOf(secretsOf(value), () => found++),
    );
    const fields = [{ name: "A", key: "a", value }];
    const stars = [{ name: "A", key: "a", value: "*".repeat(14) }];
    const head = { status: 200, phrase: "OK", minor: 1, fields } as const;
    assert.deepEqual(leg.response(head).fields, stars);
    assert.deepEqual(leg.responseTrailers(fields), stars);
    assert.deepEqual(leg.answer?.(head, { kind: "none" }), {
      head: { ...head, fields: stars },
      framing: { kind: "none" },
    });
    assert.ok(found > 0);
    found = 0;
    leg.response({ ...head, fields: [] });
    assert.equal(found, 0);
  }
});

test("scrubLeg keeps the length of a body that is not coded, and takes the coding off one that is", () => {
  const leg = scrubLeg(LEG, permitOf(), searchOf(secretsOf("secret-of-gate")));
  const head = { status: 200, phrase: "OK", minor: 1, fields: [] } as const;
  const length = { kind: "length", length: 9 } as const;
  const plain = leg.answer?.(head, length);
  assert.deepEqual(plain?.framing, length);
  assert.notEqual(plain?.body, undefined);
  const fields = [{ name: "Content-Encoding", key: "content-encoding", value: "gzip" }];
  const coded = leg.answer?.({ ...head, fields }, length);
  assert.deepEqual([coded?.framing, coded?.head.fields], [{ kind: "chunked" }, []]);
});

test("scrubLeg leaves what follows a WebSocket's 2xx alone, and no refusal of one", () => {
  const leg = scrubLeg(
    { ...LEG, upgrade: true, extended: true },
    permitOf(),
    searchOf(secretsOf("secret-of-gate")),
  );
  const answers = [200, 201, 302, 403].map((status) =>
    leg.answer?.({ status, phrase: "", minor: 1, fields: [] }, { kind: "chunked" }),
  );
  assert.deepEqual(
    answers.map((answer) => answer?.body === undefined),
    [true, true, false, false],
  );
});

test("scrubLeg keeps what it made for a few combinations of secrets, not for all that a sandbox can think of", () => {
  const inner = secretsOf("secret-of-gate");
  let compiled = 0;
  const secrets = {
    ...inner,
    needles: (keys: readonly string[]) => {
      compiled += 1;
      return inner.needles(keys);
    },
  };
  const ask = (name: string): void => {
    const injections = [{ field: "", key: "", secret: KEY }].concat({ field: "", key: "", secret: name });
    scrubLeg(LEG, permitOf({ injections }), searchOf(secrets));
  };
  for (let at = 0; at < 64; at++) ask(`p${at}`);
  ask("p0");
  assert.equal(compiled, 64);
  ask("one more");
  ask("p0");
  assert.equal(compiled, 65);
  ask("p1");
  assert.equal(compiled, 66);
});

test("scrubLeg masks what a part holds of the secret at its ends, and tells of it", () => {
  let found = 0;
  const leg = scrubLeg(
    LEG,
    permitOf(),
    searchOf(secretsOf("secret-of-gate"), () => found++),
  );
  for (const [part, expected] of [
    ["ret-of-gate, then secret-o", "***********, then ********"],
    ["nothing of it", "nothing of it"],
  ] as const) {
    const answer = leg.answer?.({ status: 206, phrase: "", minor: 1, fields: [] }, { kind: "chunked" });
    let text = "";
    const sink = {
      write: (bytes: Buffer) => {
        text += bytes.toString();
        return true;
      },
      end: () => undefined,
    };
    const stage = answer?.body?.(sink, { drained: () => undefined, failed: () => undefined });
    stage?.write(Buffer.from(part));
    stage?.end([]);
    assert.equal(text, expected);
    assert.equal(found, 2);
  }
});
