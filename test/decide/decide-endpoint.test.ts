import assert from "node:assert/strict";
import { test } from "node:test";
import { parseIpAddress } from "../../src/base/ip.ts";
import {
  decideEndpointAddress,
  decideParentAddress,
  permitEndpoint,
} from "../../src/decide/decide-endpoint.ts";
import type { IpAddress } from "../../src/model/exchange.ts";
import { ask, buildPolicy } from "./build.ts";

const POLICY = buildPolicy({ upstream: { allow_ranges: ["10.20.0.0/16"], deny_ranges: ["9.9.9.0/24"] } });

const CASES: readonly (readonly [url: string, address: string, expected: string])[] = [
  ["https://policy.example.com/", "11.0.0.1", "allow"],
  ["https://policy.example.com/", "10.20.0.5", "allow"],
  ["https://policy.example.com/", "10.30.0.5", "address-not-public"],
  ["https://policy.example.com/", "127.0.0.1", "loopback"],
  ["https://policy.example.com/", "9.9.9.9", "address-denied"],
  ["https://policy.example.com/", "169.254.169.254", "address-not-public"],
  ["http://127.0.0.1:9000/", "127.0.0.1", "allow"],
  ["http://10.30.0.5/", "10.30.0.5", "allow"],
  ["http://100.64.0.1/", "100.64.0.1", "allow"],
  ["http://169.254.169.254/", "169.254.169.254", "address-not-public"],
  ["http://168.63.129.16/", "168.63.129.16", "address-not-public"],
  ["http://224.0.0.1/", "224.0.0.1", "address-not-public"],
];

for (const [url, address, expected] of CASES) {
  test(`decideEndpointAddress: ${url} at ${address} is ${expected}`, () => {
    const { destination, scheme } = ask(url);
    const permit = permitEndpoint(destination, scheme);
    const decision = decideEndpointAddress(permit, parseIpAddress(address) as IpAddress, POLICY);
    if (decision.verdict === "deny") assert.equal(decision.reason, expected);
    else {
      assert.equal(expected, "allow");
      assert.deepEqual([decision.dialable.address.text, decision.dialable.port], [address, destination.port]);
    }
  });
}

test("permitEndpoint: it is nobody's, and injects nothing", () => {
  const { destination } = ask("https://policy.example.com/");
  const { client, rule, injections } = permitEndpoint(destination, "https");
  assert.deepEqual([client.sandbox, rule, injections], [undefined, undefined, []]);
});

const PARENT_CASES: readonly (readonly [url: string, address: string, expected: string])[] = [
  ["http://corp-proxy.example:3128/", "11.0.0.1", "allow"],
  ["http://corp-proxy.example:3128/", "10.30.0.5", "allow"],
  ["http://corp-proxy.example:3128/", "127.0.0.1", "loopback"],
  ["http://corp-proxy.example:3128/", "169.254.169.254", "address-not-public"],
  ["http://127.0.0.1:3128/", "127.0.0.1", "allow"],
  ["http://169.254.169.254/", "169.254.169.254", "address-not-public"],
];

for (const [url, address, expected] of PARENT_CASES) {
  test(`decideParentAddress: ${url} at ${address} is ${expected}`, () => {
    const decision = decideParentAddress(ask(url).destination, parseIpAddress(address) as IpAddress);
    assert.equal(decision.verdict === "deny" ? decision.reason : "allow", expected);
  });
}
