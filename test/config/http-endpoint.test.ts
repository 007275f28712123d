/** URLs of what the gate itself calls: hooks anywhere, services over https or on this machine alone. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { isOverheard, readHttpEndpoint, readServiceUrl, serviceUrl } from "../../src/config/http-endpoint.ts";
import { Report } from "../../src/config/report.ts";

const AT = { line: 1, column: 1 };

function read(value: string | number) {
  const report = new Report("a.yaml");
  const endpoint = readHttpEndpoint(report, { kind: "scalar", value, source: String(value), at: AT });
  return { endpoint, failed: report.failed };
}

function readService(value: string) {
  const report = new Report("a.yaml");
  const endpoint = readServiceUrl(report, { kind: "scalar", value, source: "", at: AT }, "`here`");
  return { endpoint, said: report.problems().map(({ message }) => message) };
}

test("readHttpEndpoint reads names and addresses, and says what is none", () => {
  assert.deepEqual(read("https://a.example:8443/x?y").endpoint, {
    kind: "http",
    scheme: "https",
    destination: { kind: "name", host: "a.example", port: 8443 },
    target: "/x?y",
  });
  assert.equal(read("http://[::1]:9000/").endpoint?.destination.kind, "address");
  for (const wrong of ["a.example", "ftp://a.example/", "https://u:p@a.example/", 7]) {
    assert.deepEqual(read(wrong), { endpoint: undefined, failed: true }, String(wrong));
  }
});

test("isOverheard tells clear text that leaves this machine", () => {
  const all = ["https://a.example/", "http://127.0.0.1/", "http://a.example/", "http://10.0.0.1/"];
  const overheard = all.map((url) => {
    const { endpoint } = read(url);
    return endpoint !== undefined && isOverheard(endpoint);
  });
  assert.deepEqual(overheard, [false, false, true, true]);
});

test("readServiceUrl: a name, an address, a port, a path and a query", () => {
  const { endpoint } = readService("https://Auth.Example.com:8443/a?b=c");
  assert.deepEqual(endpoint?.destination, { kind: "name", host: "auth.example.com", port: 8443 });
  assert.equal(endpoint.target, "/a?b=c");
  assert.equal(readService("http://[::1]:9/").endpoint?.destination.kind, "address");
});

test("readServiceUrl: clear text to anybody else, and what is no URL", () => {
  assert.deepEqual(readService("http://10.0.0.1/").said, [
    "`here` must begin with `https://`: a secret is sent there",
  ]);
  assert.deepEqual(readService("ftp://a.example/").said, [
    "`here` must begin with `https://` and a host, without user, password or fragment",
  ]);
  assert.deepEqual(readService("").said, ["`here` must not be empty"]);
});

test("serviceUrl reads a default", () => {
  assert.equal(serviceUrl("https://a.example/t").target, "/t");
});
