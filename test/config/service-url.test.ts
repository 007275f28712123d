/** URLs of services: https, or clear text to this machine alone. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseYaml } from "../../src/config/parse.ts";
import { Report } from "../../src/config/report.ts";
import { readServiceUrl, serviceUrl } from "../../src/config/service-url.ts";

function read(text: string) {
  const report = new Report("/f");
  const parsed = parseYaml(JSON.stringify(text));
  assert.ok(parsed.ok);
  const endpoint = readServiceUrl(report, parsed.root, "`url`");
  return { endpoint, said: report.problems().map(({ message }) => message) };
}

test("readServiceUrl: a name, an address, a port, a path and a query", () => {
  const { endpoint } = read("https://Auth.Example.com:8443/a?b=c");
  assert.deepEqual(endpoint?.destination, { kind: "name", host: "auth.example.com", port: 8443 });
  assert.equal(endpoint.target, "/a?b=c");
  assert.equal(read("http://[::1]:9/").endpoint?.destination.kind, "address");
});

test("readServiceUrl: clear text to anybody else, and what is no URL", () => {
  assert.deepEqual(read("http://10.0.0.1/").said, [
    "`url` must begin with `https://`: a secret is sent there",
  ]);
  assert.deepEqual(read("ftp://a.example/").said, [
    "`url` must begin with `https://` and a host, without user, password or fragment",
  ]);
  assert.deepEqual(read("").said, ["`url` must not be empty"]);
});

test("serviceUrl: a default is a name", () => {
  assert.equal(serviceUrl("https://a.example/t").target, "/t");
  assert.throws(() => serviceUrl("https://10.0.0.1/"), TypeError);
});
