import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { allCommands } from "../../src/cli/command-line.ts";
import { VERSION } from "../../src/cli/version.ts";
import { sallyport } from "./program.ts";

const COMMANDS = await allCommands();

test("runCommandLine: help lists every command, and a call without one is wrong", async () => {
  const texts = await Promise.all([["--help"], ["-h"], ["help"], []].map((argv) => sallyport(argv)));
  assert.deepEqual(
    texts.map(({ code }) => code),
    [0, 0, 0, 2],
  );
  for (const { stdout } of texts) {
    for (const { name, summary } of COMMANDS)
      assert.match(stdout, new RegExp(`^  ${name} +${summary.slice(0, 20)}`, "m"));
    assert.match(stdout, /^Example: /m);
  }
});

test("runCommandLine: every command has help with its options and an example, and does nothing else", async () => {
  for (const { name, options, example } of COMMANDS) {
    const { code, stdout, stderr } = await sallyport([name, "--help"]);
    assert.equal(code, 0, name);
    assert.equal(stderr, "");
    for (const option of Object.keys(options))
      assert.ok(stdout.includes(`--${option}`), `${name} --${option}`);
    assert.ok(stdout.includes(`Example: ${example}`), name);
  }
});

test("runCommandLine: --version tells the program's and the runtime's", async () => {
  const { code, stdout } = await sallyport(["--version"]);
  assert.equal(code, 0);
  assert.equal(stdout, `sallyport ${VERSION} (Node.js ${process.versions.node})\n`);
});

test("runCommandLine: a wrong call ends with 2, says what is wrong, and how to learn more", async () => {
  const cases = [
    [["frobnicate"], /^sallyport: There is no command "frobnicate"\nTry: sallyport --help\n$/],
    [["check", "--frobnicate"], /^sallyport: .*--frobnicate.*\nTry: sallyport check --help\n$/s],
    [["check", "a", "b"], /^sallyport: Give one file\nTry: sallyport check --help\n$/],
    [["explain", "--method"], /^sallyport: .*--method.*\nTry: sallyport explain --help\n$/s],
    [["ca", "show", "--out", "x"], /^sallyport: ca show takes no --out\nTry: sallyport ca --help\n$/],
  ] as const;
  for (const [argv, expected] of cases) {
    const { code, stdout, stderr } = await sallyport(argv);
    assert.equal(code, 2, argv.join(" "));
    assert.equal(stdout, "");
    assert.match(stderr, expected);
  }
});

test("runCommandLine: a reader that leaves is no trouble, and an output that is full is one", async () => {
  const main = fileURLToPath(new URL("../../src/start.mjs", import.meta.url));
  const program = `"$0" --disable-warning=ExperimentalWarning "$1"`;
  // Its reader is gone before it writes: the shell's pipe has no other end.
  const left = `{ sleep 0.2; ${program} --help; echo "code $?" >&2; } | true`;
  const full = `${program} --help >/dev/full; echo "code $?" >&2`;
  for (const [script, expected] of [
    [left, "code 0\n"],
    [full, "sallyport: The output cannot be written (ENOSPC)\ncode 1\n"],
  ] as const) {
    const { stderr } = spawnSync("sh", ["-c", script, process.execPath, main], { encoding: "utf8" });
    assert.equal(stderr, expected);
  }
});

test("runCommandLine: a command's own word that looks like another's is no command", async () => {
  for (const name of ["__proto__", "constructor", "-", "--"]) {
    assert.equal((await sallyport([name])).code, 2, name);
  }
});
