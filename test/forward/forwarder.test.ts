import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { type TestContext, test } from "node:test";
import type { TLSSocket } from "node:tls";
import { parseHostname } from "../../src/base/hostname.ts";
import { parseIpAddress } from "../../src/base/ip.ts";
import { Forwarder } from "../../src/forward/forwarder.ts";
import type { SecureOptions } from "../../src/forward/upstream-tls.ts";
import type { AddressDecision, Denial, Dialable, Permit } from "../../src/model/decision.ts";
import type { Destination, IpAddress } from "../../src/model/exchange.ts";
import { Failure } from "../../src/model/failure.ts";
import type { Route } from "../../src/model/leg.ts";
import { around, eventually, listenTo, type Peer } from "../support/loopback.ts";
import { hearAnswer, NO_BODY, request } from "./harness.ts";

const NEVER = new AbortController().signal;
const REFUSED: Denial = { verdict: "deny", reason: "address-not-public", rule: undefined };
const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

test("open resolves a name, asks of each address, and dials what was allowed alone", async (context) => {
  const made = await make(context, { addresses: ["127.0.0.2", "127.0.0.1"], allowed: ["127.0.0.1"] });
  const opened = await made.forwarder.open(made.route("a.example"), NEVER);
  assert.ok(opened.kind === "ready");
  assert.equal(opened.upstream.peer?.text, "127.0.0.1");
  assert.deepEqual(made.asked, ["127.0.0.2", "127.0.0.1"]);
  assert.deepEqual(made.resolved, ["a.example"]);
  opened.upstream.socket.destroy();
});

test("open asks of a literal too, and looks nothing up for it", async (context) => {
  const made = await make(context, { addresses: [], allowed: ["127.0.0.1"] });
  const opened = await made.forwarder.open(made.route("127.0.0.1"), NEVER);
  assert.ok(opened.kind === "ready");
  assert.deepEqual([made.asked, made.resolved], [["127.0.0.1"], []]);
  opened.upstream.socket.destroy();
  const refused = await made.forwarder.open(made.route("127.0.0.9"), NEVER);
  assert.deepEqual(refused, { kind: "refused", denial: REFUSED });
});

test("open dials nothing where every address is refused", async (context) => {
  const made = await make(context, { addresses: ["127.0.0.1", "::1"], allowed: [] });
  const opened = await made.forwarder.open(made.route("a.example"), NEVER);
  assert.deepEqual(opened, { kind: "refused", denial: REFUSED });
  assert.equal(made.origins.length, 0);
});

test("open fails where the name has no address, or the resolver fails", async (context) => {
  const made = await make(context, { addresses: [], allowed: [] });
  await assert.rejects(made.forwarder.open(made.route("a.example"), NEVER), { code: "E_RESOLVE" });
  const failure = new Failure("E_RESOLVE", "upstream", "No such name");
  const failing = await make(context, { addresses: failure, allowed: [] });
  await assert.rejects(
    failing.forwarder.open(failing.route("a.example"), NEVER),
    (error) => error === failure,
  );
});

test("connect serves plain HTTP without TLS, and tells how long it took", async (context) => {
  const made = await make(context, { addresses: ["127.0.0.1"], allowed: ["127.0.0.1"] });
  await exchange(made, made.route("a.example", "http"));
  assert.deepEqual(made.secured, []);
  assert.equal(made.connected.length, 1);
  assert.ok(Number(made.connected[0]) >= 0);
});

test("connect secures https for the decided name, and never goes on without", async (context) => {
  const made = await make(context, { addresses: ["127.0.0.1"], allowed: ["127.0.0.1"] });
  await exchange(made, made.route("a.example"));
  assert.deepEqual(made.secured, ["a.example http/1.1"]);
  const failure = new Failure("E_UPSTREAM_TLS", "upstream", "For another name");
  made.tls.failure = failure;
  await assert.rejects(made.forwarder.connect(made.route("a.example"), NEVER), (error) => error === failure);
  assert.equal(made.connected.length, 1);
});

test("connect offers the session of the same key for resumption, and forgets it with the policy", async (context) => {
  const made = await make(context, { addresses: ["127.0.0.1"], allowed: ["127.0.0.1"] });
  const { forwarder } = made;
  for (const key of ["one", "one", "two"])
    await forwarder.connect(made.route("a.example", "https", key), NEVER);
  assert.deepEqual(made.sessions, [undefined, "session 0", undefined]);
  forwarder.retire();
  await forwarder.connect(made.route("a.example", "https", "one"), NEVER);
  assert.equal(made.sessions.at(-1), undefined);
  forwarder.close();
});

test("reuse gives back what idles under the same key, unless another try must not", async (context) => {
  const made = await make(context, { addresses: ["127.0.0.1"], allowed: ["127.0.0.1"] });
  const { forwarder } = made;
  const route = made.route("a.example", "http", "one");
  assert.equal(forwarder.reuse(route, false), undefined);
  const upstream = await exchange(made, route);
  assert.equal(forwarder.reuse(made.route("a.example", "http", "two"), false), undefined);
  assert.equal(forwarder.reuse(route, true), undefined);
  assert.equal(forwarder.reuse(route, false), upstream);
  assert.equal(forwarder.reuse(route, false), undefined, "it is taken");
});

test("probe learns what an upstream speaks, and its connection serves the first request", async (context) => {
  const made = await make(context, { addresses: ["127.0.0.1"], allowed: ["127.0.0.1"] });
  const route = made.route("a.example", "https", "secret");
  assert.equal(made.forwarder.recall(route), undefined);
  const probed = await made.forwarder.probe(route, NEVER);
  assert.deepEqual(probed, { kind: "ready", upstream: { protocol: "http/1.1", websockets: false } });
  assert.equal(made.forwarder.reuse(route, false)?.protocol, "http/1.1");
  assert.equal(made.origins.length, 1);
});

test("retire closes what idles, and lets what is under way end", async (context) => {
  const made = await make(context, { addresses: ["127.0.0.1"], allowed: ["127.0.0.1"] });
  const route = made.route("a.example", "http");
  await exchange(made, route);
  const [idle] = made.origins;
  const acquired = await made.forwarder.connect(route, NEVER);
  assert.ok(acquired.kind === "ready");
  const heard = hearAnswer();
  acquired.upstream.send(request(), NO_BODY, heard);
  acquired.upstream.end([]);
  made.forwarder.retire();
  await idle?.ended;
  await eventually(() => made.origins.length === 2);
  made.origins[1]?.send(OK);
  await heard.over();
  assert.equal(heard.status, 200);
  assert.equal(made.forwarder.reuse(route, false), undefined);
  await made.origins[1]?.ended;
});

test("close ends everything, what is under way too", async (context) => {
  const made = await make(context, { addresses: ["127.0.0.1"], allowed: ["127.0.0.1"] });
  const acquired = await made.forwarder.connect(made.route("a.example", "http"), NEVER);
  assert.ok(acquired.kind === "ready");
  acquired.upstream.send(request(), NO_BODY, hearAnswer());
  made.forwarder.close();
  await eventually(() => made.origins.length === 1);
  await made.origins[0]?.ended;
  assert.equal(made.resolverClosed(), true);
});

interface World {
  readonly addresses: readonly string[] | Failure;
  readonly allowed: readonly string[];
}

async function make(context: TestContext, { addresses, allowed }: World) {
  const origins: Peer[] = [];
  const port = await serve(context, origins);
  const asked: string[] = [];
  const resolved: string[] = [];
  const connected: number[] = [];
  let closed = false;
  const { tls, secured, sessions } = fakeTls();
  const forwarder = new Forwarder({
    ...around(),
    resolver: {
      async resolve(host) {
        resolved.push(host);
        if (addresses instanceof Failure) throw addresses;
        return addresses.map(literal);
      },
      servers: () => [],
      close: () => {
        closed = true;
      },
    },
    tls,
    onConnected: (ms) => void connected.push(ms),
  });
  context.after(() => forwarder.close());
  function guard(address: IpAddress): AddressDecision {
    asked.push(address.text);
    return allowed.includes(address.text)
      ? { verdict: "allow", dialable: { address, port } as Dialable }
      : REFUSED;
  }
  function route(host: string, scheme: "http" | "https" = "https", poolKey = "key"): Route {
    const permit = { destination: destination(host, port), scheme } as unknown as Permit;
    return { permit, guard, poolKey, freshKey: `${poolKey} fresh`, alpn: ["http/1.1"] };
  }
  return {
    forwarder,
    route,
    origins,
    asked,
    resolved,
    connected,
    tls,
    secured,
    sessions,
    resolverClosed: () => closed,
  };
}

async function serve(context: TestContext, origins: Peer[]): Promise<number> {
  const server = createServer({ allowHalfOpen: true }, (socket) => origins.push(listenTo(socket)));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  context.after(() => {
    for (const { socket } of origins) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** Writes down what it is asked to secure, and leaves the bytes in clear. */
function fakeTls() {
  const secured: string[] = [];
  const sessions: (string | undefined)[] = [];
  const tls = {
    failure: undefined as Failure | undefined,
    async secure(socket: object, host: Destination, { alpn, session, onSession }: SecureOptions) {
      if (tls.failure !== undefined) {
        (socket as TLSSocket).destroy();
        throw tls.failure;
      }
      secured.push(`${host.kind === "name" ? host.host : host.address.text} ${alpn.join()}`);
      sessions.push(session?.toString());
      onSession?.(Buffer.from(`session ${sessions.length - 1}`));
      return socket as TLSSocket;
    },
  };
  return { tls: tls as typeof tls & Parts, secured, sessions };
}

type Parts = ConstructorParameters<typeof Forwarder>[0]["tls"];

/** One whole exchange; the connection rests after it. */
async function exchange({ forwarder, origins }: Awaited<ReturnType<typeof make>>, route: Route) {
  const acquired = await forwarder.connect(route, NEVER);
  assert.ok(acquired.kind === "ready");
  const heard = hearAnswer();
  acquired.upstream.send(request(), NO_BODY, heard);
  acquired.upstream.end([]);
  await eventually(() => origins.length > 0);
  origins.at(-1)?.send(OK);
  await heard.over();
  assert.equal(heard.body, "ok");
  return acquired.upstream;
}

function destination(host: string, port: number): Destination {
  const name = parseHostname(host);
  return name === undefined
    ? { kind: "address", address: literal(host), port }
    : { kind: "name", host: name, port };
}

function literal(text: string): IpAddress {
  const address = parseIpAddress(text);
  assert.ok(address !== undefined);
  return address;
}
