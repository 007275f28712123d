import assert from "node:assert/strict";
import { test } from "node:test";
import { permitEndpoint } from "../../src/decide/decide-endpoint.ts";
import { decideHandOver, handOverEndpoint } from "../../src/decide/decide-hand-over.ts";
import type { HandOverDecision, Permit } from "../../src/model/decision.ts";
import { ask } from "./build.ts";

function permitOf(url: string, mayReachPrivate = true): Permit {
  const { destination, scheme } = ask(url);
  return { ...permitEndpoint(destination, scheme), mayReachPrivate } as Permit;
}

function told(decision: HandOverDecision): string {
  return decision.verdict === "deny" ? decision.reason : `${decision.handed.host}:${decision.handed.port}`;
}

test("decideHandOver gives a name away that an entry lists as it is", () => {
  assert.equal(told(decideHandOver(permitOf("https://api.example.com/"))), "api.example.com:443");
});

test("decideHandOver gives no name away that is the sandbox's choice", () => {
  assert.equal(told(decideHandOver(permitOf("https://api.example.com/", false))), "address-not-public");
});

test("decideHandOver gives none away that means something else on every network, and no address", () => {
  for (const url of ["http://metadata.google.internal/", "http://intranet/", "https://11.0.0.1/"]) {
    assert.equal(told(decideHandOver(permitOf(url))), "address-not-public", url);
  }
  assert.equal(told(decideHandOver(permitOf("http://a.localhost/"))), "loopback");
});

test("handOverEndpoint gives away whatever name the operator wrote, localhost aside", () => {
  assert.equal(told(handOverEndpoint(permitOf("http://hooks.internal/", false))), "hooks.internal:80");
  assert.equal(told(handOverEndpoint(permitOf("http://localhost/", false))), "loopback");
  assert.equal(told(handOverEndpoint(permitOf("https://[2a0f::1]/", false))), "address-not-public");
});
