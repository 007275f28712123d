import assert from "node:assert/strict";
import { test } from "node:test";
import { trustEnvironment } from "../../src/pki/trust-env.ts";
import { judge, type Outcome, TRUST_CHECKS, type TrustCheck } from "../../src/sandbox/trust-checks.ts";

const URL_OF_GATE = new URL("https://gate.example/");

test("judge: what each client says of a certificate that it does not trust", () => {
  const said: Readonly<Record<string, string>> = {
    curl: "curl: (60) SSL certificate problem: unable to get local issuer certificate",
    openssl: "verify error:num=20:unable to get local issuer certificate",
    "python urllib":
      "URLError: <urlopen error [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed>",
    "python requests":
      "SSLError: HTTPSConnectionPool(...): (Caused by SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED]')))",
    "python httpx": "ConnectError: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed",
    pip: "Could not fetch URL https://x/: There was a problem confirming the ssl certificate: ... - skipping\nERROR: No matching distribution found for sallyport-doctor",
    node: "UNABLE_TO_VERIFY_LEAF_SIGNATURE unable to verify the first certificate",
    npm: "npm error code UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
    deno: "error: Uncaught TypeError: client error (Connect): invalid peer certificate: UnknownIssuer",
    go: "tls: failed to verify certificate: x509: certificate signed by unknown authority",
    git: "fatal: unable to access 'https://x/': server certificate verification failed. CAfile: none CRLfile: none",
    cargo:
      "[60] SSL peer certificate or SSH remote key was not OK (SSL certificate problem: unable to get local issuer)",
    java: "keytool error: javax.net.ssl.SSLHandshakeException: PKIX path building failed",
    wget: "ERROR: The certificate of 'x' doesn't have a known issuer.",
    aws: "SSL validation failed for https://x/ [SSL: CERTIFICATE_VERIFY_FAILED]",
  };
  assert.deepEqual(Object.keys(said).sort(), TRUST_CHECKS.map(({ client }) => client).sort());
  for (const check of TRUST_CHECKS) {
    // The exit code of success must not outweigh it.
    for (const code of [0, 1])
      assert.equal(judge(check, outcome(said[check.client] ?? "", code)), "distrusts");
  }
});

test("judge: what each client says of the gate's refusal, once it trusts the certificate", () => {
  const said: Readonly<Record<string, Outcome>> = {
    curl: outcome("", 0),
    openssl: outcome("Verification: OK\nVerify return code: 0 (ok)", 0),
    "python urllib": outcome("ANSWERED", 0),
    "python requests": outcome("ANSWERED", 0),
    "python httpx": outcome("ANSWERED", 0),
    pip: outcome("ERROR: No matching distribution found for sallyport-doctor", 1),
    node: outcome("ANSWERED", 0),
    npm: outcome("npm error code E403\nnpm error 403 403 Forbidden", 1),
    deno: outcome("", 0),
    go: outcome("go: module sallyport.invalid/doctor: reading https://x/: 403 Forbidden", 1),
    git: outcome("fatal: unable to access 'https://x/': The requested URL returned error: 403", 128),
    cargo: outcome("failed to fetch `config.json`: got 403", 101),
    java: outcome(
      "keytool error: java.io.IOException: Server returned HTTP response code: 403 for URL: https://x/",
      1,
    ),
    wget: outcome("ERROR 403: Forbidden.", 8),
    aws: outcome("An error occurred (403) when calling the ListBuckets operation: Forbidden", 254),
  };
  assert.deepEqual(Object.keys(said).sort(), TRUST_CHECKS.map(({ client }) => client).sort());
  for (const check of TRUST_CHECKS) {
    assert.equal(judge(check, said[check.client] ?? outcome("", 1)), "trusts", check.client);
  }
});

test("judge: cargo also trusts what it then cannot read: an answer of a host that is no registry", () => {
  const said = outcome("error: missing field `dl` at line 1 column 592", 101);
  assert.equal(judge(checkOf("cargo"), said), "trusts");
});

test("judge: a client that could not connect, was cut short or is missing a module says nothing about trust", () => {
  for (const check of TRUST_CHECKS) {
    assert.equal(judge(check, outcome("Connection refused", 7)), "unclear", check.client);
    assert.equal(
      judge(check, { code: undefined, timedOut: true, output: "ANSWERED" }),
      "unclear",
      check.client,
    );
    assert.equal(judge(check, { code: undefined, timedOut: false, output: "" }), "unclear", check.client);
  }
  assert.equal(judge(checkOf("python httpx"), outcome("ABSENT\n", 0)), "absent");
});

test("TRUST_CHECKS: every client is asked for the very URL", () => {
  for (const { client, argv, env } of TRUST_CHECKS) {
    const target = { url: URL_OF_GATE, proxy: undefined };
    const whole = [...argv(target), ...Object.values(env?.(target) ?? {})];
    assert.ok(
      whole.some((text) => text.includes("gate.example")),
      client,
    );
  }
});

test("TRUST_CHECKS: clients that read no proxy variable are told of the proxy", () => {
  const target = { url: URL_OF_GATE, proxy: new URL("http://proxy.example:3128") };
  const defaults = { url: URL_OF_GATE, proxy: new URL("http://proxy.example") };
  assert.deepEqual(checkOf("openssl").argv(target).slice(-2), ["-proxy", "proxy.example:3128"]);
  assert.deepEqual(checkOf("openssl").argv(defaults).slice(-2), ["-proxy", "proxy.example:80"]);
  assert.deepEqual(checkOf("java").argv(target).slice(0, 2), [
    "-J-Dhttps.proxyHost=proxy.example",
    "-J-Dhttps.proxyPort=3128",
  ]);
});

test("TRUST_CHECKS: each one's variable is among those that are set; wget has none", () => {
  const known = trustEnvironment({ bundle: "/b", truststore: "/t" });
  for (const { client, variable } of TRUST_CHECKS) {
    assert.equal(variable === undefined || variable in known, true, client);
    assert.equal(variable === undefined, client === "wget");
  }
});

function checkOf(client: string): TrustCheck {
  return TRUST_CHECKS.find((check) => check.client === client) ?? assert.fail(client);
}

function outcome(output: string, code: number): Outcome {
  return { code, timedOut: false, output };
}
