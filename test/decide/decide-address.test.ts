import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ipFromOctets, parseIpAddress } from "../../src/base/ip.ts";
import { classifyAddress, isNeverOpen } from "../../src/decide/address-class.ts";
import { decideAddress, refuseAddress, type Surroundings } from "../../src/decide/decide-address.ts";
import { decideExchange } from "../../src/decide/decide-exchange.ts";
import type { Policy } from "../../src/decide/policy.ts";
import type { AddressDecision, Permit } from "../../src/model/decision.ts";
import type { IpAddress } from "../../src/model/exchange.ts";
import { ask, buildPolicy, type Settings } from "./build.ts";

const NOWHERE: Surroundings = { own: new Set(), endpoints: new Set() };

const EVERYTHING = ["0.0.0.0/1", "128.0.0.0/1", "::/1", "8000::/1"];

test("decideAddress: a public address is dialled on the port that was permitted", () => {
  const policy = allowing({});
  const decision = decideAddress(
    permitFor("https://a.example.com:8443/", policy),
    ip("93.184.216.34"),
    policy,
    NOWHERE,
  );
  assert.equal(decision.verdict, "allow");
  assert.deepEqual([decision.dialable.address.text, decision.dialable.port], ["93.184.216.34", 8443]);
});

test("decideAddress: a denial names the rule that permitted the exchange", () => {
  const policy = allowing({});
  const decision = decideAddress(
    permitFor("https://a.example.com/", policy),
    ip("127.0.0.1"),
    policy,
    NOWHERE,
  );
  assert.deepEqual(decision, { verdict: "deny", reason: "loopback", rule: "exact" });
});

test("decideAddress: B07 opening every range opens neither metadata nor what leads nowhere", () => {
  const policy = allowing({ upstream: { allow_ranges: EVERYTHING } });
  const permit = permitFor("https://a.example.com/", policy);
  for (const text of [
    "169.254.169.254",
    "fd00:ec2::254",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
  ]) {
    assert.equal(reasonOf(decideAddress(permit, ip(text), policy, NOWHERE)), "address-not-public", text);
  }
  for (const text of [
    "0.0.0.0",
    "::",
    "fe80::1",
    "224.0.0.1",
    "255.255.255.255",
    "64:ff9b::a00:1",
    "::10.0.0.1",
  ]) {
    assert.equal(reasonOf(decideAddress(permit, ip(text), policy, NOWHERE)), "address-not-public", text);
  }
  for (const text of ["127.0.0.1", "::1", "::ffff:127.0.0.1"]) {
    assert.equal(reasonOf(decideAddress(permit, ip(text), policy, NOWHERE)), "loopback", text);
  }
  for (const text of ["10.0.0.1", "fd12::1", "240.0.0.1", "192.0.2.1", "198.18.0.1", "4000::1"]) {
    assert.equal(decideAddress(permit, ip(text), policy, NOWHERE).verdict, "allow", text);
  }
});

test("decideAddress: B16 what is opened is opened for exact names and private entries alone", () => {
  const policy = allowing({ upstream: { allow_ranges: ["10.20.0.0/16"] } });
  const answers = ["a.example.com", "b.private.example.com", "b.wild.example.com"].map((host) =>
    reasonOf(decideAddress(permitFor(`https://${host}/`, policy), ip("10.20.0.5"), policy, NOWHERE)),
  );
  assert.deepEqual(answers, [undefined, undefined, "address-not-public"]);
});

test("decideAddress: B17 a denied range beats an allowed one, and loopback is loopback whatever is denied", () => {
  const policy = allowing({
    upstream: {
      allow_ranges: ["10.20.0.0/16"],
      deny_ranges: ["10.20.13.0/24", "93.184.0.0/16", "127.0.0.0/8", "169.254.0.0/16"],
    },
  });
  const permit = permitFor("https://a.example.com/", policy);
  const reason = (text: string): string | undefined =>
    reasonOf(decideAddress(permit, ip(text), policy, NOWHERE));
  assert.equal(reason("10.20.13.7"), "address-denied");
  assert.equal(reason("93.184.216.34"), "address-denied");
  assert.equal(reason("169.254.1.1"), "address-denied");
  assert.equal(reason("127.0.0.1"), "loopback");
  assert.equal(reason("10.20.14.7"), undefined);
});

test("decideAddress: B15 F10 the machine's own addresses and the gate's endpoints are no destinations", () => {
  const policy = allowing({ upstream: { allow_ranges: ["10.0.0.0/8"] } });
  const surroundings: Surroundings = {
    own: new Set(["93.184.216.34", "2606:4700::1", "10.80.0.1"]),
    endpoints: new Set(["93.184.216.35 443", "10.0.0.53 53"]),
  };
  const reason = (url: string, text: string): string | undefined =>
    reasonOf(decideAddress(permitFor(url, policy), ip(text), policy, surroundings));
  assert.equal(reason("https://a.example.com/", "93.184.216.34"), "address-not-public");
  assert.equal(reason("https://a.example.com/", "2606:4700:0::1"), "address-not-public");
  assert.equal(reason("https://a.example.com/", "::ffff:10.80.0.1"), "address-not-public");
  assert.equal(reason("https://a.example.com/", "93.184.216.35"), "address-not-public");
  assert.equal(reason("https://a.example.com:8443/", "93.184.216.35"), undefined);
  assert.equal(reason("https://a.example.com/", "10.0.0.53"), undefined);
});

test("decideAddress: without configuration, what is dialled is public", () => {
  const policy = allowing({});
  const permit = permitFor("https://a.example.com/", policy);
  const octets = fc.oneof(
    fc.uint8Array({ minLength: 4, maxLength: 4 }),
    fc.uint8Array({ minLength: 16, maxLength: 16 }),
  );
  fc.assert(
    fc.property(octets, (bytes) => {
      const address = ipFromOctets(bytes);
      assert.ok(address !== undefined);
      const { verdict } = decideAddress(permit, address, policy, NOWHERE);
      assert.equal(verdict === "allow", classifyAddress(address) === "public");
    }),
    { numRuns: 3_000 },
  );
});

test("refuseAddress: whatever is configured, what is never open is refused", () => {
  const policy = allowing({ upstream: { allow_ranges: EVERYTHING } });
  const sparse = fc.array(fc.constantFrom(0, 0, 0, 1, 10, 127, 169, 254, 255), {
    minLength: 16,
    maxLength: 16,
  });
  fc.assert(
    fc.property(sparse, fc.constantFrom(4, 16), (bytes, length) => {
      const address = ipFromOctets(Uint8Array.from(bytes.slice(0, length)));
      assert.ok(address !== undefined);
      const refused = refuseAddress(address, true, policy) !== undefined;
      assert.equal(refused, isNeverOpen(classifyAddress(address)), address.text);
    }),
    { numRuns: 2_000 },
  );
});

function allowing(settings: Settings): Policy {
  const ports = [443, 8443];
  return buildPolicy({
    ...settings,
    network: {
      allowlist: [
        { id: "exact", domain: "a.example.com", ports },
        { id: "private", domain: "*.private.example.com", private: true },
        { id: "wild", domain: "*.wild.example.com" },
      ],
    },
  });
}

function permitFor(url: string, policy: Policy): Permit {
  const decision = decideExchange(ask(url), policy);
  assert.equal(decision.verdict, "allow");
  return decision.permit;
}

function reasonOf(decision: AddressDecision): string | undefined {
  return decision.verdict === "deny" ? decision.reason : undefined;
}

function ip(text: string): IpAddress {
  const address = parseIpAddress(text);
  assert.ok(address !== undefined, text);
  return address;
}
