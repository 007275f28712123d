import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { afterEach, test } from "node:test";
import { environment, ignoredVariables } from "../../src/cli/environment.ts";

const MODULE = new URL("../../src/cli/environment.ts", import.meta.url).href;
const LOG = new URL("../../src/record/log.ts", import.meta.url).href;
const NAMES = ["NODE_TLS_REJECT_UNAUTHORIZED", "NODE_OPTIONS"] as const;
const BEFORE = NAMES.map((name) => [name, process.env[name]] as const);

afterEach(() => {
  for (const [name, value] of BEFORE) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
});

test("environment is a copy: what is changed there changes nothing", () => {
  const copy = environment() as Record<string, string | undefined>;
  copy["PATH"] = "changed";
  assert.notEqual(process.env["PATH"], "changed");
});

test("environment refuses what would switch off verification, show keys or open a debugger", () => {
  const refused = { code: "E_CONFIG", fault: "operator" };
  process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = "0";
  assert.throws(environment, { ...refused, message: /NODE_TLS_REJECT_UNAUTHORIZED=0/ });
  process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = "1";
  environment();
  for (const option of ["--tls-keylog=/tmp/k", "--max-http-header-size=1 --inspect", "--inspect-brk=0"]) {
    process.env["NODE_OPTIONS"] = option;
    assert.throws(environment, { ...refused, message: /NODE_OPTIONS/ });
  }
  process.env["NODE_OPTIONS"] = "--max-old-space-size=512";
  environment();
});

test("ignoredVariables names those that are set, in either case", () => {
  assert.deepEqual(ignoredVariables({ PATH: "/bin" }), []);
  assert.deepEqual(ignoredVariables({ https_proxy: "http://p:1", SSLKEYLOGFILE: "/k" }), [
    "SSLKEYLOGFILE",
    "HTTPS_PROXY",
  ]);
});

test("hardenProcess: a bug ends the process with 1 and one line, without the environment", () => {
  for (const bug of [
    "setTimeout(() => { throw new Error('a bug') })",
    "Promise.reject(new Error('a bug'))",
  ]) {
    const { status, stderr } = hardened(`${bug}; setInterval(() => {}, 1000);`);
    assert.equal(status, 1);
    assert.match(
      stderr,
      /error "Something broke that nothing expected" event=(uncaughtException|unhandledRejection) stack="Error: a bug/,
    );
    assert.doesNotMatch(stderr, /canary-value/);
  }
  assert.match(hardened("setTimeout(() => { throw 7 })").stderr, /stack="no stack"/);
});

test("hardenProcess: SIGUSR1 opens no debugger, and reports leave the environment out", () => {
  const { status, stdout, stderr } = hardened(
    "process.kill(process.pid, 'SIGUSR1'); setTimeout(() => console.log('environmentVariables' in process.report.getReport()), 200);",
  );
  assert.equal(status, 0);
  assert.equal(stdout, "false\n");
  assert.doesNotMatch(stderr, /Debugger/);
});

function hardened(program: string): ReturnType<typeof spawnSync> & { stdout: string; stderr: string } {
  const text = `
    import { hardenProcess } from ${JSON.stringify(MODULE)};
    import { createLog } from ${JSON.stringify(LOG)};
    hardenProcess(createLog(process.stderr, (text) => text));
    ${program}`;
  return spawnSync(
    process.execPath,
    ["--disable-warning=ExperimentalWarning", "--input-type=module", "-e", text],
    {
      env: { CANARY: "canary-value" },
      encoding: "utf8",
      timeout: 20_000,
    },
  );
}
