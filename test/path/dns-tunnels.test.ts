/** Programs that carry data in DNS queries, against real servers of theirs outside: from no sandbox does a query arrive. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { boxAddress, createBox, forward } from "../support/box.ts";
import { startGate } from "../support/gate.ts";
import { endOf, type JailSetup, runJail, setUpJail, spawnProgram } from "../support/jail.ts";
import { MAKERS } from "../support/makers.ts";
import { BASE_ENV, unrefAll } from "../support/namespace.ts";
import type { Packets } from "../support/packets.ts";
import { watchPackets } from "../support/packets.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet } from "../support/private-internet.ts";

const IODINED = "11.0.0.77";
const DNS2TCPD = "11.0.0.78";
/** The very zone is allowed: whoever may ask for a name's address may not ask its servers anything. */
const NETWORK = { allowlist: [{ domain: "*.iodine.test" }, { domain: "*.dns2tcp.test" }] };
const ROOT = process.getuid?.() === 0;

interface Server {
  /** What it said of queries. */
  readonly said: () => string;
}

let internet: Internet;
let packets: Packets;
let setup: JailSetup;
let iodined: Server;
let dns2tcpd: Server;

before(async () => {
  internet = await createInternet();
  packets = await watchPackets(internet);
  setup = setUpJail(internet, { network: NETWORK }, "same");
  const listening = ["-f", "-c", "-DD", "-l", IODINED, "-P", "secret", "10.99.0.1", "iodine.test"];
  iodined = await serve(["iodined", ...listening], /Listening to dns|tun/);
  const config = join(internet.directory, "dns2tcpd.conf");
  const resources = "key = secret\nresources = inside:127.0.0.1:22\n";
  writeFileSync(config, `listen = ${DNS2TCPD}\nport = 53\ndomain = dns2tcp.test\n${resources}`);
  dns2tcpd = await serve(["dns2tcpd", "-F", "-d", "3", "-f", config], /Starting Server/);
});
after(() => internet.close());

async function serve(command: readonly string[], started: RegExp): Promise<Server> {
  const child = internet.net.spawn(command, { stdio: ["ignore", "pipe", "pipe"] });
  internet.onClose(() => child.kill("SIGKILL"));
  let text = "";
  await new Promise<void>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on("data", (bytes: Buffer) => {
        text += bytes.toString("latin1");
        if (started.test(text)) resolve();
      });
    }
    child.once("exit", () => reject(new Error(`${command[0]} ended: ${text}`)));
  });
  unrefAll(child);
  return { said: () => text };
}

/** Each client on its own: what it tries by itself, and the types that it may be told to use. At most so many seconds. */
function clients(nameServers: readonly string[]): string {
  const iodine = (server: string, ...options: readonly string[]): string =>
    `timeout -s KILL 8 iodine -f -P secret ${options.join(" ")} ${server} iodine.test`;
  const dns2tcp = (server: string, type: string): string =>
    `timeout -s KILL 8 dns2tcpc -z dns2tcp.test -k secret -d 2 -T ${type} ${server}`;
  const all = nameServers.flatMap((server) => [
    iodine(server),
    iodine(server, "-r", "-T", "TXT"),
    iodine(server, "-r", "-T", "CNAME"),
    iodine(server, "-r", "-T", "A"),
    dns2tcp(server, "TXT"),
    dns2tcp(server, "KEY"),
  ]);
  return `${all.map((command) => `(${command} 2>&1) &`).join("\n")}\nwait`;
}

const TUNNEL = /Connection setup complete|Available connection/;

/** Nothing came of it, here or there. */
async function nothingGotOut(output: string, before: readonly number[]): Promise<void> {
  assert.match(output, /iodine/);
  assert.match(output, /Request challenge|No response/);
  assert.doesNotMatch(output, TUNNEL);
  assert.deepEqual(await packets.take(), []);
  assert.deepEqual(queries(), before);
}

/** As their servers tell them. */
function queries(): readonly number[] {
  return [iodined, dns2tcpd].map(({ said }) => said().match(/^RX:|Receive query/gm)?.length ?? 0);
}

describe("programs that tunnel through DNS", () => {
  test("do so where nothing is in their way", async () => {
    const direct = clients([IODINED, DNS2TCPD]);
    const child = internet.gate.spawn(["sh", "-c", direct], { stdio: ["ignore", "pipe", "inherit"] });
    const { stdout } = await endOf(internet, child);
    assert.match(stdout, /Available connection/);
    assert.notEqual(queries()[1], 0);
    // A machine without /dev/net/tun lets iodine do nothing at all, here or anywhere.
    assert.match(stdout, /Connection setup complete|tun/);
    assert.notDeepEqual(await packets.take(), []);
  });

  test("get nothing out of a jail", async () => {
    const before = queries();
    const ordinary = setUpJail(internet, { network: NETWORK });
    const servers = ["198.18.0.1", DNS2TCPD];
    const ended = await runJail(internet, ordinary, ["sh", "-c", clients(servers)]);
    await nothingGotOut(ended.stdout, before);
    const dns = ended.records.filter(({ listener }) => listener === "dns");
    assert.notEqual(dns.length, 0);
  });

  test("get nothing out of a namespace that is attached to, though they are root there", async () => {
    const before = queries();
    const made = await MAKERS.unshare(internet, setup);
    const child = spawnProgram(internet, setup, ["attach", "--config", setup.configFile, ...made.options]);
    const ended = endOf(internet, child);
    await once(child.stderr ?? child, "data");
    const enter = ["-t", `${made.pid}`, "-n", ...(ROOT ? [] : ["-U", "--preserve-credentials"])];
    const output = await outputOf(["nsenter", ...enter, "--", "sh", "-c", clients(["9.9.9.9", IODINED])]);
    child.kill("SIGTERM");
    assert.equal((await ended).code, 0);
    await nothingGotOut(output, before);
  });

  test("get nothing out of a namespace behind the gateway", async () => {
    await forward(internet);
    const box = await createBox(internet, { link: "sbx0", net: 80, host: 2, mac: "02:00:00:00:00:11" });
    const gateway = { address: "[::]:15001", dns: "[::]:15053", interfaces: ["sbx0"] };
    const gate = await startGate(internet, {
      listen: { admin: "127.0.0.1:9464", gateway },
      sandboxes: [{ id: "box", source: [boxAddress(80, 2).v4], network: NETWORK }],
    });
    await packets.take();
    const before = queries();
    const { stdout } = await box.run(["sh", "-c", clients(["9.9.9.9", IODINED])]);
    await nothingGotOut(stdout, before);
    assert.equal((await gate.record({ listener: "dns" }))["sandbox"], "box");
    await gate.stop();
  });
});

async function outputOf([file = "", ...args]: readonly string[]): Promise<string> {
  const child: ChildProcess = spawn(file, args, { env: BASE_ENV, stdio: ["ignore", "pipe", "pipe"] });
  const { stdout, stderr } = await endOf(internet, child);
  return stdout + stderr;
}
