/** The parent proxy of a config file, and what cannot stand beside it. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references of the config look like those of JavaScript
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { formatRange } from "../../src/base/ip.ts";
import { loadConfigWithNetwork } from "../../src/config/load.ts";
import type { BypassSource } from "../../src/model/policy.ts";
import { configOf, linesOf, testProblems } from "./support.ts";

const HEAD = "version: 1\nnetwork: { allowlist: [ { domain: a.example } ] }\n";
const URL_FORM = "must be `http://` or `https://`, a host and a port, without user, password or path";
const PAST = "Each of `no_proxy` must be a name, `*.name`, an address, a range or `*`, not";
const BLIND =
  "warning: With `resolve: parent` the parent proxy resolves names, and no address is checked here: it has to refuse private ones";
const WILD =
  "A wildcard is not possible with `upstream.proxy.resolve: parent`, where no address is checked: list each name, or list the wildcard in `no_proxy`";

test("readParent: a URL alone resolves here, asks for no credentials, and leaves loopback alone", () => {
  const { policy } = configOf(`${HEAD}upstream: { proxy: "http://corp-proxy:3128" }\n`);
  assert.ok(policy.parent !== undefined);
  const { bypass, ...rest } = policy.parent;
  const destination = { kind: "name", host: "corp-proxy", port: 3128 };
  assert.deepEqual(rest, { scheme: "http", destination, auth: undefined, resolve: "local" });
  assert.deepEqual(bypass.map(written), ["127.0.0.0/8", "::1/128"]);
});

test("readParent: a whole map is read, its secret by reference, its list in every spelling", () => {
  const { policy, templates } = configOf(
    `${HEAD}upstream:\n  proxy:\n    url: https://[fd00::1]\n    auth: "\${env:PARENT}"\n    resolve: parent\n` +
      '    no_proxy: [a.example, "*.b.example", .c.example, 10.0.0.0/8, 11.0.0.1, "[2a0f::1]", "*"]\n',
  );
  assert.ok(policy.parent?.destination.kind === "address");
  const { scheme, auth, resolve, destination, bypass } = policy.parent;
  assert.deepEqual([scheme, auth, resolve], ["https", "upstream.proxy.auth", "parent"]);
  assert.deepEqual([destination.address.text, destination.port], ["fd00::1", 443]);
  assert.deepEqual(templates.get("upstream.proxy.auth"), [{ kind: "env", name: "PARENT" }]);
  const listed = ["a.example", "*.b.example", "*.c.example", "10.0.0.0/8", "11.0.0.1/32", "2a0f::1/128", "*"];
  assert.deepEqual(bypass.slice(2).map(written), listed);
});

testProblems("readParent", `${HEAD}upstream:\n  proxy:`, [
  ["an empty one is fine", "\n"],
  ["a URL of a private address is fine", ' "http://10.0.0.1:3128"\n'],
  ["a URL of loopback as an address is fine", ' "http://127.0.0.1:3128"\n'],
  ["no URL", " corp-proxy:3128\n", `4:10 \`proxy\` ${URL_FORM}`],
  ["a URL with a path", ' "http://corp-proxy:3128/x"\n', `4:10 \`proxy\` ${URL_FORM}`],
  ["a URL of a bad name", ' "http://a_-:1"\n', `4:10 \`proxy\` ${URL_FORM}`],
  ["a password, unquoted", ' "http://u:hunter22@corp-proxy:3128"\n', `4:10 \`proxy\` ${URL_FORM}`],
  [
    "localhost",
    ' "http://localhost:3128"\n',
    "4:10 `proxy` cannot be `localhost`; write `127.0.0.1` or `[::1]`",
  ],
  [
    "a link-local address",
    ' "http://169.254.1.1:3128"\n',
    "4:10 `proxy` is of a link-local address, which is never dialled",
  ],
  ["a list", " [x]\n", "4:10 `proxy` must be text, found a list"],
  [
    "no URL in the map, and a resolver of no kind",
    " { resolve: remote }\n",
    "4:10 `url` is missing here",
    "4:21 `resolve` must be `local` or `parent`",
  ],
  [
    "another key",
    " { url: http://p.example, x: 1 }\n",
    "4:35 Unknown key `x` in `proxy`; known are `url`, `auth`, `no_proxy`, `resolve`",
  ],
  [
    "entries that are none",
    " { url: http://p.example, no_proxy: [a b, .] }\n",
    `4:46 ${PAST} \`a b\``,
    `4:51 ${PAST} \`.\``,
  ],
  [
    "a secret written out",
    ' { url: http://p.example, auth: "user:pass" }\n',
    "4:41 warning: `auth` is a secret written out; use `${env:NAME}` or `${file:PATH}`",
  ],
]);

test("checkHandOver: a network of another file is held to the same", (context) => {
  const directory = mkdtempSync(join(tmpdir(), "sallyport-parent-"));
  context.after(() => rmSync(directory, { recursive: true }));
  const [file, network] = [join(directory, "c.yaml"), join(directory, "n.yaml")];
  writeFileSync(file, `${HEAD}upstream: { proxy: { url: http://p.example, resolve: parent } }\n`);
  writeFileSync(network, 'allowlist: [ { domain: "*.a.example" } ]\n');
  assert.deepEqual(linesOf(loadConfigWithNetwork(file, network, 1)), [`1:16 ${WILD}`]);
});

testProblems("checkHandOver", "version: 1\n", [
  [
    "wildcards are refused where the parent proxy resolves, in every allowlist",
    [
      'network: { allowlist: [ { domain: "*.a.example" }, { domain: b.example } ], denylist: [ { domain: "*.c.example" } ] }',
      'sandboxes: [ { id: x, source: [11.0.0.3], network: { allowlist: [ { domain: "*" } ] } } ]',
      "upstream: { proxy: { url: http://p.example, resolve: parent } }\n",
    ].join("\n"),
    `2:27 ${WILD}`,
    `3:69 ${WILD}`,
    `4:45 ${BLIND}`,
  ],
  [
    "wildcards that go past it are fine",
    'network: { allowlist: [ { domain: "*.a.example" } ] }\nupstream: { proxy: { url: http://p.example, resolve: parent, no_proxy: [.a.example] } }\n',
    `3:45 ${BLIND}`,
  ],
  [
    "wildcards are fine where names are resolved here",
    'network: { allowlist: [ { domain: "*.a.example" } ] }\nupstream: { proxy: http://p.example }\n',
  ],
]);

function written(entry: BypassSource): string {
  if (entry.kind === "range") return formatRange(entry.range);
  if (entry.kind === "any") return "*";
  return entry.kind === "exact" ? entry.host : `*.${entry.base}`;
}
