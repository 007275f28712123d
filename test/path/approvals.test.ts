/** A person's word: an exchange waits for it, and goes, or does not; over the admin page, by the command, by a webhook. */
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { askConnect, askInside, head } from "../support/ask.ts";
import { ADMIN, fromFile, type Gate, startGate } from "../support/gate.ts";
import type { Message } from "../support/message-reader.ts";
import { oneValue, statusOf } from "../support/message-reader.ts";
import type { Origin } from "../support/origin.ts";
import { createOrigin, respond } from "../support/origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4, PUBLIC_V6 } from "../support/private-internet.ts";
import { type Outcome, run } from "../support/programs.ts";
import { dial, PROXY } from "../support/wire-client.ts";

const MAIN = fileURLToPath(new URL("../../src/start.mjs", import.meta.url));
const HOST = "approve.example.com";
const HOOKED = "hooked.example.com";
const TOKEN = "a-token-of-the-tests";

let internet: Internet;
let gate: Gate;
let origin: Origin;

function config(more: object = {}, workers = 1) {
  return {
    workers,
    listen: {
      proxy: `${PROXY.host}:${PROXY.port}`,
      admin: { address: `${ADMIN.host}:${ADMIN.port}`, token: TOKEN },
    },
    records: { file: "records.jsonl" },
    network: { allowlist: [{ domain: HOST, approve: true }, { domain: HOOKED }] },
    hooks: [
      {
        name: "asks",
        type: "command",
        command: ["/bin/echo", '{"decision":"deny","reason":"sensitive","approval":{}}'],
        domains: [HOOKED],
      },
    ],
    ...more,
  };
}

before(async () => {
  internet = await createInternet();
  for (const name of [HOST, HOOKED]) internet.dns.set(name, { A: [PUBLIC_V4] });
  origin = await createOrigin(internet, { tls: [HOST, HOOKED] });
  gate = await startGate(internet, config({}, 2), { files: { signing: "a-signing-secret-of-the-tests" } });
});
after(() => internet.close());

function get(path: string, host = HOST): Promise<Message> {
  return askInside(internet, gate, host, head(`GET ${path} HTTP/1.1`, `Host: ${host}`));
}

async function admin(method: string, path: string, body = "", token = TOKEN): Promise<Message> {
  const wire = await dial(internet, ADMIN);
  const lines = [
    `${method} ${path} HTTP/1.1`,
    `Host: ${ADMIN.host}`,
    `Authorization: Bearer ${token}`,
    `Content-Length: ${body.length}`,
    "Connection: close",
  ];
  return await wire.send(head(...lines) + body).finally(() => wire.destroy());
}

interface Pending {
  readonly id: string;
  readonly path: string;
  readonly host: string;
  readonly why?: string;
}

/** What waits, once something does. */
async function pending(): Promise<Pending> {
  for (const end = Date.now() + 5_000; Date.now() < end; await delay(20)) {
    const { approvals } = JSON.parse((await admin("GET", "/approvals")).body) as { approvals: Pending[] };
    if (approvals[0] !== undefined) return approvals[0];
  }
  throw new Error("Nothing waits");
}

function records(): string {
  return readFileSync(join(internet.directory, `gate-${internet.gate.pid}`, "records.jsonl"), "utf8");
}

function command(...args: readonly string[]): Promise<Outcome> {
  const program = [process.execPath, "--disable-warning=ExperimentalWarning", MAIN, "approve"];
  return run(internet, [...program, ...args, "--config", gate.configFile]);
}

describe("an entry with approve: true", () => {
  test("waits for a word, and goes once it is given, by the command", async () => {
    const before = origin.requests.length;
    const answer = get("/secret?q=1");
    const { id, path } = await pending();
    assert.deepEqual([path, origin.requests.length], ["/secret", before]);
    const listed = await command();
    assert.match(listed.stdout, new RegExp(`^${id}  -  GET ${HOST}:443/secret\n$`));
    const approved = await command(id, "--by", "ada");
    assert.deepEqual([approved.code, approved.stdout], [0, `${id}: approved\n`], approved.stderr);
    assert.equal(statusOf(await answer), 200);
    assert.equal((await command()).stdout, "Nothing waits for approval\n");
    const again = get("/secret");
    const { id: second } = await pending();
    assert.notEqual(second, id);
    await command(second, "--reject");
    assert.equal(oneValue(await again, "x-sallyport-reason"), "rule-denies");
    assert.match(records(), new RegExp(`"approval":"approved","id":"${id}","by":"ada","scope":"once"`));
  });

  test("needs no second word for the same while one holds, in any worker, and one for anything else", async () => {
    const answer = get("/for-a-while");
    const { id } = await pending();
    const word = await admin("POST", `/approvals/${id}`, '{"outcome":"approve","by":"ada","for":"30m"}');
    assert.equal(statusOf(word), 200, word.body);
    assert.equal(statusOf(await answer), 200);
    for (let round = 0; round < 6; round += 1) assert.equal(statusOf(await get("/for-a-while")), 200);
    const other = get("/for-a-while/x");
    await admin("POST", `/approvals/${(await pending()).id}`, '{"outcome":"reject","by":"ada"}');
    assert.equal(statusOf(await other), 403);
  });
});

test("a hook's denial is lifted, or stands", async () => {
  for (const [outcome, status] of [
    ["approve", 200],
    ["reject", 403],
  ] as const) {
    const answer = get("/hooked", HOOKED);
    const { id, why } = await pending();
    assert.equal(why, "sensitive");
    await admin("POST", `/approvals/${id}`, JSON.stringify({ outcome, by: "ada" }));
    const given = await answer;
    assert.equal(statusOf(given), status);
    if (status === 403) assert.equal(oneValue(given, "x-sallyport-reason"), "hook-denied");
  }
});

test("the page needs the token, a known id and a whole word", async () => {
  assert.equal(statusOf(await admin("GET", "/approvals", "", "another-token")), 401);
  assert.equal(
    statusOf(await admin("POST", "/approvals/0123456789ab", '{"outcome":"approve","by":"a"}')),
    404,
  );
  const answer = get("/wrong");
  const { id } = await pending();
  for (const body of ["", "{}", '{"outcome":"yes","by":"a"}', '{"outcome":"approve"}', "x".repeat(5_000)]) {
    assert.equal(statusOf(await admin("POST", `/approvals/${id}`, body)), 400, body.slice(0, 30));
  }
  assert.equal(statusOf(await admin("GET", `/approvals/${id}`)), 405);
  await admin("POST", `/approvals/${id}`, '{"outcome":"reject","by":"a"}');
  await answer;
});

test("nobody's word in time is a refusal; without waiting, at once", async () => {
  await gate.reload(config({ approvals: { timeout: "1s" } }, 2));
  assert.equal(oneValue(await get("/late"), "x-sallyport-reason"), "approval-timeout");
  await gate.reload(config({ approvals: { timeout: "1m", wait: false } }, 2));
  assert.equal(oneValue(await get("/later"), "x-sallyport-reason"), "approval-timeout");
  const { id } = await pending();
  await admin("POST", `/approvals/${id}`, '{"outcome":"approve","by":"ada","for":"5m"}');
  assert.equal(statusOf(await get("/later")), 200);
});

describe("a webhook", () => {
  const WEBHOOK = "ask.example.com";
  const SIGNING = "a-signing-secret-of-the-tests";
  const webhook = { url: `https://${WEBHOOK}/ask?from=gate`, secret: fromFile("signing"), timeout: "5s" };
  let asked: Origin;
  let word = "";

  before(async () => {
    internet.dns.set(WEBHOOK, { AAAA: [PUBLIC_V6[0]] });
    asked = await createOrigin(internet, {
      address: PUBLIC_V6[0],
      tls: [WEBHOOK],
      answer: () => (word === "" ? respond("", "202 Accepted") : respond(word)),
    });
    await gate.reload(config({ approvals: { webhook } }, 2));
  });

  test("is told what waits, signed, without query; its word counts, in every worker", async () => {
    word = '{"decision":"approve","by":"policy-bot","scope":"30m"}';
    assert.equal(statusOf(await get("/by-webhook?q=hidden")), 200);
    const [request] = asked.requests;
    assert.ok(request);
    assert.equal(request.start, "POST /ask?from=gate HTTP/1.1");
    const told = JSON.parse(request.body) as Record<string, unknown>;
    assert.deepEqual([told["method"], told["host"], told["path"]], ["GET", HOST, "/by-webhook"]);
    assert.doesNotMatch(request.body, /hidden/);
    const time = oneValue(request, "x-sallyport-timestamp");
    const digest = createHmac("sha256", SIGNING).update(`${time}.${request.body}`).digest("hex");
    assert.equal(oneValue(request, "x-sallyport-signature"), `sha256=${digest}`);
    for (let round = 0; round < 6; round += 1) assert.equal(statusOf(await get("/by-webhook")), 200);
    assert.equal(asked.requests.length, 1);
    assert.match(records(), /"approval":"approved","id":"[0-9a-f]{12}","by":"policy-bot","scope":"30m"/);
  });

  test("says no, or leaves the word to a person", async () => {
    word = '{"decision":"deny"}';
    assert.equal(oneValue(await get("/denied"), "x-sallyport-reason"), "rule-denies");
    word = "";
    const answer = get("/later-by-hand");
    await admin("POST", `/approvals/${(await pending()).id}`, '{"outcome":"approve","by":"ada"}');
    assert.equal(statusOf(await answer), 200);
  });

  test("that talks nonsense approves nothing, and the log says so", async () => {
    word = '{"decision":"yes, please"}';
    const answer = get("/nonsense");
    await gate.untilLogged(/approvals webhook failed.*no word that can be read/);
    await admin("POST", `/approvals/${(await pending()).id}`, '{"outcome":"reject","by":"ada"}');
    assert.equal(statusOf(await answer), 403);
  });

  test("is no destination for a sandbox, whatever is listed", async () => {
    await gate.reload(config({ approvals: { webhook }, network: { allowlist: [{ domain: "*" }] } }, 2));
    assert.match(
      (await askConnect(internet, `${WEBHOOK}:443`)).start,
      /^HTTP\/1\.1 403 .*address-not-public/,
    );
  });
});
