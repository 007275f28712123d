import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { permitEndpoint } from "../../src/decide/decide-endpoint.ts";
import { type Call, type Called, call } from "../../src/forward/call.ts";
import type { Route } from "../../src/model/leg.ts";
import { ask } from "../decide/build.ts";
import { createWorld, type TestWorld } from "../support/world.ts";

interface Calls {
  readonly world: TestWorld;
  call(more?: Partial<Call>, signal?: AbortSignal): Promise<Called>;
}

function create(context: TestContext): Calls {
  const world = createWorld(context, {});
  const permit = permitEndpoint(ask("https://policy.example/").destination, "https");
  const guard: Route["guard"] = () => ({ verdict: "deny", reason: "loopback", rule: undefined });
  const route: Route = { permit, guard, poolKey: "k", freshKey: "k", alpn: ["http/1.1"] };
  const order = {
    route,
    method: "POST",
    target: "/decide",
    host: "policy.example",
    fields: [["X-A", "1"]] as const,
    body: "é",
    maxBytes: 10,
  };
  return {
    world,
    call: (more = {}, signal = new AbortController().signal) =>
      call(world.world.forwarder, { ...order, ...more }, signal),
  };
}

function answer(body: string): string {
  return `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

test("call: sends one whole request and takes the whole answer; the next goes over the same connection", async (context) => {
  const calls = create(context);
  const first = calls.call();
  const origin = await calls.world.origin(0);
  await origin.until(
    "POST /decide HTTP/1.1\r\nHost: policy.example\r\nX-A: 1\r\nContent-Length: 2\r\n\r\n\u00c3\u00a9",
  );
  origin.send(`HTTP/1.1 103 Early Hints\r\n\r\n${answer("yes")}`);
  assert.deepEqual(await first, { status: 200, body: Buffer.from("yes") });
  const second = calls.call({ target: "/second" });
  await origin.until("POST /second");
  origin.send("HTTP/1.1 404 None\r\nContent-Length: 0\r\n\r\n");
  assert.equal((await second).status, 404);
  assert.equal(calls.world.origins.length, 1);
});

test("call: a connection that had idled and was closed is no failure", async (context) => {
  const calls = create(context);
  const first = calls.call();
  const origin = await calls.world.origin(0);
  await origin.until("POST");
  origin.send(answer("1"));
  await first;
  const second = calls.call({ target: "/second" });
  await origin.until("POST /second");
  origin.socket.destroy();
  const fresh = await calls.world.origin(1);
  await fresh.until("POST /second");
  fresh.send(answer("2"));
  assert.equal((await second).body.toString(), "2");
});

test("call: a fresh connection that closes, an answer that is cut or too long, and a refused address are failures", async (context) => {
  const closed = create(context);
  const first = closed.call();
  const origin = await closed.world.origin(0);
  await origin.until("POST");
  origin.socket.destroy();
  await assert.rejects(first, { name: "Failure" });

  const cut = closed.call();
  const half = await closed.world.origin(1);
  await half.until("POST");
  half.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab");
  half.socket.end();
  await assert.rejects(cut, { name: "Failure" });

  const long = closed.call();
  const flood = await closed.world.origin(2);
  await flood.until("POST");
  flood.send(answer("x".repeat(11)));
  await assert.rejects(long, { code: "E_HOOK", message: "An endpoint answered with too much" });
  await flood.ended;

  closed.world.refuse = () => ({
    kind: "refused",
    denial: { verdict: "deny", reason: "loopback", rule: undefined },
  });
  await assert.rejects(closed.call(), { code: "E_HOOK", message: "The address of an endpoint is refused" });
});

test("call: whoever gives up takes the connection along", async (context) => {
  const calls = create(context);
  const controller = new AbortController();
  const running = calls.call({}, controller.signal);
  const origin = await calls.world.origin(0);
  await origin.until("POST");
  controller.abort();
  await assert.rejects(running, { code: "E_HOOK" });
  await origin.ended;
});
