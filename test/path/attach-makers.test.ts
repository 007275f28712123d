/** Whoever made the namespace, its only way out is `attach`: by name, with the secret, and by nothing else; killed it leaves none. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, describe, test } from "node:test";
import { SECRET } from "../support/gate.ts";
import { endOf, type JailSetup, setUpJail, spawnProgram } from "../support/jail.ts";
import { insideOf, MAKERS, type Made, wholeInside } from "../support/makers.ts";
import { valuesOf } from "../support/message-reader.ts";
import type { Origin } from "../support/origin.ts";
import { createOrigin } from "../support/origin.ts";
import type { Packets } from "../support/packets.ts";
import { watchPackets } from "../support/packets.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4, PUBLIC_V6 } from "../support/private-internet.ts";
import { listenOnHost, nowhere, waysOut } from "../support/ways-out.ts";

const CONFIG = {
  network: {
    allowlist: [
      { domain: "api.test", transform: { Authorization: `Bearer ${SECRET}` } },
      { domain: "v6.test" },
      { id: "db", domain: "db.test", ports: [5432], protocol: "tcp" },
    ],
  },
};
const CURL = ["curl", "-sS", "--max-time", "10", "--cacert", "/setup/certs/ca.pem"];
const ROOT = process.getuid?.() === 0;

let internet: Internet;
let secure: Origin;
let packets: Packets;
let setups: Readonly<Record<"ordinary" | "same", JailSetup>>;

before(async () => {
  internet = await createInternet();
  for (const name of ["api.test", "db.test"]) internet.dns.set(name, { A: [PUBLIC_V4] });
  internet.dns.set("v6.test", { AAAA: [PUBLIC_V6[0]] });
  secure = await createOrigin(internet, { tls: ["api.test"], bound: true });
  await createOrigin(internet, { tls: ["v6.test"], address: PUBLIC_V6[0] });
  await createOrigin(internet, { port: 8443 });
  await createOrigin(internet, { port: 5432, serve: ({ socket }) => void socket.end("server speaks first") });
  await listenOnHost(internet);
  packets = await watchPackets(internet);
  setups = { ordinary: setUpJail(internet, CONFIG), same: setUpJail(internet, CONFIG, "same") };
});
after(() => internet.close());

interface Attached {
  kill(signal: NodeJS.Signals): Promise<number>;
}

async function attach({ options }: Made, setup: JailSetup): Promise<Attached> {
  const child = spawnProgram(internet, setup, ["attach", "--config", setup.configFile, ...options]);
  const ended = endOf(internet, child);
  const attached = once(child.stderr ?? child, "data");
  const first = await Promise.race([attached, ended]);
  if (!Array.isArray(first)) throw new Error(first.stderr);
  assert.match(String(first[0]), /"Attached"/);
  return {
    kill: async (signal) => {
      child.kill(signal);
      return (await ended).code;
    },
  };
}

async function inside(made: Made, program: string): Promise<string> {
  return await insideOf(internet, made.pid, ["sh", "-c", program]);
}

function curl({ directory }: JailSetup, url: string, ca = "certs/ca.pem"): string {
  return `curl -sS --max-time 10 --cacert ${directory}/${ca} ${url}`;
}

/** With the secret where it is listed, IPv4 and IPv6, TLS and raw; in words where it is refused. */
async function goesOutByName(made: Made, setup: JailSetup): Promise<void> {
  const before = secure.requests.length;
  assert.equal(await inside(made, curl(setup, "https://api.test/")), "ok");
  const request = secure.requests[before];
  assert.ok(request);
  assert.deepEqual(valuesOf(request, "authorization"), [`Bearer ${internet.canary.secret}`]);
  assert.equal(await inside(made, curl(setup, "-6 https://v6.test/", "root.pem")), "ok");
  assert.equal(await inside(made, "bash --norc -c 'cat < /dev/tcp/db.test/5432'"), "server speaks first");
  await packets.take();
  for (const [url, reason] of [
    ["https://other.test/", "no-rule-matched"],
    ["http://other.test/", "no-rule-matched"],
    [`http://${PUBLIC_V4}/`, "no-name"],
    ["http://127.0.0.1/", "loopback"],
  ] as const) {
    const { error } = JSON.parse(await inside(made, curl(setup, url))) as { error: { reason: string } };
    assert.equal(error.reason, reason, url);
  }
  await inside(made, "getent ahosts stolen-data.exfil.test");
}

async function leadsNowhereElse(made: Made, gate: "alive" | "gone"): Promise<void> {
  assert.equal(await insideOf(internet, made.pid, waysOut({ gate })), nowhere({ gate }));
  assert.deepEqual(await packets.take(), []);
}

for (const user of ROOT ? (["same", "ordinary"] as const) : (["ordinary"] as const)) {
  describe(`attach, as ${user === "same" ? "root" : "an ordinary user"}, to what was made`, () => {
    for (const [name, make] of Object.entries(MAKERS)) {
      test(`by ${name}: out by name, nowhere else, and killed nowhere at all`, async () => {
        const setup = setups[user];
        const made = await make(internet, setup);
        const attached = await attach(made, setup);
        await goesOutByName(made, setup);
        await leadsNowhereElse(made, "alive");
        await attached.kill("SIGKILL");
        await leadsNowhereElse(made, "gone");
        // The listeners of the one that was killed are no hindrance to the next.
        const next = await attach(made, setup);
        assert.equal(await inside(made, curl(setup, "https://api.test/")), "ok");
        assert.equal(await next.kill("SIGTERM"), 0);
      });
    }
  });
}

test("attach: the list of other ways finds what is there, where nothing is in the way", async () => {
  const child = internet.gate.spawn(waysOut({ gate: "gone" }), { stdio: ["ignore", "pipe", "inherit"] });
  const { stdout } = await endOf(internet, child);
  for (const way of ["tcp", "udp"]) assert.match(stdout, new RegExp(`${way} 127.0.0.1 7777: b'the host`));
  assert.match(stdout, /tcp 11\.0\.0\.10 8443: b'HTTP/);
  assert.match(stdout, /udp 11\.0\.0\.53 53: /);
  assert.notDeepEqual(await packets.take(), []);
});

if (ROOT) {
  test("attach: an ordinary user without perl may enter what unshare made, and is told what bubblewrap's needs", async () => {
    const masked = ["unshare", "-m", "--propagation", "private", "sh", "-c"];
    const script = 'mount --bind /dev/null /usr/bin/perl && exec "$@"';
    const without = { ...setups.ordinary, prefix: [...masked, script, "x", ...setups.ordinary.prefix] };
    const made = await MAKERS.unshare(internet, setups.ordinary);
    const attached = await attach(made, without);
    assert.equal(await inside(made, curl(setups.ordinary, "https://api.test/")), "ok");
    await attached.kill("SIGTERM");
    const nested = await MAKERS.bubblewrap(internet, setups.ordinary);
    await assert.rejects(attach(nested, without), /be root, or the user who made it, with perl installed/);
  });
}

test("attach: a container's own programs go out, and are refused in words", async () => {
  const setup = setups.ordinary;
  const made = await MAKERS.podman(internet, setup);
  const attached = await attach(made, setup);
  const before = secure.requests.length;
  const get = async (url: string): Promise<string> => await wholeInside(internet, made.pid, [...CURL, url]);
  assert.equal(await get("https://api.test/"), "ok");
  const request = secure.requests[before];
  assert.ok(request);
  assert.deepEqual(valuesOf(request, "authorization"), [`Bearer ${internet.canary.secret}`]);
  assert.match(await get("https://other.test/"), /"reason":"no-rule-matched"/);
  assert.equal(await attached.kill("SIGTERM"), 0);
  assert.match(await get("http://api.test/"), /Could not resolve host/);
});
