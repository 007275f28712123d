/** Arbitrary policies and questions over few names, so that they meet often. */
import fc from "fast-check";
import type { Policy } from "../../src/decide/policy.ts";
import type { Question } from "../../src/model/exchange.ts";
import { ask, buildPolicy, type Entry, field, type Settings } from "./build.ts";

const NAMES = [
  "example.com",
  "a.example.com",
  "b.a.example.com",
  "c.b.a.example.com",
  "example.org",
  "localhost",
  "x.localhost",
  "box",
  "box.local",
];
const LITERALS = ["93.184.216.34", "10.20.0.5", "127.0.0.1", "169.254.169.254"];
const PATTERNS = ["*", "*.example.com", "*.a.example.com", "*.com", "*.local", ...NAMES, ...LITERALS];
const PORTS = [80, 443, 8443];
const METHODS = ["GET", "POST", "TRACE"];
const PATHS = ["/a", "/a/b", "/a/../b", "/%61", "/a%2fb", "/c?x=/a", "*"];
const FIELDS = [
  field("Accept", "*/*"),
  field("X-HTTP-Method-Override", "TRACE"),
  field("X-Original-URL", "/a"),
];

const insides: fc.Arbitrary<Partial<Entry>> = fc.oneof(
  { weight: 3, arbitrary: fc.constant({}) },
  {
    weight: 2,
    arbitrary: fc.record(
      {
        methods: fc.subarray(METHODS, { minLength: 1 }),
        paths: fc.constantFrom(["/a"], ["/a.*"], ["/(a|c)", "/a/b"]),
        encoded_slash: fc.constant("allow" as const),
        transform: fc.constantFrom({ Authorization: "x" }, { "X-Key": "y", "X-Team": "t" }),
        intercept: fc.constant("always" as const),
      },
      { requiredKeys: [] },
    ),
  },
  { weight: 1, arbitrary: fc.constantFrom({ protocol: "tcp" as const }, { intercept: "never" as const }) },
);

const entries: fc.Arbitrary<Entry> = fc
  .tuple(fc.constantFrom(...PATTERNS), fc.subarray(PORTS, { minLength: 1 }), fc.boolean(), insides)
  .map(([domain, ports, isPrivate, inside]) => ({ domain, ports, private: isPrivate, ...inside }));

const networks = fc
  .tuple(fc.array(entries, { maxLength: 8 }), fc.array(entries, { maxLength: 1 }))
  .map(([allowlist, denylist]) => ({
    allowlist: numbered(allowlist, "allow"),
    denylist: numbered(denylist, "deny"),
  }));

export const settings: fc.Arbitrary<Settings> = fc.record({
  mode: fc.constantFrom("enforce" as const, "evaluate_only" as const),
  network: fc.oneof(
    { weight: 8, arbitrary: networks },
    { weight: 1, arbitrary: fc.constant("disabled" as const) },
  ),
  sandboxes: fc.oneof(
    fc.constant([]),
    networks.map((network) => [{ id: "s", network }]),
  ),
  upstream: fc.constantFrom(
    {},
    { allow_ranges: ["10.20.0.0/16"] },
    { deny_ranges: ["10.20.0.0/16", "93.184.216.0/24"] },
  ),
});

export const policies: fc.Arbitrary<Policy> = settings.map(buildPolicy);

export const questions: fc.Arbitrary<Question> = fc
  .record({
    scheme: fc.constantFrom("https", "https", "http", "tcp"),
    host: fc.constantFrom(...NAMES, ...LITERALS, "other.net"),
    port: fc.constantFrom(...PORTS),
    method: fc.constantFrom(...METHODS, "DELETE"),
    target: fc.constantFrom(...PATHS),
    fields: fc.subarray(FIELDS),
    sandbox: fc.constantFrom(undefined, undefined, "s", "gone"),
  })
  .map(({ scheme, host, port, method, target, fields, sandbox }) =>
    ask(`${scheme}://${host}:${port}`, { method, target, fields, client: { sandbox, address: "10.80.0.2" } }),
  );

function numbered(list: readonly Entry[], prefix: string): readonly Entry[] {
  return list.map((entry, index) => ({ ...entry, id: `${prefix}-${index}` }));
}
