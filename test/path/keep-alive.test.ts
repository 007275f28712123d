/** Connections are used again where that is safe, and a request is sent twice only where that is (I09, C08). */
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { askPlain, head, inside } from "../support/ask.ts";
import type { Gate } from "../support/gate.ts";
import { SECRET, startGate } from "../support/gate.ts";
import type { Message } from "../support/message-reader.ts";
import { statusOf } from "../support/message-reader.ts";
import type { Connection, Origin } from "../support/origin.ts";
import { createOrigin, respond } from "../support/origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";
import { assertFailed } from "../support/refusal.ts";
import { dial } from "../support/wire-client.ts";

const HOST = "api.example.com";
type Behave = (request: Message, connection: Connection) => string | undefined;

let internet: Internet;
let gate: Gate;
let origin: Origin;
let behave: Behave = () => respond("ok");

before(async () => {
  internet = await createInternet();
  for (const name of [HOST, "plain.example.com", "other.example.com"])
    internet.dns.set(name, { A: [PUBLIC_V4] });
  const answer: Behave = (...args) => behave(...args);
  origin = await createOrigin(internet, { tls: [HOST, "other.example.com"], bound: true, answer });
  await createOrigin(internet, { answer });
  const allowlist = [
    { domain: HOST, transform: { Authorization: SECRET } },
    { domain: "other.example.com", intercept: "always" },
    { domain: "plain.example.com" },
  ];
  gate = await startGate(internet, { network: { allowlist }, limits: { pool_idle_timeout: "20s" } });
});
beforeEach(() => {
  behave = () => respond("ok");
});
after(() => internet.close());

async function get(path: string, host = HOST, method = "GET", body = ""): Promise<Message> {
  const wire = await inside(internet, gate, host);
  const lines = body === "" ? [] : [`Content-Length: ${body.length}`];
  return await wire.send(head(`${method} ${path} HTTP/1.1`, `Host: ${host}`, ...lines) + body);
}

describe("an upstream connection", () => {
  test("serves many requests of many clients, one after the other", async () => {
    await get("/warm");
    const before = origin.connections.length;
    for (let count = 0; count < 10; count += 1) assert.equal(statusOf(await get("/again")), 200);
    assert.equal(origin.connections.length, before);
  });

  test("is not shared by two requests at the same time", async () => {
    await get("/warm");
    const before = origin.connections.length;
    const wires = await Promise.all([1, 2, 3].map(() => inside(internet, gate, HOST)));
    const answers: (() => void)[] = [];
    behave = (_request, { socket }) => {
      answers.push(() => void socket.write(respond("late")));
      if (answers.length === 3) for (const answer of answers) answer();
      return undefined;
    };
    const all = await Promise.all(
      wires.map((wire) => wire.send(head("GET /slow HTTP/1.1", `Host: ${HOST}`))),
    );
    assert.deepEqual(
      all.map(({ body }) => body),
      ["late", "late", "late"],
    );
    assert.equal(origin.connections.length, before + 2);
  });

  test("of one host is not used for another at the same address", async () => {
    await get("/warm");
    await get("/", "other.example.com");
    const names = origin.connections.map(
      ({ requests }) => new Set(requests.map(({ fields }) => fields[0]?.[1])),
    );
    assert.ok(names.every((hosts) => hosts.size <= 1));
  });
});

describe("an upstream connection after its response", () => {
  for (const [what, path, bytes] of [
    ["the origin says close", "/closing", respond("bye", "200 OK", ["Connection: close"])],
    [
      "bytes follow the response",
      "/evil",
      `${respond("ok")}HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil`,
    ],
  ] as const) {
    test(`is not used again where ${what}`, async () => {
      behave = () => bytes;
      await get(path);
      behave = () => respond("fresh");
      assert.equal((await get("/next")).body, "fresh");
      const used = origin.connections.find(({ requests }) =>
        requests.some(({ start }) => start.includes(path)),
      );
      assert.match(used?.requests.at(-1)?.start ?? "", new RegExp(path));
    });
  }

  test("of a client that went away in the middle of a response is closed, not used again", async () => {
    behave = () => `${head("HTTP/1.1 200 OK", "Content-Length: 100000")}begin`;
    const wire = await inside(internet, gate, HOST);
    wire.write(head("GET /left HTTP/1.1", `Host: ${HOST}`));
    await wire.until("the beginning", (text) => text.includes("begin"));
    wire.destroy();
    const left = () =>
      origin.connections.find(({ requests }) => requests.some(({ start }) => start.includes("/left")));
    await origin.until("its close", () => left()?.closed === true);
    behave = () => respond("ok");
    assert.equal((await get("/after-left")).body, "ok");
  });
});

/** Makes the pooled connection die the moment its next request arrives, unanswered. */
async function makeStale(): Promise<void> {
  await get("/warm");
  const stale = origin.connections.findLast(({ closed }) => !closed);
  behave = (_request, connection) => {
    if (connection !== stale) return respond("fresh");
    connection.socket.destroy();
    return undefined;
  };
}

describe("a pooled connection that turns out to be dead", () => {
  for (const method of ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"]) {
    test(`costs a ${method} nothing: it is sent again, on a fresh one`, async () => {
      await makeStale();
      const before = origin.requests.length;
      const wire = await inside(internet, gate, HOST);
      const bytes = head(`${method} /stale HTTP/1.1`, `Host: ${HOST}`);
      const answer = await wire.send(bytes, { bodiless: method === "HEAD" });
      assert.equal(statusOf(answer), 200);
      assert.equal(origin.requests.length, before + 2);
    });
  }

  test("fails a POST that may have been acted on", async () => {
    await makeStale();
    const before = origin.requests.length;
    assertFailed(await get("/stale", HOST, "POST", "once"), 502, "E_UPSTREAM_PROTOCOL");
    assert.equal(origin.requests.length, before + 1);
  });

  test("fails a PUT whose body is gone, or sends it whole", async () => {
    await makeStale();
    const answer = await get("/stale", HOST, "PUT", "x".repeat(100_000));
    if (statusOf(answer) === 200) assert.equal(origin.requests.at(-1)?.body.length, 100_000);
    else assertFailed(answer, 502, "E_UPSTREAM_PROTOCOL");
  });

  test("fails a GET of which a part of the answer was seen", async () => {
    await get("/warm");
    behave = ({ start }, { socket }) => {
      if (!start.includes("/half")) return respond("ok");
      socket.write("HTTP/1.1 2", () => socket.destroy());
      return undefined;
    };
    assertFailed(await get("/half"), 502, "E_UPSTREAM_PROTOCOL");
    assert.equal(origin.requests.filter(({ start }) => start.includes("/half")).length, 1);
  });

  test("that the origin closed while it was idle is not even tried", async () => {
    await get("/warm");
    const idle = origin.connections.filter(({ closed }) => !closed);
    for (const { socket } of idle) socket.end();
    await origin.until("the gate's close", () => idle.every(({ closed }) => closed));
    assert.equal(statusOf(await get("/stale", HOST, "POST", "once")), 200);
  });
});

describe("a client's connection", () => {
  test("stays open for plain requests to different hosts", async () => {
    const wire = await dial(internet);
    for (let count = 0; count < 3; count += 1) {
      const bytes = head("GET http://plain.example.com/ HTTP/1.1", "Host: plain.example.com");
      assert.equal(statusOf(await wire.send(bytes)), 200);
    }
    assert.equal(wire.ending, undefined);
  });

  test("closes where the client says so", async () => {
    const wire = await inside(internet, gate, HOST);
    await wire.send(head("GET / HTTP/1.1", `Host: ${HOST}`, "Connection: close"));
    assert.equal(await wire.closed(), "end");
  });

  test("of HTTP/1.0 stays open only on request", async () => {
    const answer = await askPlain(internet, head("GET http://plain.example.com/ HTTP/1.0"));
    assert.equal(statusOf(answer), 200);
    const wire = await dial(internet);
    await wire.send(head("GET http://plain.example.com/ HTTP/1.0"));
    await wire.closed();
  });
});
