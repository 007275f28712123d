/** Arbitrary policies and questions over few names, so that they meet often. */
import fc from "fast-check";
import type { Policy } from "../../src/decide/policy.ts";
import type { Question } from "../../src/model/exchange.ts";
import { ask, buildPolicy, type Entry, field, type Settings } from "./build.ts";

const COMMON = ["a.example.com", "b.a.example.com"];
const NAMES = [...COMMON, "example.com", "example.org", "localhost", "x.localhost", "box", "box.local"];
const LITERALS = ["93.184.216.34", "10.20.0.5", "127.0.0.1", "169.254.169.254"];
const WILDCARDS = ["*", "*.example.com", "*.a.example.com", "*.com", "*.local"];
/** Common ones weigh more, so that several entries share a pattern and most questions meet one. */
const HOSTS: fc.Arbitrary<string> = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(...COMMON) },
  { weight: 2, arbitrary: fc.constantFrom(...NAMES, "other.net") },
  { weight: 1, arbitrary: fc.constantFrom(...LITERALS) },
);
const PATTERNS: fc.Arbitrary<string> = fc.oneof(
  { weight: 3, arbitrary: HOSTS },
  { weight: 1, arbitrary: fc.constantFrom(...WILDCARDS) },
);
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
  .tuple(PATTERNS, fc.constantFrom(PORTS, [80, 443], [443], [8443]), fc.boolean(), insides)
  .map(([domain, ports, isPrivate, inside]) => ({ domain, ports, private: isPrivate, ...inside }));

const networks = fc
  .tuple(fc.array(entries, { minLength: 2, maxLength: 10 }), fc.array(entries, { maxLength: 1 }))
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
  sandboxes: networks.map((network) => [{ id: "s", network }]),
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
    host: HOSTS,
    port: fc.constantFrom(443, ...PORTS),
    method: fc.constantFrom("GET", ...METHODS, "DELETE"),
    target: fc.constantFrom("/a", "/a/b", ...PATHS),
    fields: fc.oneof(
      { weight: 3, arbitrary: fc.constant([]) },
      { weight: 1, arbitrary: fc.subarray(FIELDS) },
    ),
    sandbox: fc.oneof(
      { weight: 9, arbitrary: fc.constantFrom(undefined, "s") },
      { weight: 1, arbitrary: fc.constant("gone") },
    ),
  })
  .map(({ scheme, host, port, method, target, fields, sandbox }) =>
    ask(`${scheme}://${host}:${port}`, { method, target, fields, client: { sandbox, address: "10.80.0.2" } }),
  );

function numbered(list: readonly Entry[], prefix: string): readonly Entry[] {
  return list.map((entry, index) => ({ ...entry, id: `${prefix}-${index}` }));
}
