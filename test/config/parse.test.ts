/** YAML text to a positioned tree: what is read, what is refused and where, and that nothing takes long. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parseYaml } from "../../src/config/parse.ts";
import type { TreeNode } from "../../src/config/tree.ts";
import { plain } from "./support.ts";

const MIB = 1_048_576;

test("parseYaml: values of every kind come with the line and column that they stand at", () => {
  const parsed = parseYaml('a: 1\nlist:\n  - text\n  - "quoted"\n  - { b: true, c: , d: null }\n? e\n');
  assert.ok(parsed.ok);
  assert.equal(
    show(parsed.root),
    '{a@1:1=1@1:4, list@2:1=["text"@3:5, "quoted"@4:5, {b@5:7=true@5:10, c@5:16=null@5:19, d@5:21=null@5:24}@5:5]@3:3, e@6:3=null@6:3}@1:1',
  );
});

test("parseYaml: a number keeps its spelling, other values have none", () => {
  const parsed = parseYaml("[0x1f, 010, 1.5, text, 1e3]");
  assert.ok(parsed.ok && parsed.root.kind === "list");
  assert.deepEqual(
    parsed.root.items.map((item) => (item.kind === "scalar" ? [item.value, item.source] : [])),
    [
      [31, "0x1f"],
      [10, "010"],
      [1.5, "1.5"],
      ["text", ""],
      [1000, "1e3"],
    ],
  );
});

test("parseYaml: the words of YAML 1.1 are text", () => {
  const parsed = parseYaml("[yes, no, on, off, 1_000, 12:30:45]");
  assert.ok(parsed.ok && parsed.root.kind === "list");
  assert.deepEqual(
    parsed.root.items.map((item) => (item.kind === "scalar" ? item.value : undefined)),
    ["yes", "no", "on", "off", "1_000", "12:30:45"],
  );
});

test("parseYaml: an alias is the value of its anchor, with the anchor's place", () => {
  const parsed = parseYaml("a: &x [1, 2]\nb: *x\n");
  assert.ok(parsed.ok && parsed.root.kind === "map");
  assert.equal(parsed.root.entries[0]?.value, parsed.root.entries[1]?.value);
});

test("parseYaml: an anchor that is set again is the last one set before the alias", () => {
  const parsed = parseYaml("[&x 1, *x, &x 2, *x]");
  assert.ok(parsed.ok && parsed.root.kind === "list");
  assert.deepEqual(
    parsed.root.items.map((item) => (item.kind === "scalar" ? item.value : "")),
    [1, 1, 2, 2],
  );
});

test("parseYaml: `__proto__` and `constructor` are keys like others", () => {
  const parsed = parseYaml("__proto__: 1\nconstructor: 2\n");
  assert.ok(parsed.ok && parsed.root.kind === "map");
  assert.deepEqual(
    parsed.root.entries.map(({ key }) => key),
    ["__proto__", "constructor"],
  );
});

const REFUSED: readonly (readonly [name: string, text: string, problem: string])[] = [
  ["an empty text", "", "1:1 The file is empty"],
  ["a text of comments", "# nothing\n", "1:1 The file is empty"],
  ["a duplicate key", "a: 1\nb:\n  c: 2\n  d: 3\n  c: 4\n", "5:3 Duplicate key `c`; it is on line 3 already"],
  ["a duplicate key in another spelling", 'a: 1\n"a": 2\n', "2:1 Duplicate key `a`; it is on line 1 already"],
  ["a merge key", "a: &x { b: 1 }\nc: { <<: *x }\n", "2:6 Merge keys are not supported; write the keys out"],
  ["a tag on a scalar", "a: !!str 1\n", "1:10 Tags are not supported"],
  ["a tag on a map", "a: !!map { b: 1 }\n", "1:10 Tags are not supported"],
  ["a tag on a list", "a: !x [1]\n", "1:4 Tags are not supported"],
  ["an unknown tag", "a: !<tag:evil> 1\n", "1:4 Tags are not supported"],
  ["a tag on a key", "!!str a: 1\n", "1:7 A key must be plain text"],
  ["a key that is a list", "? [a]\n: 1\n", "1:3 A key must be plain text"],
  ["a key that is an alias", "a: &x k\n*x : 1\n", "2:1 A key must be plain text"],
  ["two documents", "a: 1\n---\nb: 2\n", "2:1 The file holds more than one document"],
  ["a YAML directive", "%YAML 1.1\n---\na: yes\n", "1:1 Directives are not supported"],
  ["a TAG directive", "%TAG !e! tag:example.com,2000:\n---\na: 1\n", "1:1 Directives are not supported"],
  [
    "an alias without an anchor",
    "domain: *x\n",
    "1:9 No anchor `x` stands before this alias; a pattern with `*` needs quotes",
  ],
  [
    "a wildcard without quotes",
    "domain: *.example.com\n",
    "1:9 No anchor `.example.com` stands before this alias; a pattern with `*` needs quotes",
  ],
  ["a bare star", "domain: *\n", "1:9 `*` starts an alias in YAML; a pattern with `*` needs quotes"],
  [
    "an alias inside its own anchor",
    "a: &x [*x]\n",
    "1:8 No anchor `x` stands before this alias; a pattern with `*` needs quotes",
  ],
  ["a tab that indents", "a:\n\tb: 1\n", "2:1 A tab cannot indent; use spaces"],
  [
    "an open bracket",
    "a: [1, 2\n",
    "2:1 This line is not indented as its neighbours are, or a bracket is not closed",
  ],
  ["an open quote", 'a: "x\n', "2:1 A comma, colon, quote or bracket is missing"],
  [
    "a second key on one line",
    "a: b: c\n",
    "1:4 A second `key:` on one line; a value with `: ` in it needs quotes",
  ],
  [
    "an unknown escape",
    'a: "\\q"\n',
    "1:5 Unknown escape in double quotes; a backslash is written `\\\\`, or use single quotes",
  ],
  [
    "a value that starts with a backquote",
    "a: `x`\n",
    "1:4 This character cannot start a plain value; put the value in quotes",
  ],
];

for (const [name, text, problem] of REFUSED) {
  test(`parseYaml: ${name} is refused`, () => {
    const parsed = parseYaml(text);
    assert.ok(!parsed.ok);
    const [first] = parsed.problems;
    assert.equal(`${first?.at.line}:${first?.at.column} ${first?.message}`, problem);
  });
}

test("parseYaml: no message quotes a value, whatever breaks around it", () => {
  const secret = "s3cr3t-v4lu3";
  const texts = [
    `a: "${secret}\n`,
    `a: '${secret}\n`,
    `a: ${secret}: x\n`,
    `a: [${secret}\n`,
    `a: {${secret}: 1, }}\n`,
    `a: \`${secret}\n`,
    `a: !<${secret}> 1\n`,
    `a: "\\q${secret}"\n`,
    `a: |x ${secret}\n`,
    `%${secret}\n---\na: 1\n`,
    `a: 1\n  ${secret}\n b: 1\n`,
    `- a\n${secret}\n`,
    `a: &x &y ${secret}\n`,
  ];
  for (const text of texts) {
    const parsed = parseYaml(text);
    assert.ok(!parsed.ok, text);
    assert.doesNotMatch(JSON.stringify(parsed.problems), /s3cr3t/, text);
  }
});

test("parseYaml: problems are limited in number", () => {
  const parsed = parseYaml("a: ! ! 1\n".repeat(500));
  assert.ok(!parsed.ok);
  assert.equal(parsed.problems.length, 20);
});

/** What a text of 1 MiB may cost at most here, in seconds of this process: others may keep the machine busy. */
const SECONDS = 8;

const HOSTILE: readonly (readonly [name: string, text: string, message: RegExp])[] = [
  ["open brackets", "[".repeat(MIB), /nested too deeply/],
  ["open braces", "{".repeat(MIB), /nested too deeply/],
  ["closed brackets", "[".repeat(MIB / 2) + "]".repeat(MIB / 2), /nested too deeply/],
  ["lists in lists", "- ".repeat(MIB / 2), /nested too deeply/],
  ["keys in keys", "? ".repeat(MIB / 2), /nested too deeply/],
  ["maps in maps", "{a: ".repeat(MIB / 4), /nested too deeply/],
  [
    "a staircase",
    Array.from({ length: 1_440 }, (_, depth) => `${" ".repeat(depth)}a:`).join("\n"),
    /nested too deeply/,
  ],
  ["stray brackets", "]".repeat(MIB), /not expected here/],
  ["line breaks", "\n".repeat(MIB), /too many parts/],
  ["documents", "---\n".repeat(MIB / 4), /more than one document/],
  ["a quote without end", `"${"a".repeat(MIB)}`, /missing/],
  ["an alias bomb", bomb(9), /Aliases make the file too large/],
  [
    "a wide alias bomb",
    `a: &a [${"1,".repeat(9_000)}]\nb: [${"*a,".repeat(50_000)}]`,
    /Aliases make the file too large/,
  ],
];

for (const [name, text, message] of HOSTILE) {
  test(`parseYaml: ${name} are given up on in bounded time`, () => {
    const started = process.cpuUsage();
    const parsed = parseYaml(text);
    const took = secondsSince(started);
    assert.ok(!parsed.ok);
    assert.match(parsed.problems[0]?.message ?? "", message);
    assert.ok(took < SECONDS, `${took.toFixed(1)} s`);
  });
}

test("parseYaml: a map of 50,000 keys and as many aliases of one value are read in linear time", () => {
  const started = process.cpuUsage();
  const keys = Array.from({ length: 50_000 }, (_, index) => `k${index}: 1`).join("\n");
  const parsed = parseYaml(`${keys}\nx: &x 1\nlist: [${"*x,".repeat(40_000)}]\n`);
  assert.ok(parsed.ok);
  assert.ok(secondsSince(started) < SECONDS);
});

test("parseYaml: a stack that is nearly full makes a refusal, not a crash", () => {
  const text = `a: ${"[".repeat(40)}1${"]".repeat(40)}\n`;
  const seen = new Set<string>();
  descend(() => {
    const parsed = parseYaml(text);
    seen.add(parsed.ok ? "read" : (parsed.problems[0]?.message ?? ""));
    return parsed.ok;
  });
  assert.deepEqual([...seen].sort(), ["The file is nested too deeply", "read"]);
});

test("parseYaml: any text is read or refused, and never throws", () => {
  const piece = fc.constantFrom(
    ..."[]{}:,-?&*!|>'\"%@`#~<= \n\t\\",
    "a",
    "b: ",
    "- ",
    "&a ",
    "*a",
    "---\n",
    "<<: ",
    "1",
    "é",
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string({ unit: "binary" }),
        fc.array(piece, { maxLength: 40 }).map((all) => all.join("")),
      ),
      (text) => {
        const parsed = parseYaml(text);
        if (parsed.ok) return;
        assert.ok(parsed.problems.length > 0);
        for (const { at, message } of parsed.problems) {
          assert.ok(at.line >= 1 && at.column >= 1);
          assert.notEqual(message, "");
        }
      },
    ),
    { numRuns: 2_000 },
  );
});

test("parseYaml: any JSON is read as what it says", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
      // A merge key is refused, and has a test of its own.
      fc.pre(!JSON.stringify(value).includes('"<<":'));
      const parsed = parseYaml(JSON.stringify(value));
      assert.ok(parsed.ok);
      assert.deepEqual(plain(parsed.root), JSON.parse(JSON.stringify(value)));
    }),
    { numRuns: 500 },
  );
});

function secondsSince(started: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(started);
  return (user + system) / 1_000_000;
}

/** Each level holds ten of the one before. */
function bomb(levels: number): string {
  const lines = ["a0: &a0 [x]"];
  for (let level = 1; level <= levels; level++) {
    lines.push(`a${level}: &a${level} [${Array.from({ length: 10 }, () => `*a${level - 1}`).join(",")}]`);
  }
  return lines.join("\n");
}

/** Calls `attempt` on ever less full stacks, from a full one on, until it succeeds. */
function descend(attempt: () => boolean): boolean {
  let done: boolean;
  try {
    done = descend(attempt);
  } catch {
    done = false;
  }
  return done || attempt();
}

function show(node: TreeNode): string {
  const at = `@${node.at.line}:${node.at.column}`;
  if (node.kind === "scalar") return JSON.stringify(node.value) + at;
  if (node.kind === "list") return `[${node.items.map(show).join(", ")}]${at}`;
  const entries = node.entries.map(
    ({ key, keyAt, value }) => `${key}@${keyAt.line}:${keyAt.column}=${show(value)}`,
  );
  return `{${entries.join(", ")}}${at}`;
}
