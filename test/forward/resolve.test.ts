import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import dns from "node:dns/promises";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { type TestContext, test } from "node:test";
import { parseHostname } from "../../src/base/hostname.ts";
import { parseIpAddress } from "../../src/base/ip.ts";
import { createResolver, type Resolver, type ResolverOptions } from "../../src/forward/resolve.ts";
import type { Hostname, IpAddress } from "../../src/model/exchange.ts";
import { Failure } from "../../src/model/failure.ts";
import { createDnsServer, type DnsServer } from "../support/dns-server.ts";
import type { Namespace } from "../support/namespace.ts";

const LIMITS = { dns_min_ttl: 1_000, dns_max_ttl: 300_000, dns_addresses: 32 };
const NEVER = new AbortController().signal;
const REFUSED = { name: "Failure", code: "E_RESOLVE", fault: "upstream" };

test("resolve asks for both families once and gives IPv6 and IPv4 in turn", async (context) => {
  const { server, resolve } = await setUp(context);
  server.set("api.example.com", { A: ["192.0.2.1", "192.0.2.2"], AAAA: ["2001:db8::1"] });
  assert.deepEqual(await resolve("api.example.com"), ["2001:db8::1", "192.0.2.1", "192.0.2.2"]);
  assert.deepEqual(typesOf(server), ["A", "AAAA"]);
});

test("resolve asks for the very name: no search list, no hosts file", async (context) => {
  const { server, resolve } = await setUp(context);
  // In every hosts file, and subject to `ndots` everywhere else.
  server.set("localhost", { A: ["192.0.2.1"] });
  server.set("single", { A: ["192.0.2.2"] });
  assert.deepEqual(await resolve("single"), ["192.0.2.2"]);
  await assert.rejects(resolve("absent"), REFUSED);
  const names = new Set(server.queries.map(({ name }) => name));
  assert.deepEqual([...names], ["single", "absent"]);
});

test("resolve unwraps IPv4-mapped answers, so that what is judged is what is dialled", async (context) => {
  const { server, resolve } = await setUp(context);
  server.set("mapped.example", { AAAA: ["::ffff:127.0.0.1"], A: ["127.0.0.1"] });
  assert.deepEqual(await resolve("mapped.example"), ["127.0.0.1"]);
});

test("resolve follows aliases to their address, and ends where they loop or lead nowhere", async (context) => {
  const { server, resolve } = await setUp(context);
  server.set("alias.example", { cname: "target.example" });
  server.set("target.example", { A: ["192.0.2.9"] });
  assert.deepEqual(await resolve("alias.example"), ["192.0.2.9"]);
  server.set("one.example", { cname: "two.example" });
  server.set("two.example", { cname: "one.example" });
  await assert.rejects(resolve("one.example"), REFUSED);
  server.set("dangling.example", { cname: "absent.example" });
  await assert.rejects(resolve("dangling.example"), REFUSED);
});

test("resolve takes no more addresses than the limit, of both families", async (context) => {
  const { server, resolve } = await setUp(context);
  const A = Array.from({ length: 1_000 }, (_, index) => `192.0.${index >> 8}.${index & 255}`);
  // So many come over TCP.
  server.set("many.example", { A, AAAA: ["2001:db8::1", "2001:db8::2"], truncate: true });
  const addresses = await resolve("many.example");
  assert.equal(addresses.length, 32);
  assert.deepEqual(
    addresses.slice(0, 4).filter((text) => text.includes(":")),
    ["2001:db8::1", "2001:db8::2"],
  );
  assert.ok(server.queries.some(({ transport }) => transport === "tcp"));
});

test("resolve gives what it has where one family fails", async (context) => {
  for (const failing of [4, 6]) {
    fakeChannel(context, (_host, family) => {
      if (family === failing) throw Object.assign(new Error("queryA ESERVFAIL"), { code: "ESERVFAIL" });
      return [{ address: family === 6 ? "2001:db8::1" : "192.0.2.1", ttl: 60 }];
    });
    const { resolve } = over(context, {});
    assert.deepEqual(await resolve("half.example"), [failing === 4 ? "2001:db8::1" : "192.0.2.1"]);
    context.mock.restoreAll();
  }
});

test("resolve waits only a moment for a family that is never answered", async (context) => {
  fakeChannel(context, (_host, family) =>
    family === 6 ? new Promise(() => undefined) : [{ address: "192.0.2.1", ttl: 60 }],
  );
  const { resolve } = over(context, {});
  const started = performance.now();
  assert.deepEqual(await resolve("half.example"), ["192.0.2.1"]);
  assert.ok(performance.now() - started < 1_200);
});

test("resolve fails on no such name, no data, SERVFAIL and REFUSED, and asks again only after a moment", async (context) => {
  const { server, resolve, clock } = await setUp(context);
  server.set("empty.example", {});
  server.set("servfail.example", { rcode: "SERVFAIL" });
  server.set("refused.example", { rcode: "REFUSED" });
  for (const name of ["absent.example", "empty.example", "servfail.example", "refused.example"]) {
    await assert.rejects(resolve(name), { ...REFUSED, message: "The name of the upstream does not resolve" });
    const asked = server.queries.length;
    clock.now += 4_999;
    await assert.rejects(resolve(name), REFUSED);
    assert.equal(server.queries.length, asked, name);
    server.set(name, { A: ["192.0.2.1"] });
    clock.now += 1;
    assert.deepEqual(await resolve(name), ["192.0.2.1"]);
  }
});

test("resolve fails at once where no server listens", async (context) => {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address() as AddressInfo;
  probe.close();
  const { resolve } = over(context, { servers: [`127.0.0.1:${port}`] });
  const started = performance.now();
  await assert.rejects(resolve("api.example.com"), REFUSED);
  assert.ok(performance.now() - started < 1_000);
});

test("resolve fails within five seconds where a server says nothing", async (context) => {
  const { server, resolve } = await setUp(context);
  server.set("silent.example", { silent: true });
  context.mock.timers.enable({ apis: ["setTimeout"] });
  let over = false;
  const pending = assert.rejects(resolve("silent.example"), REFUSED).finally(() => {
    over = true;
  });
  context.mock.timers.tick(4_499);
  await new Promise(setImmediate);
  assert.equal(over, false);
  context.mock.timers.tick(1);
  await pending;
});

test("resolve keeps an answer for its TTL: a server that changes its mind changes nothing before", async (context) => {
  const { server, resolve, clock } = await setUp(context);
  server.set("rebind.example", { A: ["192.0.2.1"], ttl: 60 }, { A: ["127.0.0.1"], ttl: 60 });
  assert.deepEqual(await resolve("rebind.example"), ["192.0.2.1"]);
  clock.now += 59_999;
  assert.deepEqual(await resolve("rebind.example"), ["192.0.2.1"]);
  clock.now += 1;
  assert.deepEqual(await resolve("rebind.example"), ["127.0.0.1"]);
});

test("resolve keeps the TTL within its limits", async (context) => {
  const { server, resolve, clock } = await setUp(context);
  server.set("zero.example", { A: ["192.0.2.1"], ttl: 0 }, { A: ["192.0.2.2"], ttl: 0 });
  server.set("year.example", { A: ["192.0.2.1"], ttl: 31_536_000 }, { A: ["192.0.2.2"] });
  const [zero, year] = ["zero.example", "year.example"];
  await Promise.all([resolve(zero), resolve(year)]);
  clock.now += 999;
  assert.deepEqual(await resolve(zero), ["192.0.2.1"]);
  clock.now += 1;
  assert.deepEqual(await resolve(zero), ["192.0.2.2"]);
  clock.now += 298_999;
  assert.deepEqual(await resolve(year), ["192.0.2.1"]);
  clock.now += 1;
  assert.deepEqual(await resolve(year), ["192.0.2.2"]);
});

test("resolve asks once for many who want the same name, and none of them can call it off for the others", async (context) => {
  const { server, resolver } = await setUp(context);
  server.set("api.example.com", { A: ["192.0.2.1"] });
  const controller = new AbortController();
  const host = hostname("api.example.com");
  const [first, ...others] = [controller.signal, NEVER, NEVER].map((signal) =>
    resolver.resolve(host, signal),
  );
  controller.abort();
  await assert.rejects(first ?? Promise.resolve(), { code: "E_RESOLVE", fault: "client" });
  for (const addresses of await Promise.all(others)) assert.deepEqual(textsOf(addresses), ["192.0.2.1"]);
  assert.deepEqual(typesOf(server), ["A", "AAAA"]);
});

test("resolve passes on the Failure that its signal was aborted with, and then asks nothing", async (context) => {
  const { server, resolver } = await setUp(context);
  const failure = new Failure("E_TIMEOUT", "upstream", "Over");
  const aborted = resolver.resolve(hostname("api.example.com"), AbortSignal.abort(failure));
  await assert.rejects(aborted, (error) => error === failure);
  assert.equal(server.queries.length, 0);
});

test("resolve answers from the configured hosts without a query", async (context) => {
  const address = parseIpAddress("10.20.0.5");
  assert.ok(address !== undefined);
  const hosts = new Map([
    ["api.internal.example", [address]],
    ["nowhere.example", []],
  ]);
  const { server, resolve } = await setUp(context, { hosts });
  assert.deepEqual(await resolve("api.internal.example"), ["10.20.0.5"]);
  await assert.rejects(resolve("nowhere.example"), REFUSED);
  assert.equal(server.queries.length, 0);
});

test("resolve remembers at most 4,096 names, the least recently used of which go first", async (context) => {
  const asked: string[] = [];
  fakeChannel(context, (host) => {
    asked.push(host);
    return [{ address: "192.0.2.1", ttl: 60 }];
  });
  const { resolve } = over(context, {});
  for (let index = 0; index < 4_096; index++) await resolve(`n${index}.example`);
  await resolve("n0.example");
  await resolve("one-more.example");
  asked.length = 0;
  await resolve("n0.example");
  assert.deepEqual(asked, []);
  await resolve("n1.example");
  assert.deepEqual(asked, ["n1.example", "n1.example"]);
});

test("resolve drops what is no address, and fails where the system throws", async (context) => {
  fakeChannel(context, (host) => {
    if (host === "throws.example") throw new TypeError("Not a name");
    return [
      { address: "fe80::1%eth0", ttl: 60 },
      { address: "0x7f.1", ttl: 60 },
    ];
  });
  const { resolve } = over(context, {});
  await assert.rejects(resolve("odd.example"), REFUSED);
  await assert.rejects(resolve("throws.example"), REFUSED);
});

test("servers gives the endpoints in use, canonically", (context) => {
  const servers = ["10.0.0.53", "10.0.0.54:5353", "2001:DB8:0::53", "[2001:db8::54]:5353"];
  const { resolver } = over(context, { servers });
  assert.deepEqual(resolver.servers(), [
    "10.0.0.53 53",
    "10.0.0.54 5353",
    "2001:db8::53 53",
    "2001:db8::54 5353",
  ]);
});

test("servers follows the system's list after a minute, a configured one never", (context) => {
  let system = ["192.0.2.53", "fe80::53%eth0"];
  fakeChannel(
    context,
    () => [],
    () => system,
  );
  const { resolver, clock } = over(context, {});
  assert.deepEqual(resolver.servers(), ["192.0.2.53 53", "fe80::53 53"]);
  system = ["192.0.2.54"];
  clock.now += 60_000;
  assert.deepEqual(resolver.servers(), ["192.0.2.53 53", "fe80::53 53"]);
  clock.now += 1;
  assert.deepEqual(resolver.servers(), ["192.0.2.54 53"]);
});

test("close ends what is under way", async (context) => {
  const { server, resolver, resolve } = await setUp(context);
  server.set("silent.example", { silent: true });
  const pending = assert.rejects(resolve("silent.example"), REFUSED);
  resolver.close();
  await pending;
});

interface Rig {
  readonly resolver: Resolver;
  readonly clock: { now: number };
  /** Canonical texts. */
  resolve(name: string): Promise<string[]>;
}

async function setUp(
  context: TestContext,
  options: Partial<ResolverOptions> = {},
): Promise<Rig & { server: DnsServer }> {
  const { net, endpoint } = loopback();
  const server = await createDnsServer(net, "127.0.0.1");
  context.after(() => server.close());
  return { server, ...over(context, { servers: [endpoint()], ...options }) };
}

function over(context: TestContext, options: Partial<ResolverOptions>): Rig {
  const clock = { now: 1_000 };
  const resolver = createResolver({
    servers: [],
    hosts: new Map(),
    limits: LIMITS,
    now: () => clock.now,
    ...options,
  });
  context.after(() => resolver.close());
  return {
    resolver,
    clock,
    resolve: async (name) => textsOf(await resolver.resolve(hostname(name), NEVER)),
  };
}

/** Where a test's DNS server lives: one free port of the loopback interface, the same for UDP and TCP. */
function loopback(): { net: Namespace; endpoint(): string } {
  let port = 0;
  let server = createServer();
  const net = {
    /** A port that both protocols have free. */
    async bind(host: string) {
      for (;;) {
        server = createServer().listen(0, host);
        await once(server, "listening");
        port = (server.address() as AddressInfo).port;
        const datagrams = createSocket("udp4").bind(port, host);
        const bound = await once(datagrams, "listening").catch(() => undefined);
        if (bound !== undefined) return datagrams;
        server.close();
      }
    },
    async listen() {
      return server;
    },
  };
  return { net: net as unknown as Namespace, endpoint: () => `127.0.0.1:${port}` };
}

type Records = { readonly address: string; readonly ttl: number }[];

/** Puts `answer` in the place of the network. */
function fakeChannel(
  context: TestContext,
  answer: (host: string, family: 4 | 6) => Records | Promise<Records>,
  servers: () => string[] = () => [],
): void {
  const { prototype } = dns.Resolver;
  context.mock.method(prototype, "resolve4", (host: string) => answer(host, 4));
  context.mock.method(prototype, "resolve6", (host: string) => answer(host, 6));
  // As the system does it: each channel reads the list when it is made, or at least before it is asked again.
  const lists = new WeakMap<object, string[]>();
  context.mock.method(prototype, "getServers", function (this: object) {
    const list = lists.get(this) ?? servers();
    lists.set(this, list);
    return list;
  });
}

function hostname(text: string): Hostname {
  const host = parseHostname(text);
  assert.ok(host !== undefined);
  return host;
}

function textsOf(addresses: readonly IpAddress[]): string[] {
  return addresses.map(({ text }) => text);
}

function typesOf(server: DnsServer): string[] {
  return server.queries.map(({ type }) => type).sort();
}
