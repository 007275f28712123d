import assert from "node:assert/strict";
import { test } from "node:test";
import { decideConnection } from "../../src/decide/decide-connection.ts";
import { explain } from "../../src/decide/explain.ts";
import { findPlaceholders } from "../../src/decide/find-placeholders.ts";
import { ask, buildPolicy, outside } from "./build.ts";

const PLACEHOLDER = {
  id: "a",
  placeholder: "__SALLYPORT_CRED_a__",
  secret: "credentials.a.value",
  domains: [
    { kind: "exact", host: "a.example" },
    { kind: "wildcard", base: "b.example" },
  ],
  locations: ["header"],
  headerNames: ["authorization"],
} as const;

test("findPlaceholders: those whose domains cover the destination, and such an entry is looked into", () => {
  const policy = buildPolicy({ network: { allowlist: [{ domain: "*" }] }, placeholders: [PLACEHOLDER] });
  const verdicts = [
    "https://a.example/",
    "https://x.b.example/",
    "https://c.example/",
    "https://9.9.9.9/",
  ].map((url) => {
    const question = ask(url);
    const found = findPlaceholders(question.destination, policy).map(({ id }) => id);
    return [found, decideConnection(outside(question), policy).verdict];
  });
  assert.deepEqual(verdicts, [
    [["a"], "inspect"],
    [["a"], "inspect"],
    [[], "tunnel"],
    [[], "deny"],
  ]);
  assert.deepEqual(findPlaceholders(ask("https://a.example/").destination, buildPolicy({})), []);
});

test("explain names the placeholders that are replaced, those that are not, and none where none is trusted", () => {
  const allowlist = [{ domain: "*" }, { domain: "x.b.example", intercept: "never" as const }];
  const policy = buildPolicy({ network: { allowlist }, placeholders: [PLACEHOLDER] });
  const notes = (url: string): string => {
    const { client, destination, scheme, request } = ask(url);
    if (request === undefined) return "";
    return explain({ client, destination, scheme, request }, policy).notes.join();
  };
  assert.match(notes("https://a.example/"), /__SALLYPORT_CRED_a__ is replaced here, in: header/);
  assert.match(notes("https://x.b.example/"), /__SALLYPORT_CRED_a__ is not replaced here/);
  assert.doesNotMatch(notes("http://a.example/"), /CRED/);
  assert.doesNotMatch(notes("https://c.example/"), /CRED/);
});
