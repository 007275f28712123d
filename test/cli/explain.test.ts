import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { folder, sallyport } from "./program.ts";

const CONFIG = `version: 1
network:
  allowlist:
    - { id: gh, domain: api.github.com, methods: [GET], transform: { Authorization: "Bearer \${env:NONE}" } }
    - domain: "*.example.com"
    - { id: lost, domain: lost.example.org, transform: { X-Key: "\${file:lost.key}" } }
    - { domain: internal.example.org }
    - { domain: open.example.org, private: true }
    - { id: db, domain: db.example.net, ports: [5432], protocol: tcp }
  denylist: [ { domain: bad.example.com } ]
upstream:
  allow_ranges: ["10.20.0.0/16"]
  dns: { hosts: { loop.example.com: [127.0.0.1], internal.example.org: [10.99.0.1], open.example.org: [10.20.0.5] } }
`;
const SANDBOXES = `version: 1
sandboxes:
  - { id: one, source: [10.0.0.2], network: { allowlist: [ { domain: one.example } ] } }
`;
const PARENT = `version: 1
network: { allowlist: [ { domain: api.example.com }, { domain: intranet }, { domain: here.example.com }, { domain: past.example.com } ] }
upstream:
  dns: { hosts: { here.example.com: [11.0.0.1] } }
  proxy: { url: "http://corp-proxy:3128", resolve: parent, no_proxy: [past.example.com] }
`;
const dir = folder({ "p.yaml": PARENT, "c.yaml": CONFIG, "s.yaml": SANDBOXES, "bad.yaml": "version: 2\n" });
const C = ["--config", join(dir, "c.yaml")];
const ENV = { NONE: "a-token-that-nobody-sees" };
const S = ["--config", join(dir, "s.yaml")];

const KEYS = ["url", "verdict", "reason", "rule", "interception", "injected", "notes"];

interface Line {
  readonly url: string;
  readonly verdict: string;
  readonly reason: string;
  readonly rule: string | null;
  readonly interception: string;
  readonly injected: readonly string[];
}

test("explain: an allowance is 0, with rule, interception and the names of what is injected", async () => {
  const { code, stdout, stderr } = await sallyport(["explain", "https://api.github.com/user", ...C], {
    env: ENV,
  });
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^allow {2}https:\/\/api\.github\.com\/user$/m);
  assert.match(stdout, /^ {2}reason +rule-allows$/m);
  assert.match(stdout, /^ {2}rule +gh$/m);
  assert.match(stdout, /^ {2}injected +Authorization$/m);
});

test("explain: a denial is 3, in text and in JSON", async () => {
  const cases = [
    [["https://elsewhere.example/"], "no-rule-matched", null],
    [["https://bad.example.com/"], "rule-denies", "bad.example.com"],
    [["https://api.github.com/user", "--method", "DELETE"], "no-rule-matched", null],
    [["http://api.github.com/user"], "plaintext-secret", "gh"],
    [["https://127.0.0.1/"], "loopback", null],
    [["tcp://db.example.net:22"], "no-rule-matched", null],
  ] as const;
  for (const [args, reason, rule] of cases) {
    const json = await sallyport(["explain", ...args, ...C, "--json"]);
    const line = JSON.parse(json.stdout) as Line;
    assert.equal(json.code, 3, args.join(" "));
    assert.equal(line.verdict, "deny");
    assert.equal(line.reason, reason);
    assert.equal(line.url, args[0]);
    assert.deepEqual(Object.keys(line), KEYS);
    assert.equal(line.rule, rule);
  }
});

test("explain: a secret that is missing here is noted with its place, and a denial with --with-secrets", async () => {
  const cases = [
    ["https://api.github.com/user", "gh", /Environment variable `NONE` is not set/],
    ["https://lost.example.org/", "lost", /File `.*lost\.key` cannot be read/],
  ] as const;
  for (const [url, rule, problem] of cases) {
    const { code, stdout } = await sallyport(["explain", url, "--with-secrets", ...C]);
    assert.equal(code, 3);
    assert.match(stdout, /^deny .*\n {2}reason +secret-unavailable$/m);
    assert.match(stdout, new RegExp(`^ {2}rule +${rule}$`, "m"));
    assert.match(stdout, /^ {2}injected +-$/m);
    assert.match(stdout, problem);
    const noted = await sallyport(["explain", url, ...C]);
    assert.equal(noted.code, 0);
    assert.match(noted.stdout, /^ {2}reason +rule-allows$/m);
    assert.match(noted.stdout, /^ {2}injected +[A-Z]/m);
    assert.match(noted.stdout, problem);
    assert.match(noted.stdout, /Where the gate lacks it too, it denies: secret-unavailable$/m);
  }
  const asGate = ["explain", "https://api.github.com/user", "--with-secrets", ...C];
  const there = await sallyport(asGate, { env: ENV });
  assert.equal(there.code, 0);
  assert.doesNotMatch(there.stdout, /a-token-that/);
});

test("explain: of raw bytes it says that nothing in them is looked at", async () => {
  const { stdout } = await sallyport(["explain", "tcp://db.example.net:5432", ...C]);
  assert.match(stdout, /note +Raw bytes, relayed unseen: nothing in them is checked, replaced or put in$/m);
  assert.match(stdout, /note +Where they begin a TLS handshake, its server name must be this one$/m);
  assert.doesNotMatch(stdout, /Host/);
});

test("explain: addresses that the config itself gives are judged", async () => {
  const answers = await lines(
    "https://loop.example.com/\nhttps://internal.example.org/\nhttps://open.example.org/\ntcp://db.example.net:5432\n",
    C,
  );
  assert.deepEqual(
    answers.found.map(({ verdict, reason }) => [verdict, reason]),
    [
      ["deny", "loopback"],
      ["deny", "address-not-public"],
      ["allow", "rule-allows"],
      ["allow", "rule-allows"],
    ],
  );
  assert.equal(answers.code, 3);
});

test("explain: - reads lines of URL or METHOD URL, and skips empty ones", async () => {
  const asked = "https://api.github.com/a\n\n  DELETE   https://api.github.com/a \nhttps://x.example.com/\n";
  const { code, found } = await lines(asked, C);
  assert.deepEqual(
    found.map(({ verdict }) => verdict),
    ["allow", "deny", "allow"],
  );
  assert.equal(code, 3);
  assert.equal((await lines("https://x.example.com/\n", C)).code, 0);
});

test("explain: where the config names sandboxes, who asks has to be said, and to be one", async () => {
  const nobody = await sallyport(["explain", "https://one.example/", ...S]);
  assert.equal(nobody.code, 3);
  assert.match(nobody.stdout, /identity-unknown/);
  assert.match(nobody.stdout, /--sandbox/);
  assert.equal((await sallyport(["explain", "https://one.example/", "--sandbox", "one", ...S])).code, 0);
  const unknown = await sallyport(["explain", "https://one.example/", "--sandbox", "two", ...S]);
  assert.equal(unknown.code, 2);
  assert.match(unknown.stderr, /names no sandbox "two"; it names one$/m);
});

test("explain: what is no URL of a request, or no config, is 2", async () => {
  for (const url of [
    "one.example",
    "ftp://one.example/",
    "https://",
    "https://a b/",
    "tcp://db.example.net",
  ]) {
    const { code, stderr, stdout } = await sallyport(["explain", url, ...C]);
    assert.equal(code, 2, url);
    assert.match(stderr, /^sallyport: /);
    assert.equal(stdout, "");
    if (!url.includes("/")) assert.match(stderr, /begins with https:/);
  }
  assert.equal((await sallyport(["explain", ...C])).code, 2);
  const bad = await sallyport(["explain", "https://one.example/", "--config", join(dir, "bad.yaml")]);
  assert.equal(bad.code, 2);
  assert.match(bad.stderr, /bad\.yaml:1:10: /);
});

async function lines(
  stdin: string,
  config: readonly string[],
): Promise<{ code: number | undefined; found: Line[] }> {
  const { code, stdout } = await sallyport(["explain", "-", "--json", ...config], { stdin, env: ENV });
  return {
    code,
    found: stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Line),
  };
}

test("explain: it says who dials and who resolves where there is a parent proxy", async () => {
  const cases = [
    ["https://api.example.com/", 0, /note +It leaves by the parent proxy, which resolves the name/],
    [
      "https://here.example.com/",
      0,
      /note +It leaves by the parent proxy, to an address that is vetted here/,
    ],
    ["https://past.example.com/", 0, /note +It goes past the parent proxy/],
    ["http://intranet/", 3, /reason +address-not-public\n(?:.*\n)*? +note +A name of this kind is not given/],
  ] as const;
  for (const [url, code, expected] of cases) {
    const explained = await sallyport(["explain", url, "--config", join(dir, "p.yaml")]);
    assert.equal(explained.code, code, explained.stderr);
    assert.match(explained.stdout, expected);
  }
});

test("explain: a name may be written as people write it; a path is written as it is sent", async () => {
  const dir = folder({ "c.yaml": 'version: 1\nnetwork: { allowlist: [ { domain: "bücher.example" } ] }\n' });
  const config = ["--config", join(dir, "c.yaml")];
  for (const url of [
    "https://bücher.example/",
    "https://BÜCHER.example:443/x?y",
    "https://xn--bcher-kva.example/",
  ]) {
    const { code, stdout, stderr } = await sallyport(["explain", url, "--json", ...config]);
    assert.equal(code, 0, stderr);
    const { rule, url: asked } = JSON.parse(Buffer.from(stdout, "latin1").toString()) as Line;
    assert.equal(asked, url);
    assert.equal(rule, "bücher.example");
  }
  for (const url of ["https://bücher.example/é", "https://bücher.example/#x", "https://a b.example/"]) {
    const { code, stderr } = await sallyport(["explain", url, ...config]);
    assert.equal(code, 2);
    assert.match(stderr, /percent-encode the path, and leave out the fragment/);
  }
});
