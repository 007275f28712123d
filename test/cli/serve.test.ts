import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { folder, freeAddress, sallyport, serving, until } from "./program.ts";

const ONE = "workers: 1\nnetwork: { allowlist: [ { domain: one.example } ] }\n";

test("serve: says where it listens, and the line that it prints to try works", async () => {
  const gate = await serving({ config: ONE });
  assert.match(gate.stderr, /^sallyport \d+\.\d+\.\d+: enforcing policy [0-9a-f]{12} of .*sallyport\.yaml$/m);
  const [, line = ""] = /^try {5}(.*)$/m.exec(gate.stderr) ?? [];
  const { stdout } = await promisify(execFile)("/bin/sh", ["-c", line], {
    env: { PATH: process.env["PATH"] ?? "", no_proxy: "" },
  });
  assert.match(stdout, /^HTTP\/1\.1 403 /);
  assert.match(stdout, /x-sallyport-reason: no-rule-matched/i);
  const [record = ""] = await until(
    async () => gate.stdout.split("\n"),
    (lines) => lines.length > 1,
  );
  const { verdict, reason, host } = JSON.parse(record) as Record<string, unknown>;
  assert.deepEqual(
    { verdict, reason, host },
    { verdict: "deny", reason: "no-rule-matched", host: "not-listed.example" },
  );
  gate.signal("SIGTERM");
  const { code, signal } = await gate.ended;
  assert.deepEqual({ code, signal }, { code: 0, signal: undefined });
});

test("serve: an address that is taken is said, and ends it with 2", async () => {
  for (const door of ["proxy", "admin"] as const) {
    const taken = await freeAddress();
    const [host = "", port = ""] = taken.split(":");
    const other = createServer().listen(Number(port), host);
    await once(other, "listening");
    const listen = { proxy: await freeAddress(), admin: await freeAddress(), [door]: taken };
    for (const workers of [1, 2]) {
      const config = JSON.stringify({
        version: 1,
        listen,
        workers,
        ca: { dir: "ca" },
        network: { allowlist: [] },
      });
      const { code, stderr } = await sallyport([
        "serve",
        "--config",
        join(folder({ "c.yaml": config }), "c.yaml"),
      ]);
      assert.equal(code, 2, stderr);
      assert.match(
        stderr,
        new RegExp(`^sallyport: Cannot listen on ${taken}.*: something else listens there$`, "m"),
      );
      assert.doesNotMatch(stderr, /^try/m);
    }
    other.close();
  }
});

test("serve: a config that cannot be used ends it with 2, with every problem and its place", async () => {
  const config = "version: 1\nnetwork:\n  alowlist: []\nmode: maybe\n";
  const file = join(folder({ "c.yaml": config }), "c.yaml");
  const { code, stderr, stdout } = await sallyport(["serve", "--config", file]);
  assert.equal(code, 2);
  assert.match(stderr, new RegExp(`^${file}:3:3: .*allowlist`, "m"));
  assert.match(stderr, new RegExp(`^${file}:4:7: `, "m"));
  assert.equal(stdout, "");
  assert.equal((await sallyport(["serve", "--config", join(folder(), "none.yaml")])).code, 2);
});

test("serve: an argument that is none of its own is a wrong call", async () => {
  const { code, stderr } = await sallyport(["serve", "config.yaml"]);
  assert.equal(code, 2);
  assert.match(stderr, /--config/);
});

test("serve: an environment that switches off what the gate is for is refused", async () => {
  const bad = [
    { NODE_TLS_REJECT_UNAUTHORIZED: "0" },
    { NODE_OPTIONS: "--tls-keylog=/nonexistent/keys" },
    { NODE_OPTIONS: "--inspect=127.0.0.1:0" },
  ];
  for (const env of bad) {
    const { code, stderr } = await sallyport(["serve"], { env });
    assert.equal(code, 2);
    assert.match(stderr, new RegExp(`sallyport: ${Object.keys(env)[0]}.*unset it`));
  }
});

test("serve: variables without effect are named", async () => {
  const gate = await serving({ config: ONE, env: { https_proxy: "http://127.0.0.1:9" } });
  assert.match(gate.stderr, /warn "A variable has no effect here" name=HTTPS_PROXY/);
});
