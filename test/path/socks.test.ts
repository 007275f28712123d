/** SOCKS5 on the proxy port: the same decisions, from curl and byte by byte. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Gate } from "../support/gate.ts";
import { startGate } from "../support/gate.ts";
import type { Origin } from "../support/origin.ts";
import { createOrigin, respond } from "../support/origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";
import { curl } from "../support/programs.ts";
import { dial } from "../support/wire-client.ts";

const HOST = "api.example.com";
const NO_AUTH = "050100";
const TOKEN = "token-of-the-sandbox-in-the-test";

const NETWORK = {
  allowlist: [
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the config's own syntax
    { domain: HOST, transform: { Authorization: "Bearer ${env:SECRET}" } },
    { domain: "plain.example.com" },
    { domain: "inside.example.com" },
  ],
};

let internet: Internet;
let origin: Origin;

before(async () => {
  internet = await createInternet();
  for (const name of [HOST, "plain.example.com"]) internet.dns.set(name, { A: [PUBLIC_V4] });
  internet.dns.set("inside.example.com", { A: ["10.0.0.7"] });
  origin = await createOrigin(internet, {
    tls: [HOST, "plain.example.com"],
    bound: true,
    answer: () => respond("reached"),
  });
});
after(() => internet.close());

describe("SOCKS5 without sandboxes", () => {
  let gate: Gate;
  before(async () => {
    gate = await startGate(internet, {
      network: NETWORK,
    });
  });
  after(() => gate.stop());

  for (const flag of ["--socks5-hostname", "--socks5"]) {
    test(`curl ${flag} reaches a listed host, and the secret goes with it`, async () => {
      const name = flag === "--socks5" ? [`--resolve`, `${HOST}:443:${PUBLIC_V4}`] : [];
      const outcome = await curl(internet, gate.caPem, flag, "127.0.0.1:8080", ...name, `https://${HOST}/`);
      if (flag === "--socks5") assert.equal(outcome.code, 97, "a literal address is judged as one");
      else {
        assert.equal(outcome.stdout, "reached");
        assert.deepEqual(authorizations(), [`Bearer ${internet.canary.secret}`]);
      }
    });
  }

  test("a tunnel passes TLS unopened", async () => {
    const root = `${gate.configFile.replace(/[^/]*$/, "")}root.pem`;
    const outcome = await curl(
      internet,
      root,
      "--socks5-hostname",
      "127.0.0.1:8080",
      "https://plain.example.com/",
    );
    assert.equal(outcome.stdout, "reached");
    assert.deepEqual(authorizations(), []);
    assert.equal(
      (await gate.record({ listener: "socks", verdict: "allow", protocol: "tls-tunnel" }))["host"],
      "plain.example.com",
    );
  });
});

describe("SOCKS5: what is refused", () => {
  let gate: Gate;
  before(async () => {
    gate = await startGate(internet, { network: NETWORK });
  });
  after(() => gate.stop());

  const CASES: readonly (readonly [
    says: string,
    request: string,
    reply: string,
    reason: string | undefined,
  ])[] = [
    ["an unlisted name", connectTo("other.example.com"), "0502", "no-rule-matched"],
    [
      "a name that resolves to a private address",
      connectTo("inside.example.com"),
      "0502",
      "address-not-public",
    ],
    ["a literal loopback address", "05010001" + "7f000001" + "01bb", "0502", "loopback"],
    ["a NUL in a name (A14)", connectTo("other.example.com\0.api.example.com"), "0501", undefined],
    ["BIND", "05020001" + "0b00000a" + "01bb", "0507", undefined],
    ["UDP ASSOCIATE", "05030001" + "00000000" + "0000", "0507", undefined],
    ["an address type that nobody knows", "0501000901", "0508", undefined],
    ["a name that cannot be reached", connectTo("plain.example.com", 80), "0505", undefined],
  ];
  for (const [says, request, reply, reason] of CASES) {
    test(`${says} is answered ${reply}`, async () => {
      const queries = internet.dns.queries.length;
      const wire = await dial(internet);
      wire.write(Buffer.from(NO_AUTH + request, "hex"));
      await wire.until("both answers", (text) => text.length >= 12);
      assert.equal(Buffer.from(wire.received, "latin1").toString("hex").slice(4, 8), reply);
      assert.equal(await wire.closed(), "end");
      if (reason === undefined) return;
      const record = await gate.record({ listener: "socks", verdict: "deny", reason });
      assert.equal(record["method"], "CONNECT");
      if (reason !== "address-not-public") assert.equal(internet.dns.queries.length, queries);
    });
  }

  test("a request that drips in is read all the same", async () => {
    const wire = await dial(internet);
    for (const byte of Buffer.from(NO_AUTH + connectTo("other.example.com"), "hex"))
      wire.write(Buffer.of(byte));
    await wire.until("both answers", (text) => text.length >= 12);
    assert.equal(await wire.closed(), "end");
  });
});

describe("SOCKS5 with sandboxes", () => {
  let gate: Gate;
  before(async () => {
    gate = await startGate(internet, {
      sandboxes: [{ id: "box", token: TOKEN, network: { allowlist: [{ domain: "plain.example.com" }] } }],
    });
  });
  after(() => gate.stop());

  test("user and password are the sandbox's id and token", async () => {
    const root = `${gate.configFile.replace(/[^/]*$/, "")}root.pem`;
    const proxy = `socks5h://box:${TOKEN}@127.0.0.1:8080`;
    const outcome = await curl(internet, root, "-x", proxy, "https://plain.example.com/");
    assert.equal(outcome.stdout, "reached");
    assert.deepEqual(authorizations(), []);
    assert.equal((await gate.record({ listener: "socks" }))["sandbox"], "box");
  });

  test("a wrong token fails the authentication, and is recorded", async () => {
    const wire = await dial(internet);
    wire.write(Buffer.from(`0501020103${hexOf("box")}05${hexOf("wrong")}`, "hex"));
    await wire.until("the verdict", (text) => text.length >= 4);
    assert.equal(Buffer.from(wire.received, "latin1").toString("hex"), "05020101");
    assert.equal(await wire.closed(), "end");
    await gate.record({ listener: "socks", reason: "identity-unknown" });
  });

  test("a client that offers no credentials is offered nothing", async () => {
    const wire = await dial(internet);
    wire.write(Buffer.from(NO_AUTH, "hex"));
    await wire.until("the answer", (text) => text.length >= 2);
    assert.equal(Buffer.from(wire.received, "latin1").toString("hex"), "05ff");
    await gate.record({ listener: "socks", reason: "identity-unknown" });
    assert.equal(origin.connections.filter(({ closed }) => !closed).length, 0);
  });
});

/** Of the request that came last. */
function authorizations(): readonly string[] {
  const fields = origin.requests.at(-1)?.fields ?? [];
  return fields.filter(([name]) => name.toLowerCase() === "authorization").map(([, value]) => value);
}

function connectTo(name: string, port = 443): string {
  return `05010003${hexByte(name.length)}${hexOf(name)}${port.toString(16).padStart(4, "0")}`;
}

function hexOf(text: string): string {
  return Buffer.from(text, "latin1").toString("hex");
}

function hexByte(value: number): string {
  return value.toString(16).padStart(2, "0");
}
