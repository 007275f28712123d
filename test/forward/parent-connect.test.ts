import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { parseHostname } from "../../src/base/hostname.ts";
import { parseIpAddress } from "../../src/base/ip.ts";
import { askForTunnel, type TunnelAnswer } from "../../src/forward/parent-connect.ts";
import type { Dialable, HandedOver } from "../../src/model/decision.ts";
import { Failure } from "../../src/model/failure.ts";
import type { Limits } from "../../src/model/limits.ts";
import { around, createPair, listenTo, type Peer } from "../support/loopback.ts";

const NEVER = new AbortController().signal;

interface Asking {
  readonly answer: Promise<TunnelAnswer>;
  readonly proxy: Peer;
}

const V4 = { address: parseIpAddress("11.0.0.1"), port: 443 } as Dialable;

test("askForTunnel asks for an address or a name, with credentials where there are some", async (context) => {
  const named = { host: parseHostname("a.example"), port: 8443 } as HandedOver;
  const v6 = { address: parseIpAddress("2a0f::1"), port: 443 } as Dialable;
  const cases = [
    [V4, undefined, "CONNECT 11.0.0.1:443 HTTP/1.1\r\nHost: 11.0.0.1:443\r\n\r\n"],
    [v6, undefined, "CONNECT [2a0f::1]:443 HTTP/1.1\r\nHost: [2a0f::1]:443\r\n\r\n"],
    [
      named,
      "dTpw",
      "CONNECT a.example:8443 HTTP/1.1\r\nHost: a.example:8443\r\nProxy-Authorization: Basic dTpw\r\n\r\n",
    ],
  ] as const;
  for (const [target, authorization, expected] of cases) {
    const { answer, proxy } = await ask(context, { target, authorization });
    assert.equal(await proxy.until("\r\n\r\n"), expected);
    proxy.send("HTTP/1.1 200 OK\r\n\r\n");
    assert.equal((await answer).kind, "open");
  }
});

test("askForTunnel takes consent behind interim answers, in pieces, and keeps what comes behind it", async (context) => {
  const { answer, proxy } = await ask(context, {});
  await proxy.until("\r\n\r\n");
  proxy.send("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 Connection est");
  await new Promise(setImmediate);
  proxy.send("ablished\r\nX: y\r\n\r\nhello");
  const opened = await answer;
  assert.ok(opened.kind === "open");
  assert.equal(opened.early.toString(), "hello");
});

test("askForTunnel is refused by other answers, and 407 is final and the operator's", async (context) => {
  for (const [status, final, fault] of [
    ["403 Forbidden secret-text", false, "upstream"],
    ["503 No", false, "upstream"],
    ["407 Who", true, "operator"],
  ] as const) {
    const { answer, proxy } = await ask(context, {});
    await proxy.until("\r\n\r\n");
    proxy.send(`HTTP/1.1 ${status}\r\nContent-Length: 4\r\n\r\nsecret-text`);
    const refused = await answer;
    assert.ok(refused.kind === "refused");
    assert.deepEqual(
      [refused.final, refused.failure.code, refused.failure.fault],
      [final, "E_CONNECT", fault],
    );
    assert.doesNotMatch(refused.failure.message, /secret-text/);
    await proxy.ended;
  }
});

test("askForTunnel fails at what is no answer, too long, or never ends being interim", async (context) => {
  const nonsense = [
    "SSH-2.0-x\r\n\r\n",
    "HTTP/1.1 101 Switching Protocols\r\n\r\n",
    "HTTP/1.1 100 Continue\r\n\r\n".repeat(3),
    `HTTP/1.1 200 ${"x".repeat(2_000)}`,
  ];
  for (const text of nonsense) {
    const { answer, proxy } = await ask(context, { limits: { head_bytes: 1_000, interim_responses: 2 } });
    const rejected = assert.rejects(answer, { code: "E_UPSTREAM_PROTOCOL" }, text);
    await proxy.until("\r\n\r\n");
    proxy.send(text);
    await rejected;
    await proxy.ended;
  }
});

test("askForTunnel fails where the connection ends, the time is over, or nobody waits any more", async (context) => {
  const closed = await ask(context, {});
  const rejected = assert.rejects(closed.answer, { code: "E_CONNECT" });
  closed.proxy.socket.end();
  await rejected;
  const late = await ask(context, { limits: { connect_timeout: 20 } });
  await assert.rejects(late.answer, { code: "E_TIMEOUT" });
  const reason = new Failure("E_TIMEOUT", "client", "Gone");
  const controller = new AbortController();
  const left = await ask(context, { signal: controller.signal });
  controller.abort(reason);
  await assert.rejects(left.answer, (error) => error === reason);
  const never = await ask(context, { signal: AbortSignal.abort() });
  await assert.rejects(never.answer, { code: "E_TIMEOUT" });
  assert.equal(never.proxy.text, "");
});

interface Given {
  readonly target?: Dialable | HandedOver;
  readonly authorization?: string | undefined;
  readonly limits?: Partial<Limits>;
  readonly signal?: AbortSignal;
}

async function ask(context: TestContext, given: Given): Promise<Asking> {
  const { near, far } = await createPair(context);
  const proxy = listenTo(far);
  const answer = askForTunnel(near, {
    target: given.target ?? V4,
    authorization: given.authorization,
    limits: around(given.limits).limits,
    signal: given.signal ?? NEVER,
  });
  answer.catch(() => undefined);
  return { answer, proxy };
}
