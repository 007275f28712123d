/** Times and sizes: every unit, every slip. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseYaml } from "../../src/config/parse.ts";
import { Report } from "../../src/config/report.ts";
import { formatDuration, formatSize, readDuration, readSize } from "../../src/config/units.ts";

const BOUNDS = { min: 0, max: 1_000_000_000 };

function read(reader: typeof readDuration, text: string, bounds = BOUNDS): number | string | undefined {
  const parsed = parseYaml(text);
  assert.ok(parsed.ok);
  const report = new Report("f");
  return reader(report, parsed.root, "`x`", bounds) ?? report.problems()[0]?.message;
}

test("readDuration: each unit in milliseconds", () => {
  const cases = [
    ["250ms", 250],
    ["10s", 10_000],
    ["10 s", 10_000],
    ["5m", 300_000],
    ["2h", 7_200_000],
    ["7d", 604_800_000],
    ["0", 0],
    ["0s", 0],
  ];
  for (const [text, ms] of cases) assert.equal(read(readDuration, String(text)), ms, String(text));
});

test("readDuration: a bare number has no unit, and is refused for that", () => {
  const bounds = { min: 10, max: 3_600_000 };
  assert.equal(
    read(readDuration, "10", bounds),
    "`x` must be a time from 10ms to 1h, with its unit, such as `10s` or `250ms`",
  );
});

test("readDuration: what is no time, or out of bounds, is refused", () => {
  const bounds = { min: 10, max: 3_600_000 };
  for (const text of [
    "10x",
    "s",
    "1.5s",
    "-1s",
    "10S",
    "9ms",
    "61m",
    "[]",
    "true",
    "~",
    "10s 5s",
    "1000000000000000s",
    "1h30m",
    "0",
  ]) {
    assert.match(String(read(readDuration, text, bounds)), /^`x` must be a time from 10ms to 1h, /, text);
  }
});

test("readSize: each unit, and bare bytes", () => {
  const cases = [
    ["512", 512],
    ["512B", 512],
    ["64KiB", 65_536],
    ["1 MiB", 1_048_576],
    ["0", 0],
  ];
  for (const [text, bytes] of cases) assert.equal(read(readSize, String(text)), bytes, String(text));
  assert.equal(read(readSize, "1GiB", { min: 0, max: 2 ** 30 }), 2 ** 30);
});

test("readSize: decimal units, fractions and what is out of bounds are refused", () => {
  for (const text of ["64KB", "64kb", "64K", "1.5MiB", "-1", "2GiB", "{}", "~", "0x10", "1e3"]) {
    assert.equal(
      read(readSize, text, { min: 0, max: 1_048_576 }),
      "`x` must be a size from 0B to 1MiB, such as `64KiB` or a number of bytes",
      text,
    );
  }
});

test("formatDuration and formatSize: the largest unit that divides", () => {
  assert.deepEqual([0, 1, 1_000, 90_000, 3_600_000, 86_400_000, 61_000].map(formatDuration), [
    "0ms",
    "1ms",
    "1s",
    "90s",
    "1h",
    "1d",
    "61s",
  ]);
  assert.deepEqual([0, 1, 1_024, 1_025, 8_388_608, 2 ** 30].map(formatSize), [
    "0B",
    "1B",
    "1KiB",
    "1025B",
    "8MiB",
    "1GiB",
  ]);
});
