/**
 * The transparency oracle for what caches care about: the public HTTP cache tests (package `http-cache-tests`) give the
 * same results through the gate as without it. Whether they are good results is not asked: neither side has a cache.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import type { Gate } from "../support/gate.ts";
import { SECRET, startGate } from "../support/gate.ts";
import { BASE_ENV } from "../support/namespace.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";
import { run } from "../support/programs.ts";

const SUITE = dirname(createRequire(import.meta.url).resolve("http-cache-tests/package.json"));
const CLIENT = fileURLToPath(new URL("../support/cache-tests-client.ts", import.meta.url));
const HOST = "origin.example.com";
/** Fewer would mean that it did not really run. */
const LEAST_RESULTS = 250;
const LEAST_PASSED = 100;
const SCHEMES = [
  { scheme: "http", port: "80", doing: "plain, in absolute form" },
  { scheme: "https", port: "443", doing: "intercepted, with a secret injected" },
] as const;

/** By the test's id: true, or an error's name and message. */
type Results = Readonly<Record<string, true | readonly string[]>>;

let internet: Internet;
let gate: Gate;

before(async () => {
  internet = await createInternet();
  internet.dns.set(HOST, { A: [PUBLIC_V4] });
  await Promise.all(SCHEMES.map(({ scheme, port }) => startServer(scheme, port)));
  gate = await startGate(internet, {
    network: {
      allowlist: [
        { domain: HOST, ports: [443], transform: { "X-Key": SECRET } },
        { domain: HOST, ports: [80] },
      ],
    },
  });
});
after(() => internet.close());

// Most of the time is the suite's own waiting, so both run at once.
describe("http-cache-tests give the same results direct and through the gate", { concurrency: true }, () => {
  for (const { scheme, doing } of SCHEMES) test(doing, () => compare(scheme));
});

async function compare(scheme: string): Promise<void> {
  const [direct, through] = await Promise.all([resultsOf(scheme), resultsOf(scheme, gate.caPem)]);
  const all = Object.values(direct);
  const passed = all.filter((result) => result === true);
  assert.ok(all.length >= LEAST_RESULTS && passed.length >= LEAST_PASSED, `${passed.length}/${all.length}`);
  assert.deepEqual(unexplained(direct, through), []);
  const relayed = gate.records.filter(({ host, verdict }) => host === HOST && verdict === "allow");
  assert.ok(relayed.length > 2 * LEAST_RESULTS, `${relayed.length} exchanges went through the gate`);
}

/** A finding that the gate changes, and what it becomes; all else has to be the same. */
const DIFFERENCES: readonly { readonly direct: RegExp; readonly through: RegExp }[] = [
  // The suite's server says with 999 that a request was not conditional, which without a cache none becomes. That is no
  // status of HTTP (RFC 9110 section 15), so of an upstream's it is a 502 (I07).
  { direct: /Request 2 should have been conditional/, through: /: Setup,Response 2 status is 502, not 200$/ },
  // A content coding that was made up, on an answer that is searched for the secret: it cannot be.
  {
    direct: /^(?:304-etag-update-response|headers-store)-Content-Encoding: /,
    through: /: Setup,Response 1 status is 502, not 200$/,
  },
  // The origin breaks off without an answer: the client gets a 502 to read, which the suite takes for an answer.
  { direct: /: TypeError,fetch failed$/, through: /,Response 2 (?:does not come|comes) from cache$/ },
  // A transfer coding that was made up: where the body ends is anybody's guess (I07).
  { direct: /^headers-store-Transfer-Encoding: /, through: /: Setup,Response 1 status is 502, not 200$/ },
];

function unexplained(direct: Results, through: Results): readonly string[] {
  const ids = new Set([...Object.keys(direct), ...Object.keys(through)]);
  return [...ids]
    .map((id) => ({ direct: `${id}: ${direct[id]}`, through: `${id}: ${through[id]}` }))
    .filter((one) => one.direct !== one.through)
    .filter(
      (one) => !DIFFERENCES.some((known) => known.direct.test(one.direct) && known.through.test(one.through)),
    )
    .map((one) => `${one.direct}; through the gate: ${one.through}`);
}

/** The suite's own server, as it comes; it takes its options as npm gives them. */
async function startServer(protocol: string, port: string): Promise<void> {
  const directory = join(internet.directory, `cache-tests-${protocol}`);
  mkdirSync(directory);
  const leaf = internet.authority.issue({ names: [HOST] });
  const [keyfile, certfile, pidfile] = ["key.pem", "cert.pem", "pid"].map((name) => join(directory, name));
  writeFileSync(String(keyfile), leaf.keyPem);
  writeFileSync(String(certfile), leaf.certPem);
  const options = Object.entries({ protocol, port, pidfile, keyfile, certfile });
  const env = Object.fromEntries(options.map(([name, value]) => [`npm_config_${name}`, String(value)]));
  const child = internet.net.spawn([process.execPath, join(SUITE, "server/server.mjs")], {
    cwd: SUITE,
    env: { ...BASE_ENV, ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  internet.onClose(() => child.kill());
  if (child.stdout === null) throw new Error("The server has no output");
  await once(createInterface({ input: child.stdout }), "line");
}

/** Without `ca`: direct. */
async function resultsOf(scheme: string, ca?: string): Promise<Results> {
  const roots = join(internet.directory, "cache-tests-root.pem");
  writeFileSync(roots, internet.authority.certPem);
  const env = { NODE_EXTRA_CA_CERTS: ca ?? roots, NODE_NO_WARNINGS: "1" };
  const proxy = ca === undefined ? [] : ["http://127.0.0.1:8080"];
  const address = ca === undefined ? [PUBLIC_V4] : ["-"];
  const command = [process.execPath, CLIENT, `${scheme}://${HOST}`, ...address, ...proxy];
  const { code, stdout, stderr } = await run(internet, command, { env });
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout);
}
