import assert from "node:assert/strict";
import { test } from "node:test";
import { isOverheard, readHttpEndpoint } from "../../src/config/http-endpoint.ts";
import { Report } from "../../src/config/report.ts";
import type { HttpEndpoint } from "../../src/model/policy.ts";

const AT = { line: 1, column: 1 };

function read(value: string | number): {
  readonly endpoint: HttpEndpoint | undefined;
  readonly failed: boolean;
} {
  const report = new Report("a.yaml");
  const endpoint = readHttpEndpoint(report, { kind: "scalar", value, source: String(value), at: AT });
  return { endpoint, failed: report.failed };
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
