import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { existsSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, test } from "node:test";
import { openCa } from "../../src/pki/ca.ts";
import { createLeafKey, mintLeaf } from "../../src/pki/leaf.ts";
import { folder, sallyport } from "./program.ts";

const dir = folder({ "c.yaml": "version: 1\nca: { dir: ca }\nnetwork: disabled\n" });
const CONFIG = ["--config", join(dir, "c.yaml")];
const certificate = join(dir, "ca/ca.pem");

test("ca: without an authority each part but init says who makes one", async () => {
  for (const part of ["show", "bundle", "env"]) {
    const { code, stderr } = await sallyport(["ca", part, ...CONFIG]);
    assert.equal(code, 2, part);
    assert.match(stderr, /There is no CA in .*; sallyport ca init makes it/);
  }
  assert.equal(existsSync(certificate), false);
});

test("ca init makes the authority as serve would, once", async () => {
  const first = await sallyport(["ca", "init", ...CONFIG]);
  assert.equal(first.code, 0, first.stderr);
  assert.match(first.stdout, /^certificate .*ca\.pem \(made\)$/m);
  assert.equal(statSync(join(dir, "ca/ca.key")).mode & 0o777, 0o600);
  const before = readFileSync(certificate, "utf8");
  const again = await sallyport(["ca", "init", ...CONFIG]);
  assert.match(again.stdout, /\(was there already\)$/m);
  assert.equal(readFileSync(certificate, "utf8"), before);
  assert.equal(openCa(join(dir, "ca")).certificatePem, before);
});

test("ca show tells path, subject, fingerprint and validity, in words and in JSON", async () => {
  const made = new X509Certificate(readFileSync(certificate));
  const { stdout } = await sallyport(["ca", "show", ...CONFIG, "--json"]);
  assert.deepEqual(JSON.parse(stdout), {
    path: certificate,
    subject: made.subject,
    fingerprint: made.fingerprint256,
    notBefore: new Date(made.validFrom).toISOString(),
    notAfter: new Date(made.validTo).toISOString(),
  });
  const text = await sallyport(["ca", "show", ...CONFIG]);
  for (const fact of [certificate, made.subject, made.fingerprint256]) assert.ok(text.stdout.includes(fact));
});

test("ca bundle writes PEM to stdout, or both files where it is told", async () => {
  const printed = await sallyport(["ca", "bundle", ...CONFIG]);
  assert.ok(printed.stdout.startsWith(readFileSync(certificate, "utf8")));
  const out = join(folder(), "b.pem");
  const { code, stdout } = await sallyport(["ca", "bundle", "--out", out, ...CONFIG]);
  assert.equal(code, 0);
  assert.equal(stdout, `${out}\n${out.replace(".pem", ".p12")}\n`);
  assert.equal(readFileSync(out, "utf8"), printed.stdout);
  const nowhere = await sallyport(["ca", "bundle", "--out", join(certificate, "b.pem"), ...CONFIG]);
  assert.equal(nowhere.code, 2);
  assert.match(nowhere.stderr, /ca\.pem\/b\.pem cannot be written \(ENOTDIR\)/);
});

test("ca env: a shell that reads it trusts with files that exist", async () => {
  const { stdout } = await sallyport(["ca", "env", ...CONFIG]);
  const printed = execFileSync("/bin/sh", ["-c", `${stdout}\nexec env`], { env: {}, encoding: "utf8" });
  const [, bundle = ""] = /^SSL_CERT_FILE=(.*)$/m.exec(printed) ?? [];
  assert.equal(bundle, join(dir, "ca/bundle.pem"));
  assert.ok(existsSync(bundle) && existsSync(bundle.replace(".pem", ".p12")));
  assert.match(printed, new RegExp(`^JAVA_TOOL_OPTIONS=.*trustStore=${bundle.replace(".pem", ".p12")}`, "m"));
});

test("ca env speaks sh, fish and JSON, of a bundle that is there and needs no config", async () => {
  const bundle = join(dir, "ca/bundle.pem");
  const asked = ["ca", "env", "--bundle", bundle];
  const json = await sallyport([...asked, "--shell", "json"], { cwd: folder() });
  const variables = JSON.parse(json.stdout) as Record<string, string>;
  assert.equal(variables["CURL_CA_BUNDLE"], bundle);
  assert.equal((await sallyport([...asked, "--json"])).stdout, json.stdout);
  const fish = await sallyport([...asked, "--shell", "fish"]);
  assert.match(fish.stdout, new RegExp(`^set -gx CURL_CA_BUNDLE '${bundle}'$`, "m"));
  assert.equal((await sallyport([...asked, "--shell", "csh"])).code, 2);
  const none = await sallyport(["ca", "env", "--bundle", join(dir, "none.pem")]);
  assert.equal(none.code, 2);
  assert.match(none.stderr, /sallyport ca bundle --out makes it/);
});

test("ca doctor: 1 and a remedy for a client that does not trust, 0 once it does, without a config", async () => {
  const url = await gateLike();
  const PATH = join(folder(), "bin");
  execFileSync("/bin/sh", ["-c", `mkdir ${PATH} && ln -s "$(command -v curl)" ${PATH}/curl`]);
  const bundle = join(dir, "ca/bundle.pem");
  const asked = ["ca", "doctor", "--url", url];
  const sick = await sallyport([...asked, "--bundle", bundle], { env: { PATH }, cwd: folder() });
  assert.equal(sick.code, 1, sick.stderr);
  assert.equal(sick.stdout, `curl             does not   export CURL_CA_BUNDLE='${bundle}'\n`);
  const env = { PATH, SSL_CERT_FILE: bundle, CURL_CA_BUNDLE: bundle };
  const well = await sallyport(asked, { env, cwd: folder() });
  assert.deepEqual(
    { code: well.code, stdout: well.stdout },
    { code: 0, stdout: "curl             trusts it\n" },
  );
  const json = await sallyport([...asked, "--json"], { env, cwd: folder() });
  const { clients } = JSON.parse(json.stdout) as { clients: { client: string; verdict: string }[] };
  assert.deepEqual(
    clients.map(({ client, verdict }) => [client, verdict]),
    [["curl", "trusts"]],
  );
});

test("ca doctor: a URL that is none, or that does not lead to the gate, is 2", async () => {
  const bundle = join(dir, "ca/bundle.pem");
  for (const url of ["nonsense", "http://one.example/"]) {
    const { code, stderr } = await sallyport(["ca", "doctor", "--bundle", bundle, "--url", url]);
    assert.equal(code, 2);
    assert.match(stderr, /--url takes an https URL/);
  }
  const astray = await sallyport(["ca", "doctor", "--bundle", bundle, "--url", "https://127.0.0.1:1/"]);
  assert.equal(astray.code, 2);
  assert.match(astray.stderr, /No TLS server answers/);
});

test("ca: a word that names no part, two words, and another part's option are wrong calls", async () => {
  for (const args of [
    [],
    ["forge"],
    ["init", "show"],
    ["toString"],
    ["show", "--url", "https://x.example/"],
  ]) {
    assert.equal((await sallyport(["ca", ...args, ...CONFIG])).code, 2, args.join(" "));
  }
});

/** A server whose certificate is of this authority. */
async function gateLike(): Promise<string> {
  const key = createLeafKey();
  const cert = mintLeaf(openCa(join(dir, "ca")), "localhost", new Date(), key);
  const server = createServer({ cert, key: key.privatePem }, (_, response) => response.writeHead(403).end());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  after(() => server.close());
  return `https://localhost:${(server.address() as AddressInfo).port}/`;
}
