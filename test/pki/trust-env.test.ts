import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { exportLine, trustEnvironment, truststoreBeside } from "../../src/pki/trust-env.ts";
import { read } from "../checks/repository.ts";

test("trustEnvironment gives every variable the bundle, and Java the truststore", () => {
  const { JAVA_TOOL_OPTIONS, ...rest } = trustEnvironment({ bundle: "/t/b.pem", truststore: "/t/b.p12" });
  assert.equal(
    JAVA_TOOL_OPTIONS,
    "-Djavax.net.ssl.trustStore=/t/b.p12 -Djavax.net.ssl.trustStoreType=PKCS12",
  );
  assert.deepEqual([...new Set(Object.values(rest))], ["/t/b.pem"]);
  for (const name of [
    "SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "GIT_SSL_CAINFO",
    "PIP_CERT",
  ]) {
    assert.equal(rest[name], "/t/b.pem");
  }
  assert.equal("JAVA_TOOL_OPTIONS" in trustEnvironment({ bundle: "/t/b.pem", truststore: undefined }), false);
});

test("trustEnvironment quotes a truststore whose path has a blank, as the JVM reads it", () => {
  const { JAVA_TOOL_OPTIONS } = trustEnvironment({ bundle: "/b", truststore: "/a b/t.p12" });
  assert.match(JAVA_TOOL_OPTIONS ?? "", /^"-Djavax\.net\.ssl\.trustStore=\/a b\/t\.p12" /);
});

test("trustEnvironment and docs/trust.md name the same variables", () => {
  const [, section = ""] = read("docs/trust.md").split("## What is set");
  const documented = [...section.matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name);
  assert.deepEqual(
    documented.sort(),
    Object.keys(trustEnvironment({ bundle: "/b", truststore: "/t" })).sort(),
  );
});

test("truststoreBeside puts it beside the bundle, whatever that is called", () => {
  assert.equal(truststoreBeside("/t/bundle.pem"), "/t/bundle.p12");
  assert.equal(truststoreBeside("/t/a.pem.crt"), "/t/a.pem.p12");
  assert.equal(truststoreBeside("/t.pem/roots"), "/t.pem/roots.p12");
});

test("exportLine: sh reads back what was meant", () => {
  for (const value of ["/plain", "/it's here", 'a "b" $HOME `id` \\ *', "two\nlines"]) {
    const script = `${exportLine("V", value)}\nexec env -0`;
    const printed = execFileSync("/bin/sh", ["-c", script], { env: {}, encoding: "utf8" });
    assert.ok(printed.split("\0").includes(`V=${value}`), value);
  }
});

test("exportLine: fish has its own way to quote", () => {
  assert.equal(exportLine("V", "/it's \\ here", "fish"), "set -gx V '/it\\'s \\\\ here'");
});
