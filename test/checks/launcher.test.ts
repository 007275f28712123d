/** The launcher and the bootstrap on trees of their own, with an npm that only says that it ran. */
import assert from "node:assert/strict";
import { type ChildProcess, execFile, type PromiseWithChild, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { ROOT } from "./repository.ts";

/** What Node.js itself is given. */
const FLAGS = "--max-semi-space-size=32\n";

const run = promisify(execFile);
const base = realpathSync(mkdtempSync(join(tmpdir(), "sallyport launcher-")));
after(() => rmSync(base, { recursive: true, force: true }));

/** Installs nothing, and waits for `gate` where that is a file that does not exist yet. */
const NPM = `#!/bin/sh
echo "$@" >>"$CALLS"
mkdir -p node_modules
while [ -n "$GATE" ] && [ ! -e "$GATE" ]; do sleep 0.05; done
exit "\${NPM_STATUS:-0}"
`;

interface Tree {
  readonly root: string;
  readonly env: NodeJS.ProcessEnv;
  /** What npm was called with, a line each. */
  calls(): readonly string[];
}

test("bin/sallyport: it finds its folder through symlinks, and passes every argument on untouched", async () => {
  const { root } = plant("ready");
  makeReady(root);
  mkdirSync(join(root, "elsewhere"));
  symlinkSync("../bin/sallyport", join(root, "elsewhere/relative"));
  symlinkSync(join(root, "elsewhere/relative"), join(root, "elsewhere/absolute"));
  for (const name of ["bin/sallyport", "elsewhere/relative", "elsewhere/absolute"]) {
    const { stdout, stderr } = await run(join(root, name), ["a b", "--c", "*"], {
      cwd: "/",
      env: { PATH: "/usr/bin:/bin" },
    });
    assert.equal(stdout, `${FLAGS}${join(root, "src/start.mjs")}\na b\n--c\n*\n`, name);
    assert.equal(stderr, "", name);
  }
});

test("bin/sallyport: with nothing missing it starts no other process than the program", async () => {
  const { root } = plant("nothing missing");
  makeReady(root);
  // An empty PATH: any command but a built-in would fail.
  const { stdout } = await run(join(root, "bin/sallyport"), ["x"], { env: { PATH: join(root, "empty") } });
  assert.equal(stdout, `${FLAGS}${join(root, "src/start.mjs")}\nx\n`);
});

test("bin/sallyport: without Node.js it says what is needed, on stderr alone", async () => {
  const { root } = plant("no node");
  const { code, stdout, stderr } = await failing(join(root, "bin/sallyport"), { PATH: join(root, "empty") });
  assert.equal(code, 1);
  assert.equal(stdout, "");
  assert.match(
    stderr,
    /^sallyport: the first set-up needs Node\.js 18 or newer and npm, and node is not on PATH.*\n$/,
  );
});

test("bin/bootstrap.mjs: it installs once, and again only when the lock file's text changed", async () => {
  const tree = plant("once");
  await bootstrap(tree);
  await bootstrap(tree);
  assert.equal(tree.calls().length, 1);
  assert.match(tree.calls()[0] ?? "", /^ci --include=dev /);
  assert.equal(realpathSync(join(tree.root, ".runtime/node")), realpathSync(process.execPath));
  writeFileSync(join(tree.root, "package-lock.json"), "changed");
  await bootstrap(tree);
  assert.equal(tree.calls().length, 2);
});

test("bin/bootstrap.mjs: of two at once one installs and the other waits for it", async () => {
  const tree = plant("two");
  const gate = join(tree.root, "gate");
  const both = [bootstrap(tree, { GATE: gate }), bootstrap(tree, { GATE: gate })];
  await Promise.race(both.map(({ child }) => says(child, "waiting for another set-up")));
  writeFileSync(gate, "");
  await Promise.all(both);
  assert.equal(tree.calls().length, 1);
  assert.ok(!existsSync(join(tree.root, ".runtime/lock")));
});

test("bin/bootstrap.mjs: a lock that a killed set-up left behind is taken over", async () => {
  const tree = plant("stale");
  const lock = join(tree.root, ".runtime/lock");
  mkdirSync(lock, { recursive: true });
  const long = new Date(Date.now() - 60_000);
  utimesSync(lock, long, long);
  await bootstrap(tree);
  assert.equal(tree.calls().length, 1);
});

test("bin/bootstrap.mjs: interrupted, it ends npm, leaves no lock and no stamp, and the next one installs", async () => {
  const tree = plant("interrupted");
  const child = spawn(process.execPath, [join(tree.root, "bin/bootstrap.mjs")], {
    env: { ...tree.env, GATE: join(tree.root, "never") },
    stdio: "ignore",
  });
  await appears(join(tree.root, "calls"));
  child.kill("SIGTERM");
  const [status] = (await once(child, "exit")) as [number | null];
  assert.equal(status, 143);
  assert.ok(!existsSync(join(tree.root, ".runtime/lock")));
  assert.ok(!existsSync(join(tree.root, "node_modules/.ready")));
  await bootstrap(tree);
  assert.equal(tree.calls().length, 2);
});

test("bin/bootstrap.mjs: where npm fails it fails, says so, and leaves no stamp", async () => {
  const tree = plant("failed");
  const { code, stdout, stderr } = await failing(join(tree.root, "bin/sallyport"), {
    ...tree.env,
    NPM_STATUS: "7",
  });
  assert.equal(code, 1);
  assert.equal(stdout, "");
  assert.match(stderr, /sallyport: npm ci failed \(7\)/);
  assert.ok(!existsSync(join(tree.root, "node_modules/.ready")));
});

/** A clone with a bin/, a lock file, and an npm that logs its calls. */
function plant(name: string): Tree {
  const root = join(base, name);
  mkdirSync(join(root, "tools"), { recursive: true });
  mkdirSync(join(root, "empty"));
  cpSync(join(ROOT, "bin"), join(root, "bin"), { recursive: true });
  writeFileSync(join(root, "package-lock.json"), "{}");
  executable(join(root, "tools/npm"), NPM);
  const calls = join(root, "calls");
  const path = `${join(root, "tools")}:${dirname(process.execPath)}:/usr/bin:/bin`;
  return {
    root,
    env: { PATH: path, CALLS: calls },
    calls: () => (existsSync(calls) ? readFileSync(calls, "utf8").trim().split("\n") : []),
  };
}

/** As after a set-up, with a runtime that prints its arguments. */
function makeReady(root: string): void {
  mkdirSync(join(root, ".runtime"));
  mkdirSync(join(root, "node_modules"));
  executable(join(root, ".runtime/node"), "#!/bin/sh\nprintf '%s\\n' \"$@\"\n");
  const past = new Date(Date.now() - 60_000);
  utimesSync(join(root, ".runtime/node"), past, past);
  utimesSync(join(root, "package-lock.json"), past, past);
  writeFileSync(join(root, "node_modules/.ready"), "");
}

function executable(file: string, text: string): void {
  writeFileSync(file, text);
  chmodSync(file, 0o755);
}

function bootstrap(tree: Tree, more: NodeJS.ProcessEnv = {}): PromiseWithChild<unknown> {
  return run(process.execPath, [join(tree.root, "bin/bootstrap.mjs")], { env: { ...tree.env, ...more } });
}

interface Failing {
  readonly code: unknown;
  readonly stdout: string;
  readonly stderr: string;
}

async function failing(file: string, env: NodeJS.ProcessEnv): Promise<Failing> {
  return await run(file, [], { env }).then(
    () => assert.fail("It should have failed"),
    (error: Failing) => error,
  );
}

/** Until a process has said this on stderr. */
function says(child: ChildProcess, text: string): Promise<void> {
  return new Promise((resolve) => {
    let said = "";
    child.stderr?.on("data", (piece) => {
      said += piece;
      if (said.includes(text)) resolve();
    });
  });
}

/** Until a file is there and holds something; the test's own time limit ends a wait in vain. */
async function appears(file: string): Promise<void> {
  while (!existsSync(file) || readFileSync(file, "utf8") === "") {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
