import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parseRange } from "../../src/base/ip.ts";
import { identifyClient, isStill } from "../../src/identify/identify-client.ts";
import type { SandboxSource } from "../../src/model/policy.ts";

const TOKENS: Readonly<Record<string, string>> = {
  "t.a": "token-of-a",
  "t.b": "token:of:b",
  "t.c": "token-of-c",
};
const SANDBOXES: readonly SandboxSource[] = [
  sandbox("a", "t.a", ["10.80.0.2/32"]),
  sandbox("b", "t.b", []),
  sandbox("c", "t.c", ["10.80.1.0/24", "fd00::/64"]),
  sandbox("d", undefined, ["10.80.2.7/32", "10.80.3.0/24"]),
  sandbox("e", undefined, ["10.80.3.9/32"]),
];

interface Case {
  readonly says: string;
  readonly address: string;
  readonly credentials?: string;
  readonly is: string | undefined;
}

const CASES: readonly Case[] = [
  {
    says: "a right token from the right source",
    address: "10.80.0.2",
    credentials: basic("a:token-of-a"),
    is: "a",
  },
  {
    says: "a right token from a wrong source",
    address: "10.80.0.3",
    credentials: basic("a:token-of-a"),
    is: undefined,
  },
  {
    says: "a wrong token from the right source",
    address: "10.80.0.2",
    credentials: basic("a:token-of-b"),
    is: undefined,
  },
  { says: "another's token", address: "10.80.0.2", credentials: basic("b:token-of-a"), is: undefined },
  { says: "a token with colons", address: "192.0.2.1", credentials: basic("b:token:of:b"), is: "b" },
  {
    says: "a right token at another sandbox's source (L14)",
    address: "10.80.0.2",
    credentials: basic("b:token:of:b"),
    is: undefined,
  },
  { says: "a source in a range", address: "10.80.1.77", credentials: basic("c:token-of-c"), is: "c" },
  { says: "an IPv6 source", address: "fd00::9", credentials: basic("c:token-of-c"), is: "c" },
  { says: "a source that is no address", address: "", credentials: basic("c:token-of-c"), is: undefined },
  { says: "an unknown id", address: "10.80.0.2", credentials: basic("z:token-of-a"), is: undefined },
  {
    says: "a token for a sandbox that has none",
    address: "10.80.2.7",
    credentials: basic("d:"),
    is: undefined,
  },
  { says: "an empty token", address: "10.80.0.2", credentials: basic("a:"), is: undefined },
  { says: "no colon", address: "10.80.0.2", credentials: basic("a"), is: undefined },
  { says: "another scheme", address: "10.80.0.2", credentials: "Bearer token-of-a", is: undefined },
  { says: "no scheme", address: "10.80.0.2", credentials: "", is: undefined },
  { says: "text that is not base64", address: "10.80.0.2", credentials: "Basic a:token-of-a", is: undefined },
  {
    says: "the scheme in other case",
    address: "10.80.0.2",
    credentials: basic("a:token-of-a").replace("Basic", "bAsIc"),
    is: "a",
  },
  { says: "no token from a sandbox's source", address: "10.80.2.7", is: "d" },
  { says: "no token from a source of two sandboxes", address: "10.80.3.9", is: undefined },
  { says: "no token from nowhere", address: "192.0.2.1", is: undefined },
];

describe("identifyClient", () => {
  for (const { says, address, credentials, is } of CASES) {
    test(`${says}: ${is ?? "nobody"}`, () => {
      const client = identifyClient({ address, proxyAuthorization: credentials }, SANDBOXES, matches);
      const proof = credentials === undefined ? {} : { proof: `proof of ${TOKENS[`t.${is}`]}` };
      assert.deepEqual(client, is === undefined ? undefined : { sandbox: is, address, ...proof });
      if (client === undefined) return;
      assert.equal(isStill(client, SANDBOXES, holds), true, "and still is");
      const others = SANDBOXES.filter(({ id }) => id !== is);
      assert.equal(isStill(client, others, holds), false, "but not once the sandbox is gone");
      assert.equal(isStill(client, [], holds), false, "nor once all are");
    });
  }

  test("where no sandboxes are configured, everybody is nobody in particular, whatever credentials say", () => {
    const client = identifyClient({ address: "10.0.0.1", proxyAuthorization: basic("a:x") }, [], matches);
    assert.deepEqual(client, { sandbox: undefined, address: "10.0.0.1" });
  });
});

describe("isStill", () => {
  const client = { sandbox: "a", address: "10.80.0.2", proof: "proof of token-of-a" };

  test("a token that is another by now proves nobody", () => {
    assert.equal(isStill(client, SANDBOXES, holds), true);
    assert.equal(
      isStill(client, SANDBOXES, () => false),
      false,
    );
    const without = SANDBOXES.map((one) => (one.id === "a" ? { ...one, token: undefined } : one));
    assert.equal(isStill(client, without, holds), false);
  });

  test("a source that is another by now is nobody's", () => {
    const moved = SANDBOXES.map((one) => (one.id === "a" ? sandbox("a", one.token, ["10.99.0.0/16"]) : one));
    assert.equal(isStill(client, moved, holds), false);
    assert.equal(
      isStill({ sandbox: "d", address: "10.80.2.7" }, [sandbox("d", undefined, ["10.99.0.1"])], holds),
      false,
    );
  });

  test("nobody in particular is somebody only while there are no sandboxes", () => {
    const nobody = { sandbox: undefined, address: "192.0.2.1" };
    assert.equal(isStill(nobody, [], holds), true);
    assert.equal(isStill(nobody, SANDBOXES, holds), false);
  });
});

function matches(key: string, presented: string): string | undefined {
  return TOKENS[key] === presented ? `proof of ${presented}` : undefined;
}

function holds(key: string, proof: string): boolean {
  return proof === `proof of ${TOKENS[key]}`;
}

function basic(text: string): string {
  return `Basic ${Buffer.from(text).toString("base64")}`;
}

function sandbox(id: string, token: string | undefined, ranges: readonly string[]): SandboxSource {
  const source = ranges.map((text) => {
    const range = parseRange(text);
    assert.ok(range);
    return range;
  });
  return { id, token, source, network: { kind: "disabled" } };
}
