/** The harness itself: what the tests of the whole proxy stand on must be true before they mean anything. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { after, describe, test } from "node:test";
import { createCanary } from "./canary.ts";
import { createOrigin, respond } from "./origin.ts";
import { watchPackets } from "./packets.ts";
import type { Internet } from "./private-internet.ts";
import { createInternet, DNS_V4, GATE_V4, PUBLIC_V4, PUBLIC_V6 } from "./private-internet.ts";
import { run } from "./programs.ts";
import { dial } from "./wire-client.ts";

const internets: Internet[] = [];
after(() => Promise.all(internets.map((internet) => internet.close())));

for (const rootless of process.getuid?.() === 0 ? [false, true] : [true]) {
  describe(`createInternet ${rootless ? "as an ordinary user" : "as root"}`, () => {
    checkAddresses(rootless);
    checkServers(rootless);
  });
}

async function make(rootless: boolean): Promise<Internet> {
  const internet = await createInternet({ rootless });
  internets.push(internet);
  return internet;
}

function checkAddresses(rootless: boolean): void {
  test("every address but the gate's own is an origin's to take, IPv6 too", async () => {
    const internet = await make(rootless);
    for (const address of [PUBLIC_V4, "169.254.169.254", "10.20.0.5", PUBLIC_V6[0]]) {
      const origin = await createOrigin(internet, { address, answer: () => respond(address) });
      const wire = await dial(internet, { host: address, port: origin.port });
      const answer = await wire.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
      assert.equal(answer.body, address);
    }
    await assert.rejects(dial(internet, { host: "11.9.9.9", port: 80 }), /ECONNREFUSED/);
    await assert.rejects(dial(internet, { host: GATE_V4, port: 80 }), /ECONNREFUSED/);
  });

  test("two internets at once share no address", async () => {
    const [one, other] = await Promise.all([make(rootless), make(rootless)]);
    await createOrigin(one, { answer: () => respond("one") });
    await createOrigin(other, { answer: () => respond("other") });
    const outcomes = await Promise.all(
      [one, other].map((each) => run(each, ["curl", "-sS", `http://${PUBLIC_V4}/`])),
    );
    assert.deepEqual(
      outcomes.map((outcome) => outcome.stdout),
      ["one", "other"],
    );
  });

  test("watchPackets sees each packet once, and none where none was sent", async () => {
    const internet = await make(rootless);
    const packets = await watchPackets(internet);
    assert.deepEqual(await packets.take(), []);
    await assert.rejects(dial(internet, { host: "11.9.9.9", port: 81 }), /ECONNREFUSED/);
    const seen = await packets.take();
    assert.equal(seen.length, 1);
    assert.match(seen[0] ?? "", /^tcp 11\.0\.0\.1\.\d+ > 11\.9\.9\.9\.81 S$/);
    assert.deepEqual(await packets.take(), []);
  });
}

function checkServers(rootless: boolean): void {
  test("dns answers as it is told, and keeps the queries", async () => {
    const internet = await make(rootless);
    internet.dns.set("a.example.com", { A: [PUBLIC_V4] }, { A: ["11.0.0.99"] });
    internet.dns.set("c.example.com", { cname: "a.example.com" });
    const lookup = (name: string) =>
      run(internet, [process.execPath, "-e", LOOKUP, DNS_V4, name]).then((outcome) => outcome.stdout.trim());
    assert.equal(await lookup("a.example.com"), PUBLIC_V4);
    assert.equal(await lookup("c.example.com"), "11.0.0.99");
    assert.equal(await lookup("none.example.com"), "ENOTFOUND");
    assert.equal(internet.dns.queries.length, 3);
  });

  test("an origin tells an orderly end from a reset", async () => {
    const internet = await make(rootless);
    const origin = await createOrigin(internet, {});
    const [first, second] = [
      await dial(internet, { host: PUBLIC_V4, port: 80 }),
      await dial(internet, { host: PUBLIC_V4, port: 80 }),
    ];
    await first.send("GET / HTTP/1.1\r\n\r\n");
    first.end();
    await second.send("GET / HTTP/1.1\r\n\r\n");
    second.reset();
    await origin.until("both closed", () => origin.connections.every((one) => one.closed));
    assert.deepEqual(
      origin.connections.map((one) => one.ending),
      ["end", "error"],
    );
  });

  test("a program that a test started dies with the namespace's test process, not after it", async () => {
    const internet = await make(rootless);
    const child = internet.net.spawn(["sleep", "60"], { stdio: "ignore" });
    child.kill();
    const [, signal] = await once(child, "exit");
    assert.equal(signal, "SIGTERM");
  });
}

const LOOKUP = `const { Resolver } = require("node:dns"); const r = new Resolver(); r.setServers([process.argv[1]]);
r.resolve4(process.argv[2], (error, list) => console.log(error ? error.code : list.join()));`;

describe("createCanary", () => {
  test("the secret is found in each of its forms, also cut in two", () => {
    const forms = [
      (secret: string) => secret,
      (secret: string) => encodeURIComponent(secret),
      (secret: string) => Buffer.from(`x:${secret}`).toString("base64"),
      (secret: string) => Buffer.from(`user:${secret}`).toString("base64"),
      (secret: string) => Buffer.from(`u:p${secret}`).toString("base64url"),
    ];
    for (const form of forms) {
      const canary = createCanary();
      const text = `before ${form(canary.secret)} after`;
      const watch = canary.watch("there");
      watch.see(text.slice(0, 20));
      watch.see(Buffer.from(text.slice(20)));
      assert.throws(() => canary.assertUnseen(), /there/, text);
    }
  });

  test("other bytes are not taken for it", () => {
    const canary = createCanary();
    canary.watch("there").see("canary+0123456789abcdef01234567/=end");
    assert.doesNotThrow(() => canary.assertUnseen());
  });
});
