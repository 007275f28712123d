/** A person's word: an exchange waits for it, and goes, or does not; over the admin page and by the command. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { askInside, head } from "../support/ask.ts";
import { ADMIN, type Gate, startGate } from "../support/gate.ts";
import type { Message } from "../support/message-reader.ts";
import { oneValue, statusOf } from "../support/message-reader.ts";
import type { Origin } from "../support/origin.ts";
import { createOrigin } from "../support/origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";
import { type Outcome, run } from "../support/programs.ts";
import { dial, PROXY } from "../support/wire-client.ts";

const MAIN = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
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
  gate = await startGate(internet, config({}, 2));
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
    const lines = readFileSync(
      join(internet.directory, `gate-${internet.gate.pid}`, "records.jsonl"),
      "utf8",
    );
    assert.match(lines, new RegExp(`"approval":"approved","id":"${id}","by":"ada","scope":"once"`));
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
