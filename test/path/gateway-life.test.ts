/** The gateway's rules from start to end: in force first, closed when the program is gone, away when told so. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import type { Box, Ran } from "../support/box.ts";
import { boxAddress, createBox, forward, run, shell } from "../support/box.ts";
import type { Gate } from "../support/gate.ts";
import { startGate } from "../support/gate.ts";
import { createOrigin, respond } from "../support/origin.ts";
import type { Packets } from "../support/packets.ts";
import { watchPackets } from "../support/packets.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, GATE_V4, PUBLIC_V4 } from "../support/private-internet.ts";
import { listenOnHost, nowhere, waysOut } from "../support/ways-out.ts";

const BOX = boxAddress(80, 2);
const MAIN = fileURLToPath(new URL("../../src/start.mjs", import.meta.url));
const PROGRAM = [process.execPath, "--disable-warning=ExperimentalWarning", MAIN];
const GATEWAY = { address: "[::]:15001", dns: "[::]:15053", interfaces: ["sbx0"] };

let internet: Internet;
let box: Box;
let packets: Packets;

before(async () => {
  internet = await createInternet();
  for (const name of ["api.test", "slow.test"]) internet.dns.set(name, { A: [PUBLIC_V4] });
  await createOrigin(internet, { answer: () => respond("ok") });
  await forward(internet);
  box = await createBox(internet, { link: "sbx0", net: 80, host: 2, mac: "02:00:00:00:00:11" });
  await listenOnHost(internet);
  packets = await watchPackets(internet);
});
after(() => internet.close());

function config(more: object = {}, source = [BOX.v4]): object {
  return {
    listen: { admin: "127.0.0.1:9464", gateway: { ...GATEWAY, ...more } },
    sandboxes: [{ id: "box", source, network: { allowlist: [{ domain: "api.test" }] } }],
  };
}

function start(more: object = {}): Promise<Gate> {
  return startGate(internet, config(more) as Parameters<typeof startGate>[1]);
}

function tables(): Promise<string> {
  return shell(internet.gate, ["nft list ruleset"]);
}

function sallyport(...args: readonly string[]): ReturnType<typeof run> {
  return run(internet.gate, [...PROGRAM, ...args]);
}

function get(url = "http://api.test/"): ReturnType<Box["run"]> {
  return box.run(["curl", "-sS", "--max-time", "2", url]);
}

async function reachesNothing(): Promise<void> {
  await packets.take();
  for (const url of ["http://api.test/", `http://${PUBLIC_V4}/`, `http://${GATE_V4}:9464/healthz`]) {
    assert.notEqual((await get(url)).code, 0, url);
  }
  const ways = { hosts: ["10.80.0.1", "fd80::1"], gate: "gone" } as const;
  const tried = await box.run(waysOut(ways));
  assert.equal(tried.stdout, nowhere(ways), tried.stderr);
  await box.run(["sh", "-c", `echo x | timeout 1 bash -c 'cat > /dev/udp/${PUBLIC_V4}/53'`]);
  await box.run(["ping", "-c1", "-W1", PUBLIC_V4]);
  assert.deepEqual(await packets.take(), []);
}

describe("the gateway's rules at the end", () => {
  test("still close everything after kill -9, and the next start takes over", async () => {
    const gate = await start();
    assert.equal((await get()).stdout, "ok");
    const before = await tables();
    gate.signal("SIGKILL");
    await gate.ended;
    assert.equal(await tables(), before);
    await reachesNothing();
    const next = await start();
    assert.equal((await get()).stdout, "ok");
    await next.stop();
  });

  test("after an orderly end redirect nothing and let nothing through; remove takes them away", async () => {
    const gate = await start();
    assert.equal((await get()).stdout, "ok");
    assert.match(await tables(), /redirect to :15001/);
    await gate.stop();
    assert.match(
      await tables(),
      /chain steering \{\n\t\ttype nat hook prerouting priority dstnat - 1; policy accept;\n\t\}/,
    );
    await reachesNothing();
    assert.equal((await sallyport("gateway", "remove")).code, 0);
    assert.equal(await tables(), "");
    assert.equal((await sallyport("gateway", "remove")).code, 0, "again is fine");
    await get(`http://${PUBLIC_V4}/`);
    assert.notDeepEqual(await packets.take(), [], "then it is a neighbour like any other");
  });
});

describe("the gateway's rules", () => {
  test("follow a reload", async () => {
    const gate = await start();
    assert.equal((await get()).stdout, "ok");
    const next = { version: 1, ca: { dir: "certs" }, ...config({}, [BOX.v4, "10.80.0.3"]), workers: 1 };
    const upstream = { ca_file: "root.pem", dns: { servers: ["11.0.0.53"] } };
    const sandboxes = next as unknown as { sandboxes: object[] };
    sandboxes.sandboxes[0] = { ...sandboxes.sandboxes[0], mac: "02:00:00:00:00:12" };
    await gate.reload(JSON.stringify({ ...next, upstream }));
    assert.match(await tables(), /02:00:00:00:00:12/);
    assert.equal((await get()).code, 28, "its address is another sandbox's now");
    await gate.stop();
    await sallyport("gateway", "remove");
  });

  test("that cannot be put in force stop the start, and nothing listens", async () => {
    const directory = join(internet.directory, "powerless");
    mkdirSync(directory);
    const file = join(directory, "sallyport.yaml");
    writeFileSync(file, JSON.stringify({ version: 1, ca: { dir: "certs" }, workers: 1, ...config() }));
    const command = ["setpriv", "--bounding-set", "-net_admin", "--inh-caps", "-net_admin", "--", ...PROGRAM];
    const child = internet.gate.spawn([...command, "serve", "--config", file], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    let said = "";
    child.stderr?.on("data", (bytes: Buffer) => {
      said += bytes.toString("utf8");
    });
    const [code] = (await once(child, "close")) as [number];
    assert.equal(code, 2, said);
    assert.match(
      said,
      /The firewall cannot be applied: nft: .*not permitted.*; it needs root or CAP_NET_ADMIN/,
    );
  });

  test("are what gateway show prints", async () => {
    const gate = await start();
    const shown = await sallyport("gateway", "show", "--config", gate.configFile);
    assert.equal(shown.code, 0, shown.stderr);
    for (const line of ["chain guard", "redirect to :15001", 'meta ibrname "sbx0" drop']) {
      assert.ok(shown.stdout.includes(line), line);
    }
    await gate.stop();
    await sallyport("gateway", "remove");
  });
});

describe("where the rules are the operator's", () => {
  test("print prints them and applies nothing", async () => {
    const gate = await start({ firewall: "print" });
    assert.match(gate.log, /chain guard \{/);
    assert.equal(await tables(), "");
    await gate.stop();
    assert.equal(await tables(), "");
  });

  test("none: what was not redirected, or came from elsewhere, is reset and recorded", async () => {
    const gate = await start({ firewall: "none" });
    assert.equal(await tables(), "");
    const refused = { listener: "gateway", reason: "identity-unknown" };
    assertReset(await get("http://10.80.0.1:15001/"));
    assert.equal((await gate.record(refused))["host"], null);
    // Another's rule on the side of the LAN makes no open proxy of it.
    await shell(internet.gate, [
      "nft add table ip other",
      "nft 'add chain ip other pre { type nat hook prerouting priority dstnat; }'",
      "nft add rule ip other pre iifname up0 tcp dport 80 redirect to :15001",
      "nft add rule ip other pre iifname sbx0 tcp dport 80 redirect to :15001",
    ]);
    const outside = ["curl", "-sS", "--max-time", "2", "--interface", PUBLIC_V4, `http://${GATE_V4}/`];
    assertReset(await run(internet.net, outside));
    assert.equal((await gate.record(refused))["host"], GATE_V4);
    // The same rule on the sandbox's side is as good as ours.
    const own = await get(`http://${PUBLIC_V4}/`);
    assert.equal(JSON.parse(own.stdout).error.reason, "no-name");
    await shell(internet.gate, ["nft delete table ip other"]);
    await gate.stop();
  });
});

/** Before or after curl has sent its request. */
function assertReset({ code, stderr }: Ran): void {
  assert.ok(code === 7 || code === 56, stderr);
}
