/** Every limit takes its unit and keeps to its bounds. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { LIMIT_KEYS } from "../../src/config/keys.ts";
import { LIMIT_RULES } from "../../src/config/limits.ts";
import { DEFAULT_LIMITS } from "../../src/model/limits.ts";
import { configOf, problemsIn, testProblems } from "./support.ts";

const HEAD = "version: 1\nnetwork: { allowlist: [] }\n";
const UNITS = { time: "ms", size: "B", count: "" };

test("readLimits: without the section every limit has its default", () => {
  assert.deepEqual(configOf(HEAD).limits, DEFAULT_LIMITS);
  assert.deepEqual(configOf(`${HEAD}limits:\n`).limits, DEFAULT_LIMITS);
});

for (const key of LIMIT_KEYS) {
  const { unit, min, max } = LIMIT_RULES[key];
  const suffix = UNITS[unit];

  test(`readLimits: ${key} has a default within its bounds`, () => {
    assert.ok(DEFAULT_LIMITS[key] >= min && DEFAULT_LIMITS[key] <= max);
  });

  test(`readLimits: ${key} takes its least and its greatest value`, () => {
    const other =
      key === "dns_max_ttl" ? "dns_min_ttl: 0s, " : key === "dns_min_ttl" ? "dns_max_ttl: 1d, " : "";
    for (const value of [min, max]) {
      assert.equal(configOf(`${HEAD}limits: { ${other}${key}: ${value}${suffix} }\n`).limits[key], value);
    }
  });

  test(`readLimits: ${key} refuses what lies beyond`, () => {
    for (const value of [`${max + 1}${suffix}`, min > 0 ? `${min - 1}${suffix}` : "-1", "many", "[]", "~"]) {
      const problems = problemsIn(`${HEAD}limits: { ${key}: ${value} }\n`);
      assert.equal(problems.length, 1, value);
      assert.ok(problems[0]?.includes(`\`${key}\` must be a `), problems[0]);
    }
  });
}

testProblems("readLimits", HEAD, [
  [
    "a limit that does not exist is refused",
    "limits: { head_byte: 1KiB }\n",
    "3:11 Unknown key `head_byte`; did you mean `head_bytes`?",
  ],
  [
    "a time needs its unit",
    "limits: { head_timeout: 10 }\n",
    "3:25 `head_timeout` must be a time from 10ms to 1h, with its unit, such as `10s` or `250ms`",
  ],
  [
    "a least time to live above the greatest is refused",
    "limits: { dns_min_ttl: 10m }\n",
    "3:11 `dns_min_ttl` is greater than `dns_max_ttl`",
  ],
  [
    "a greatest time to live below the least is refused",
    "limits: { dns_min_ttl: 10s, dns_max_ttl: 5s }\n",
    "3:11 `dns_min_ttl` is greater than `dns_max_ttl`",
  ],
  ["a greatest time to live alone is enough to be too low", "limits: { dns_min_ttl: 1s, dns_max_ttl: 1s }\n"],
  [
    "a sandbox with more connections than all get a warning",
    "limits: { connections: 10, connections_per_sandbox: 11 }\n",
    "3:28 warning: `connections_per_sandbox` is greater than `connections`",
  ],
  [
    "the section must be a map",
    "limits: [1]\n",
    "3:9 `limits` must be a map of keys and values, found a list",
  ],
]);
