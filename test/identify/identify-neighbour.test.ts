/** Who sends by way of the gateway: address and interface must both be one sandbox's. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parseRange } from "../../src/base/ip.ts";
import { identifyNeighbour } from "../../src/identify/identify-neighbour.ts";
import type { AddressRange, SandboxSource } from "../../src/model/policy.ts";

const INTERFACES = ["sbx*", "br0"];

function sandbox(id: string, source: readonly string[], via?: string): SandboxSource {
  const ranges = source.map((text) => parseRange(text) as AddressRange);
  const network = { kind: "disabled" } as const;
  return { id, source: ranges, token: undefined, network, ...(via === undefined ? {} : { interface: via }) };
}

const SANDBOXES = [
  sandbox("a", ["10.80.0.2", "fd80::2"], "sbx0"),
  sandbox("b", ["10.81.0.0/24"]),
  sandbox("port", ["10.82.0.2"], "veth7"),
  sandbox("token", []),
];

function idOf(address: string, via: string | undefined, sandboxes = SANDBOXES): string | undefined {
  const client = identifyNeighbour({ address, interface: via }, sandboxes, INTERFACES);
  if (client !== undefined) assert.equal(client.address, address);
  return client === undefined ? undefined : (client.sandbox ?? "anybody");
}

test("identifyNeighbour: address and interface together", () => {
  assert.equal(idOf("10.80.0.2", "sbx0"), "a");
  assert.equal(idOf("fd80::2", "sbx0"), "a");
  assert.equal(idOf("10.80.0.2", "sbx1"), undefined);
  assert.equal(idOf("10.80.0.3", "sbx0"), undefined);
});

test("identifyNeighbour: a sandbox without an interface may come by any of the gateway's", () => {
  for (const via of ["sbx0", "sbx9", "br0"]) assert.equal(idOf("10.81.0.9", via), "b");
  for (const via of ["eth0", "lo", "", "br01"]) assert.equal(idOf("10.81.0.9", via), undefined, via);
});

test("identifyNeighbour: the port of a bridge is the firewall's to check", () => {
  assert.equal(idOf("10.82.0.2", "br0"), "port");
  assert.equal(idOf("10.82.0.2", "veth7"), undefined);
});

test("identifyNeighbour: of a datagram the address alone is known here", () => {
  assert.equal(idOf("10.80.0.2", undefined), "a");
  assert.equal(idOf("10.80.0.3", undefined), undefined);
});

test("identifyNeighbour: two that claim one address are nobody", () => {
  const both = [...SANDBOXES, sandbox("c", ["10.80.0.0/16"])];
  assert.equal(idOf("10.80.0.2", "sbx0", both), undefined);
  assert.equal(idOf("10.80.0.2", "sbx1", both), "c");
});

test("identifyNeighbour: where there are no sandboxes everybody is somebody, by the gateway's interfaces", () => {
  assert.equal(idOf("192.0.2.1", "sbx0", []), "anybody");
  assert.equal(idOf("192.0.2.1", "eth0", []), undefined);
});

test("identifyNeighbour: what is no address is nobody's", () => {
  fc.assert(fc.property(fc.string(), (text) => assert.equal(idOf(`x${text}`, "sbx0"), undefined)));
});
