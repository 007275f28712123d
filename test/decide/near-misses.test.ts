import assert from "node:assert/strict";
import { test } from "node:test";
import { nearMisses } from "../../src/decide/near-misses.ts";
import { ask, buildPolicy, type Entry, known } from "./build.ts";

const WIDER = "Wider entries are not asked: those of the most specific domain decide alone";

test("nearMisses: says that no entry covers the host", () => {
  assert.deepEqual(missesOf([{ domain: "a.example.com" }], "https://b.example.com/"), [
    "No entry of the allowlist covers the host",
  ]);
});

test("nearMisses: names what each entry of the domain lacked", () => {
  const entries: Entry[] = [
    { id: "read", domain: "a.example.com", methods: ["GET", "HEAD"] },
    { id: "alt", domain: "a.example.com", ports: [8443] },
    { id: "repos", domain: "a.example.com", paths: ["/repos/.*"] },
    { id: "raw", domain: "a.example.com", ports: [443], protocol: "tcp" },
  ];
  assert.deepEqual(missesOf(entries, "https://a.example.com/user", "DELETE"), [
    "Entry read covers the host, not this method (it has GET, HEAD)",
    "Entry alt covers the host, not this port (it has 8443)",
    "Entry repos covers the host, not this path",
    "Entry raw covers the host, for raw bytes alone (protocol: tcp)",
  ]);
});

test("nearMisses: an entry for HTTP is none for raw bytes", () => {
  const question = { ...seen("https://a.example.com/"), scheme: "tcp" as const };
  const policy = buildPolicy({ network: { allowlist: [{ domain: "a.example.com" }] } });
  assert.deepEqual(nearMisses(question, policy), [
    "Entry a.example.com covers the host, not for raw bytes (protocol: tcp)",
  ]);
});

test("nearMisses: says that a wider entry is not asked", () => {
  const entries: Entry[] = [
    { domain: "*.example.com" },
    { id: "read", domain: "a.example.com", methods: ["GET"] },
  ];
  assert.deepEqual(missesOf(entries, "https://a.example.com/", "PUT").at(-1), WIDER);
  assert.equal(missesOf(entries, "https://a.example.com/", "PUT").length, 2);
});

test("nearMisses: an address has its own entries alone", () => {
  assert.deepEqual(missesOf([{ domain: "93.184.216.34" }, { domain: "*" }], "http://93.184.216.34:81/"), [
    "Entry 93.184.216.34 covers the host, not this port (it has 80, 443)",
  ]);
});

test("nearMisses: names eight entries at most", () => {
  const entries = Array.from({ length: 20 }, (_, n) => ({
    id: `e${n}`,
    domain: "a.example.com",
    ports: [n + 1000],
  }));
  assert.equal(missesOf(entries, "https://a.example.com/").length, 8);
});

test("nearMisses: nothing is near where a denylist, a disabled network or an unknown sandbox decided", () => {
  const question = seen("https://a.example.com/");
  const denied = buildPolicy({ network: { denylist: [{ domain: "a.example.com" }] } });
  assert.deepEqual(nearMisses(question, denied), []);
  assert.deepEqual(nearMisses(question, buildPolicy({ network: "disabled" })), []);
  const client = { sandbox: "gone", address: "10.80.0.2" };
  assert.deepEqual(nearMisses(seen("https://a.example.com/", { client }), buildPolicy({})), []);
});

test("nearMisses: a sandbox has its own entries", () => {
  const sandboxes = [{ id: "box", network: { allowlist: [{ domain: "a.example.com", methods: ["PUT"] }] } }];
  const client = { sandbox: "box", address: "10.80.0.2" };
  const question = seen("https://a.example.com/", { client });
  assert.match(nearMisses(question, buildPolicy({ sandboxes })).join(), /not this method \(it has PUT\)/);
});

function missesOf(allowlist: readonly Entry[], url: string, method = "GET"): readonly string[] {
  return nearMisses(seen(url, { method }), buildPolicy({ network: { allowlist } }));
}

function seen(url: string, more: Parameters<typeof ask>[1] = {}): Parameters<typeof nearMisses>[0] {
  const question = ask(url, more);
  return { ...question, request: known(question.request, "no request") };
}
