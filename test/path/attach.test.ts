/** Namespaces that somebody else made go out through `attach` and `serve`, and through nothing else. */
import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { after, before, describe, test } from "node:test";
import { SECRET, startGate } from "../support/gate.ts";
import { type Ended, endOf, type JailSetup, setUpJail, spawnProgram } from "../support/jail.ts";
import { valuesOf } from "../support/message-reader.ts";
import { BASE_ENV, unrefAll } from "../support/namespace.ts";
import type { Origin } from "../support/origin.ts";
import { createOrigin } from "../support/origin.ts";
import type { Packets } from "../support/packets.ts";
import { watchPackets } from "../support/packets.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";

const NETWORK = { allowlist: [{ domain: "api.test", transform: { Authorization: `Bearer ${SECRET}` } }] };
const CONFIG = { network: NETWORK, sandboxes: [{ id: "box", network: { allowlist: [] } }] };

let internet: Internet;
let secure: Origin;
let packets: Packets;
let setup: JailSetup;

before(async () => {
  internet = await createInternet();
  internet.dns.set("api.test", { A: [PUBLIC_V4] });
  secure = await createOrigin(internet, { tls: ["api.test"], bound: true });
  packets = await watchPackets(internet);
  setup = setUpJail(internet, CONFIG);
});
after(() => internet.close());

/** A process of the ordinary user's in a network of its own; resolves with its pid. */
async function sandboxOf(command: readonly string[], prefix = setup.prefix): Promise<number> {
  const [file = "", ...args] = [...prefix, ...command, "sh", "-c", "echo $$; exec sleep 1000"];
  const child = spawn(file, args, { env: BASE_ENV, stdio: ["ignore", "pipe", "inherit"] });
  internet.onClose(() => child.kill("SIGKILL"));
  await once(createInterface({ input: child.stdout }), "line");
  unrefAll(child);
  return child.pid ?? 0;
}

interface Attached {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
}

/** Resolves once the program says that it is attached, or with its end. */
async function attach(options: readonly string[], user: JailSetup = setup): Promise<Attached> {
  const child = spawnProgram(internet, user, ["attach", "--config", user.configFile, ...options]);
  const ended = endOf(internet, child);
  const attached = new Promise((resolve) => {
    child.stderr?.on("data", (bytes: Buffer) => {
      if (bytes.includes('"Attached"')) resolve(undefined);
    });
  });
  await Promise.race([attached, ended]);
  return { child, ended };
}

async function inside(pid: number, program: string): Promise<string> {
  const root = process.getuid?.() === 0;
  const enter = ["-t", `${pid}`, "-n", ...(root ? [] : ["-U", "--preserve-credentials"])];
  const child = spawn("nsenter", [...enter, "--", "sh", "-c", program], { env: BASE_ENV });
  const { stdout, stderr } = await endOf(internet, child);
  return stdout + stderr;
}

function curl(host: string): string {
  return `curl -sS --max-time 10 --cacert ${setup.directory}/certs/ca.pem https://${host}/`;
}

describe("attach", () => {
  test("makes a namespace go out by name, for its ordinary owner, until it ends", async () => {
    const pid = await sandboxOf(["unshare", "-Urn"]);
    const { ended } = await attach(["--pid", `${pid}`]);
    const before = secure.requests.length;
    assert.equal(await inside(pid, curl("api.test")), "ok");
    const request = secure.requests[before];
    assert.ok(request);
    assert.deepEqual(valuesOf(request, "authorization"), [`Bearer ${internet.canary.secret}`]);
    await packets.take();
    assert.match(await inside(pid, curl("other.test")), /"reason":"no-rule-matched"/);
    assert.match(await inside(pid, "curl -sS http://1.2.3.4:8443/"), /Couldn't connect/);
    assert.deepEqual(await packets.take(), []);
    process.kill(pid, "SIGKILL");
    assert.equal((await ended).code, 0);
  });

  test("takes the network of a sandbox, is ended by a signal, and killed leaves nothing", async () => {
    const pid = await sandboxOf(["unshare", "-Urn"]);
    const first = await attach(["--pid", `${pid}`, "--sandbox", "box"]);
    assert.match(await inside(pid, curl("api.test")), /"reason":"no-rule-matched"/);
    first.child.kill("SIGTERM");
    const { code, records } = await first.ended;
    assert.equal(code, 0);
    assert.deepEqual(new Set(records.map(({ sandbox }) => sandbox)), new Set(["box"]));
    const second = await attach(["--pid", `${pid}`]);
    assert.equal(await inside(pid, curl("api.test")), "ok");
    second.child.kill("SIGKILL");
    await second.ended;
    const dead = "curl -sS --max-time 5 --resolve api.test:443:1.2.3.4 https://api.test/";
    assert.match(await inside(pid, dead), /Couldn't connect/);
  });
});

describe("attach, where it is not so simple,", () => {
  test("refuses a namespace with another way out, and names it; --force takes it", async () => {
    const pid = await sandboxOf(["unshare", "-Urn"]);
    const root = process.getuid?.() === 0;
    const enter = ["-t", `${pid}`, "-n", ...(root ? [] : ["-U", "--preserve-credentials"])];
    const [code] = await once(
      spawn(
        "nsenter",
        [...enter, "--", "ip", "link", "add", "way0", "type", "veth", "peer", "name", "way1"],
        { stdio: "inherit" },
      ),
      "exit",
    );
    assert.equal(code, 0);
    const refused = await (await attach(["--pid", `${pid}`])).ended;
    assert.equal(refused.code, 2);
    assert.match(refused.stderr, /^sallyport: The namespace has other ways out: way[01], way[01]\. /m);
    const { child, ended } = await attach(["--pid", `${pid}`, "--force"]);
    assert.equal(await inside(pid, curl("api.test")), "ok");
    child.kill("SIGINT");
    assert.equal((await ended).code, 0);
  });

  test("says what is not there, and what it may not enter", async () => {
    const gone = await (await attach(["--pid", "4194305"])).ended;
    assert.deepEqual([gone.code, gone.stderr.trim()], [2, "sallyport: There is no process 4194305"]);
    const nowhere = await (await attach(["--netns", "/no/such"])).ended;
    assert.deepEqual(
      [nowhere.code, nowhere.stderr.trim()],
      [2, "sallyport: There is no namespace at /no/such"],
    );
    for (const options of [[], ["--pid", "1", "--netns", "/x"], ["--pid", "x"], ["--pid", "1", "x"]]) {
      assert.equal((await (await attach(options)).ended).code, 2);
    }
    const own = await (await attach(["--pid", `${process.pid}`])).ended;
    assert.equal(own.code, 2);
  });
});

describe("serve", () => {
  test("attaches to a sandbox's namespace when it is there, when it returns, and anew where ports are added", async () => {
    const network = { allowlist: [{ domain: "api.test", intercept: "always" }] };
    const holder = await sandboxOf(["unshare", "-n"], []);
    const path = `${internet.directory}/box`;
    const config = (ports: readonly number[]): Record<string, unknown> => ({
      sandboxes: [
        {
          id: "box",
          netns: path,
          network: { allowlist: [...network.allowlist, { domain: "b.test", ports }] },
        },
      ],
    });
    const gate = await startGate(internet, config([80]));
    const link = async (target: number): Promise<void> => {
      const [code] = await once(spawn("ln", ["-sfn", `/proc/${target}/ns/net`, path]), "exit");
      assert.equal(code, 0);
    };
    await link(holder);
    await gate.untilLogged(/Attached to a namespace.*ports="53 80 443"/);
    const ask = `curl -sS --max-time 10 --cacert ${gate.caPem} https://other.test/`;
    assert.match(await inside(holder, ask), /"reason":"no-rule-matched"/);
    assert.equal((await gate.record({ listener: "jail" }))["sandbox"], "box");

    await gate.reload(config([80, 8081]));
    const added = "for i in 1 2 3 4 5 6 7 8 9; do curl -sS http://b.test:8081/ && break; sleep 0.3; done";
    assert.match(await inside(holder, added), /"failure":"E_RESOLVE"/);
    await gate.reload(config([80]));
    const gone = "for i in 1 2 3 4 5 6 7 8 9; do curl -sS http://b.test:8081/ || exit 0; sleep 0.3; done";
    assert.match(await inside(holder, gone), /Couldn't connect/);

    process.kill(holder, "SIGKILL");
    await gate.untilLogged(/A namespace ended/);
    const next = await sandboxOf(["unshare", "-n"], []);
    await link(next);
    await gate.untilLogged(/Attached[^\n]*\n(?:.*\n)*.*Attached/);
    assert.match(await inside(next, ask), /"reason":"no-rule-matched"/);
    assert.equal(await gate.stop(), 0);
  });

  test("gives each of several workers some sandboxes to itself", async () => {
    const pids = [await sandboxOf(["unshare", "-n"], []), await sandboxOf(["unshare", "-n"], [])];
    const gate = await startGate(internet, {
      workers: 2,
      sandboxes: pids.map((pid, index) => ({
        id: `box-${index}`,
        netns: `/proc/${pid}/ns/net`,
        network: { allowlist: [{ domain: `own-${index}.test` }] },
      })),
    });
    for (const [index, pid] of pids.entries()) {
      assert.match(
        await inside(pid, "curl -sS http://own-0.test/"),
        index === 0 ? /E_RESOLVE/ : /no-rule-matched/,
      );
      const record = await gate.record({ listener: "jail", sandbox: `box-${index}` });
      assert.equal(record["host"], "own-0.test");
    }
    const sessions = new Set(gate.records.map(({ session }) => session));
    assert.equal(sessions.size, 2);
    assert.equal(await gate.stop(), 0);
  });
});
