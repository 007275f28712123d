import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import {
  findHooksFile,
  type Handler,
  type HooksFile,
  parseHooks,
  readHooksFile,
} from "../../src/hooks/hooks-file.ts";

const directory = mkdtempSync(join(tmpdir(), "sallyport-hooks-"));
const home = process.cwd();
after(() => {
  process.chdir(home);
  rmSync(directory, { recursive: true, force: true });
});

const TOOLS = ["code_execution", "read_file", "write_file", "list_files", "delete_file"];

/** The matchers of the format's own page, and what it says of them. */
const MATCHERS: readonly (readonly [matcher: unknown, tools: readonly string[], reported: boolean])[] = [
  ["code_execution", ["code_execution"], false],
  ["read_file|write_file", ["read_file", "write_file"], false],
  [".*_file", ["read_file", "write_file", "delete_file"], false],
  ["*_file", [], true],
  ["*", TOOLS, false],
  ["", TOOLS, false],
  [".*", TOOLS, false],
  [undefined, TOOLS, false],
  ["file", [], false],
  ["Read_file", [], false],
  ["(?=read)read_file", [], true],
  [7, [], true],
];

for (const [matcher, tools, reported] of MATCHERS) {
  test(`parseHooks: the matcher ${JSON.stringify(matcher)} matches ${tools.join(", ") || "no tool"}`, () => {
    const file = parse({ g: { pre_tool_execution: [{ matcher, hooks: [] }] } });
    assert.deepEqual(
      TOOLS.filter((tool) => file.entries[0]?.matches(tool)),
      tools,
    );
    assert.equal(file.problems.length > 0, reported);
  });
}

test("parseHooks: the page's example is read whole, in its order", () => {
  const file = parse({
    "security-gate": {
      enabled: true,
      pre_tool_execution: [
        {
          matcher: "code_execution",
          hooks: [{ type: "command", command: "python3 /.agents/hooks-scripts/gate.py", timeout: 10 }],
        },
      ],
    },
    "audit-logging": {
      post_tool_execution: [
        {
          matcher: "read_file|write_file",
          hooks: [
            {
              type: "http",
              url: "https://telemetry.example.com/api/v1/agent-events",
              headers: { "X-Event-Source": "agent-sandbox" },
            },
          ],
        },
      ],
    },
  });
  assert.deepEqual(file.problems, []);
  assert.deepEqual(
    file.entries.map(({ event, handlers }) => [event, handlers]),
    [
      [
        "pre_tool_execution",
        [
          {
            type: "command",
            command: "python3 /.agents/hooks-scripts/gate.py",
            timeoutMs: 10_000,
            onFailure: "allow",
            where: "security-gate.pre_tool_execution[0].hooks[0]",
          },
        ],
      ],
      [
        "post_tool_execution",
        [
          {
            type: "http",
            url: new URL("https://telemetry.example.com/api/v1/agent-events"),
            headers: [["X-Event-Source", "agent-sandbox"]],
            timeoutMs: 30_000,
            onFailure: "allow",
            where: "audit-logging.post_tool_execution[0].hooks[0]",
          },
        ],
      ],
    ],
  );
});

test("parseHooks: a group that is not enabled has no entries", () => {
  const group = { pre_tool_execution: [{ matcher: "*", hooks: [] }] };
  assert.equal(parse({ g: { enabled: false, ...group } }).entries.length, 0);
  assert.equal(parse({ g: { enabled: true, ...group } }).entries.length, 1);
  const odd = parse({ g: { enabled: "false", ...group } });
  assert.deepEqual([odd.entries.length, odd.problems[0]?.where], [1, "g.enabled"]);
});

const BROKEN: readonly (readonly [hook: unknown, problem: RegExp])[] = [
  [7, /must be a map/],
  [{ type: "exec", command: "x" }, /`type` command or http/],
  [{ type: "command" }, /must have a `command`/],
  [{ type: "command", command: " " }, /must have a `command`/],
  [{ type: "http" }, /https/],
  [{ type: "http", url: "http://example.com/" }, /https/],
  [{ type: "http", url: "https://u:p@example.com/" }, /without a name and a password/],
  [{ type: "http", url: "https://localhost/" }, /loopback/],
  [{ type: "http", url: "https://x.localhost/" }, /loopback/],
  [{ type: "http", url: "https://127.1/" }, /loopback/],
  [{ type: "http", url: "https://[::1]/" }, /loopback/],
  [{ type: "http", url: "https://[::ffff:127.0.0.1]/" }, /loopback/],
  [{ type: "http", url: "https://example.com/", headers: [] }, /map/],
  [{ type: "http", url: "https://example.com/", headers: { Host: "x" } }, /cannot send the header "Host"/],
  [{ type: "http", url: "https://example.com/", headers: { "A B": "x" } }, /cannot send the header/],
  [{ type: "http", url: "https://example.com/", headers: { A: "x\r\ny" } }, /cannot send "A"/],
  [{ type: "http", url: "https://example.com/", headers: { A: 7 } }, /not text/],
];

for (const [hook, problem] of BROKEN) {
  test(`parseHooks: ${JSON.stringify(hook)} is reported, and fails whenever it is asked`, () => {
    const file = parse({ g: { pre_tool_execution: [{ matcher: "*", hooks: [hook] }] } });
    const [handler] = handlersOf(file);
    assert.equal(handler?.type, "broken");
    assert.match(file.problems[0]?.problem ?? "", problem);
  });
}

test("parseHooks: odd timeouts and onFailure are reported; who misspells block still blocks", () => {
  const hook = (more: object): unknown => ({ type: "command", command: "x", ...more });
  const hooks = [hook({ timeout: 0 }), hook({ timeout: "5" }), hook({ timeout: 1.5, onFailure: "blok" })];
  const file = parse({ g: { pre_tool_execution: [{ hooks }] } });
  assert.deepEqual(
    handlersOf(file).map(({ timeoutMs, onFailure }) => [timeoutMs, onFailure]),
    [
      [30_000, "allow"],
      [30_000, "allow"],
      [1_500, "block"],
    ],
  );
  assert.equal(file.problems.length, 3);
});

test("parseHooks: unknown keys are reported and change nothing", () => {
  const file = parse({
    g: {
      enable: true,
      pre_tool_execution: [{ match: "x", hooks: [{ type: "command", command: "x", url: "y" }] }],
    },
  });
  assert.deepEqual(
    file.problems.map(({ where }) => where),
    ["g", "g.pre_tool_execution[0]", "g.pre_tool_execution[0].hooks[0]"],
  );
  assert.equal(handlersOf(file).length, 1);
});

for (const text of [
  "{",
  "[]",
  "7",
  '{"g":[]}',
  '{"g":{"pre_tool_execution":{}}}',
  '{"g":{"pre_tool_execution":[1]}}',
  '{"g":{"pre_tool_execution":[{"hooks":1}]}}',
]) {
  test(`parseHooks: ${text} has nothing to ask and one problem`, () => {
    const file = parseHooks(text);
    assert.deepEqual([handlersOf(file).length, file.problems.length], [0, 1]);
  });
}

test("parseHooks: a byte order mark is no error, and names of objects are names like others", () => {
  assert.deepEqual(parseHooks("\uFEFF{}").problems, []);
  assert.equal(parseHooks('{"__proto__":{"pre_tool_execution":[{"hooks":[]}]}}').entries.length, 1);
});

test("readHooksFile: what is no readable file of at most 1 MiB is one problem", () => {
  const big = join(directory, "big.json");
  writeFileSync(big, " ".repeat((1 << 20) + 1));
  for (const path of [join(directory, "none.json"), directory, "/dev/zero", big]) {
    const { entries, problems } = readHooksFile(path);
    assert.deepEqual([entries.length, problems.length, problems[0]?.where], [0, 1, ""]);
  }
});

test("findHooksFile: it is looked for below the working directory first", async () => {
  const { mkdirSync } = await import("node:fs");
  process.chdir(directory);
  assert.notEqual(findHooksFile(), ".agents/hooks.json");
  mkdirSync(".agents");
  writeFileSync(".agents/hooks.json", "{}");
  assert.equal(findHooksFile(), ".agents/hooks.json");
  assert.deepEqual(readHooksFile(".agents/hooks.json"), { entries: [], problems: [] });
});

function parse(value: unknown): HooksFile {
  return parseHooks(JSON.stringify(value));
}

function handlersOf(file: HooksFile): readonly Handler[] {
  return file.entries.flatMap(({ handlers }) => handlers);
}
