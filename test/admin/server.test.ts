import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { afterEach, test } from "node:test";
import { type Admin, type AdminOptions, createAdmin, type Readiness } from "../../src/admin/server.ts";

const READY: Readiness = {
  listening: true,
  draining: false,
  mode: "enforce",
  policy: "0123456789ab",
  config: { ok: true, at: Date.UTC(2026, 0, 2), problem: undefined },
  secretsUnavailable: [],
  recordsDropped: 0,
};

const open: Admin[] = [];
afterEach(() => Promise.all(open.splice(0).map((admin) => admin.close())));

async function start(over: Partial<AdminOptions> = {}): Promise<number> {
  const admin = createAdmin({
    host: "127.0.0.1",
    port: 0,
    token: () => undefined,
    metrics: async () => ({ type: "text/plain; version=0.0.4; charset=utf-8", text: "up 1\n" }),
    approvals: { pending: async () => [], resolve: async () => undefined },
    ready: () => READY,
    version: "1.2.3",
    ...over,
  });
  open.push(admin);
  const { host, port } = await admin.listen();
  assert.equal(host, "127.0.0.1");
  return port;
}

/** Sends bytes as they are and reads until the server closes. */
async function raw(port: number, request: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  let text = "";
  socket.on("data", (chunk) => {
    text += chunk.toString("latin1");
  });
  socket.write(request);
  await once(socket, "close");
  return text;
}

function get(port: number, path: string, fields = "Host: 127.0.0.1\r\n", method = "GET"): Promise<string> {
  return raw(port, `${method} ${path} HTTP/1.1\r\n${fields}Connection: close\r\n\r\n`);
}

function statusOf(response: string): number {
  return Number(/^HTTP\/1\.1 (\d{3}) /.exec(response)?.[1]);
}

function bodyOf(response: string): string {
  return response.slice(response.indexOf("\r\n\r\n") + 4);
}

test("createAdmin serves metrics in their own type, never cached, sniffed or shared across origins", async () => {
  const port = await start();
  const response = await get(
    port,
    "/metrics?x=1",
    "Host: any.name.example\r\nOrigin: https://evil.example\r\n",
  );
  assert.equal(statusOf(response), 200);
  assert.match(response, /^content-type: text\/plain; version=0\.0\.4; charset=utf-8\r$/im);
  assert.match(response, /^cache-control: no-store\r$/im);
  assert.match(response, /^x-content-type-options: nosniff\r$/im);
  assert.doesNotMatch(response, /access-control/i);
  assert.equal(bodyOf(response), "up 1\n");
});

test("createAdmin answers HEAD without a body and refuses other methods", async () => {
  const port = await start();
  const head = await get(port, "/healthz", "Host: x\r\n", "HEAD");
  assert.equal(statusOf(head), 200);
  assert.match(head, /^content-length: 3\r$/im);
  assert.equal(bodyOf(head), "");
  for (const method of ["POST", "PUT", "DELETE", "OPTIONS", "TRACE"]) {
    const response = await get(port, "/metrics", "Host: x\r\n", method);
    assert.equal(statusOf(response), 405, method);
    assert.match(response, /^allow: GET, HEAD\r$/im);
  }
});

test("createAdmin says that it lives whatever its readiness", async () => {
  const port = await start({ ready: () => ({ ...READY, listening: false }) });
  assert.equal(bodyOf(await get(port, "/healthz")), "ok\n");
});

test("createAdmin tells all of its readiness as JSON", async () => {
  const response = await get(await start(), "/readyz");
  assert.equal(statusOf(response), 200);
  assert.match(response, /^content-type: application\/json\r$/im);
  assert.deepEqual(JSON.parse(bodyOf(response)), {
    ready: true,
    version: "1.2.3",
    listening: true,
    draining: false,
    mode: "enforce",
    enforcing: true,
    policy: "0123456789ab",
    config: { last_reload: "success", at: "2026-01-02T00:00:00.000Z", problem: null },
    secrets_unavailable: [],
    records_dropped: 0,
  });
});

test("createAdmin is not ready while it does not listen or drains", async () => {
  for (const over of [{ listening: false }, { draining: true }]) {
    const response = await get(await start({ ready: () => ({ ...READY, ...over }) }), "/readyz");
    assert.equal(statusOf(response), 503);
    assert.equal(JSON.parse(bodyOf(response)).ready, false);
  }
});

test("createAdmin stays ready with a bad config, a missing secret or no enforcement, and says so", async () => {
  const port = await start({
    ready: () => ({
      ...READY,
      mode: "evaluate_only",
      config: { ok: false, at: 0, problem: "sallyport.yaml:3:1: unknown key" },
      secretsUnavailable: ["credentials.github"],
      recordsDropped: 9,
    }),
  });
  const response = await get(port, "/readyz");
  assert.equal(statusOf(response), 200);
  const body = JSON.parse(bodyOf(response));
  assert.equal(body.enforcing, false);
  assert.deepEqual(body.config.last_reload, "failure");
  assert.equal(body.config.problem, "sallyport.yaml:3:1: unknown key");
  assert.deepEqual(body.secrets_unavailable, ["credentials.github"]);
  assert.equal(body.records_dropped, 9);
});

test("createAdmin knows no other page, and without a token does not ask for one", async () => {
  const port = await start();
  for (const path of ["/", "/metrics/", "//metrics", "/live", "/healthz/x", "/%6detrics"]) {
    assert.equal(statusOf(await get(port, path)), 404, path);
  }
});

test("createAdmin wants the token before it says what there is", async () => {
  const port = await start({ token: () => "open-sesame" });
  const host = "Host: localhost:9464\r\n";
  const wrong = [
    "",
    "Bearer",
    "Bearer open-sesam",
    "Bearer open-sesame2",
    "Basic open-sesame",
    "open-sesame",
  ];
  for (const value of wrong) {
    const response = await get(port, "/live", `${host}Authorization: ${value}\r\n`);
    assert.equal(statusOf(response), 401, value);
    assert.match(response, /^www-authenticate: Bearer realm="Sallyport"\r$/im);
  }
  assert.equal(statusOf(await get(port, "/live", `${host}Authorization: Bearer open-sesame\r\n`)), 404);
  assert.equal(statusOf(await get(port, "/metrics", host)), 200);
});

test("createAdmin opens nothing to anybody where the token is empty because it cannot be had", async () => {
  const port = await start({ token: () => "" });
  for (const value of ["Bearer ", "Bearer", "Bearer x"]) {
    assert.equal(statusOf(await get(port, "/live", `Host: localhost\r\nAuthorization: ${value}\r\n`)), 401);
  }
});

test("createAdmin answers a guarded page only under an address or localhost, against DNS rebinding", async () => {
  const port = await start({ token: () => "t" });
  const good = ["localhost", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:9464", "[::1]", "[::1]:9464"];
  for (const host of good) {
    assert.equal(statusOf(await get(port, "/live", `Host: ${host}\r\n`)), 401, host);
  }
  assert.equal(statusOf(await raw(port, "GET /live HTTP/1.0\r\nAuthorization: Bearer t\r\n\r\n")), 421);
  const bad = [
    "rebind.attacker.example",
    "localhost.attacker.example",
    "127.0.0.1.nip.example:80",
    "",
    "[::1",
    "::1",
  ];
  for (const host of bad) {
    const fields = `Host: ${host}\r\nAuthorization: Bearer t\r\n`;
    assert.equal(statusOf(await get(port, "/live", fields)), 421, host);
  }
});

test("createAdmin answers 500 without details where a page cannot be made, and goes on", async () => {
  let broken = true;
  const port = await start({
    metrics: async () => {
      if (broken) {
        throw new Error("secret detail");
      }
      return { type: "text/plain", text: "" };
    },
    ready: () => {
      throw new Error("secret detail");
    },
  });
  for (const path of ["/metrics", "/readyz"]) {
    const response = await get(port, path);
    assert.equal(statusOf(response), 500);
    assert.ok(!response.includes("secret detail"));
  }
  broken = false;
  assert.equal(statusOf(await get(port, "/metrics")), 200);
});

test("createAdmin does not wait for a body and closes the connection", async () => {
  const port = await start();
  const response = await raw(port, "GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n");
  assert.equal(statusOf(response), 200);
  assert.match(response, /^connection: close\r$/im);
});

test("createAdmin refuses a head that is too large or malformed and survives", async () => {
  const port = await start();
  assert.equal(statusOf(await get(port, "/healthz", `Host: x\r\nX: ${"a".repeat(20_000)}\r\n`)), 431);
  assert.equal(statusOf(await raw(port, "NONSENSE\r\n\r\n")), 400);
  assert.equal(statusOf(await get(port, "/healthz")), 200);
});

test("listen rejects where the port is taken", async () => {
  const port = await start();
  await assert.rejects(start({ port }), { code: "EADDRINUSE" });
});

test("close ends a connection that is idle", async () => {
  const port = await start();
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  const closed = once(socket, "close");
  await open.pop()?.close();
  await closed;
});
