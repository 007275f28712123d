/** The base-URL door: the first segment is the destination, and all else is as it is at every door. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { head } from "../support/ask.ts";
import { askReverse, dialReverse, OWN_HOST, REVERSE_LISTEN } from "../support/base-url.ts";
import type { Gate } from "../support/gate.ts";
import { SECRET, startGate } from "../support/gate.ts";
import { oneValue, statusOf, valuesOf } from "../support/message-reader.ts";
import type { Origin } from "../support/origin.ts";
import { createOrigin, respond } from "../support/origin.ts";
import type { Packets } from "../support/packets.ts";
import { watchPackets } from "../support/packets.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";
import { assertFailed, assertRefused } from "../support/refusal.ts";

const HOST = "api.example.com";
const NARROW = "narrow.example.com";

let internet: Internet;
let gate: Gate;
let origin: Origin;
let other: Origin;
let packets: Packets;
/** What the origin answers next, where it is not a small 200. */
let reply: string | undefined;

before(async () => {
  internet = await createInternet();
  for (const name of [HOST, NARROW]) internet.dns.set(name, { A: [PUBLIC_V4] });
  internet.dns.set("plain.example.com", { A: ["11.0.0.12"] });
  internet.dns.set("inner.example.com", { A: ["10.0.0.5"] });
  internet.dns.set("down.example.com", { A: ["11.0.0.13"] });
  internet.dns.set("rebound.example.com", { A: ["127.0.0.1"] });
  origin = await createOrigin(internet, {
    tls: [HOST, NARROW],
    bound: true,
    answer: () => reply ?? respond("ok"),
  });
  other = await createOrigin(internet, { address: "11.0.0.12", port: 8443, tls: ["plain.example.com"] });
  packets = await watchPackets(internet);
  const transform = { Authorization: `Bearer ${SECRET}` };
  gate = await startGate(internet, {
    ...REVERSE_LISTEN,
    network: {
      allowlist: [
        { domain: HOST, transform },
        { domain: NARROW, transform, methods: ["GET"], paths: ["/v1/.*"] },
        { domain: "plain.example.com", ports: [8443] },
        { domain: "inner.example.com" },
        { domain: "rebound.example.com" },
        { domain: "down.example.com" },
      ],
    },
  });
});
after(() => internet.close());

describe("a request", () => {
  test("reaches its destination by TLS, with the secret exactly once, whatever the client sent itself", async () => {
    const own = ["Authorization: Bearer mine", "AUTHORIZATION: Bearer mine too"];
    const answer = await askReverse(internet, `GET /${HOST}/v1/me?x=%41+b`, own);
    assert.deepEqual([statusOf(answer), answer.body], [200, "ok"]);
    const request = origin.requests.at(-1);
    assert.ok(request);
    assert.equal(request.start, "GET /v1/me?x=%41+b HTTP/1.1");
    assert.deepEqual(valuesOf(request, "host"), [HOST]);
    assert.deepEqual(valuesOf(request, "authorization"), [`Bearer ${internet.canary.secret}`]);
  });

  test("is recorded as one of this door, its path without the segment, and counted", async () => {
    await askReverse(internet, `POST /${HOST}/recorded?secret=1`, ["Content-Length: 2"], { body: "hi" });
    const record = await gate.record({ path: "/recorded" });
    const { listener, protocol, visibility, method, host, port, verdict, rule, injected, status } = record;
    assert.deepEqual(
      { listener, protocol, visibility, method, host, port, verdict, rule, injected, status },
      {
        listener: "reverse",
        protocol: "http/1.1",
        visibility: "request",
        method: "POST",
        host: HOST,
        port: 443,
        verdict: "allow",
        rule: HOST,
        injected: ["Authorization"],
        status: 200,
      },
    );
    assert.deepEqual([record["bytes_out"], record["bytes_in"]], [2, 2]);
    assert.equal(gate.records.filter(({ path }) => path === "/recorded").length, 1);
    const metrics = await gate.metrics();
    assert.ok(metrics.sum("sallyport_exchanges_total", { listener: "reverse", verdict: "allow" }) >= 1);
  });
});

describe("what leaves", () => {
  for (const [path, target] of [
    ["", "/"],
    ["/", "/"],
    ["?a=b", "/?a=b"],
    ["/a//b/", "/a//b/"],
    ["//evil.example.org/x", "//evil.example.org/x"],
    ["/a\\..\\b", "/a\\..\\b"],
    ["/a/../b/./c", "/a/../b/./c"],
    ["/%2e%2e/%2F%5c%00", "/%2e%2e/%2F%5c%00"],
    ["/a;b=c,d?e=/f//g&h=http://i/", "/a;b=c,d?e=/f//g&h=http://i/"],
    ["/x|y^z`{}\"'<>", "/x|y^z`{}\"'<>"],
  ] as const) {
    test(`has its path byte for byte: ${path || "none"}`, async () => {
      assert.equal(statusOf(await askReverse(internet, `GET /${HOST}${path}`)), 200);
      assert.equal(origin.requests.at(-1)?.start, `GET ${target} HTTP/1.1`);
    });
  }

  test("keeps the order, the case and the repetition of its fields", async () => {
    const lines = ["x-Mixed: 1", "ACCEPT: a", "X-Twice: one", "X-twice: two", "Cookie: a=b", "X-Latin: \xe9"];
    await askReverse(internet, `GET /${HOST}/fields`, lines);
    const fields = origin.requests.at(-1)?.fields.filter(([name]) => !/^(host|authorization)$/i.test(name));
    assert.deepEqual(fields, [
      ["x-Mixed", "1"],
      ["ACCEPT", "a"],
      ["X-Twice", "one"],
      ["X-Twice", "two"],
      ["Cookie", "a=b"],
      ["X-Latin", "\xe9"],
    ]);
  });

  test("goes to another port, which Host names", async () => {
    assert.equal(statusOf(await askReverse(internet, "GET /plain.example.com:8443/")), 200);
    assert.deepEqual(valuesOf(other.requests.at(-1) ?? { fields: [] }, "host"), ["plain.example.com:8443"]);
  });

  test("is for a host in any case, with or without the last dot", async () => {
    for (const name of ["API.Example.COM", `${HOST}.`, `${HOST}:443`]) {
      assert.equal(statusOf(await askReverse(internet, `GET /${name}/`)), 200);
      assert.deepEqual(valuesOf(origin.requests.at(-1) ?? { fields: [] }, "host"), [HOST]);
    }
  });
});

describe("a response", () => {
  after(() => {
    reply = undefined;
  });

  test("keeps the order, the case and the repetition of its fields", async () => {
    reply = respond("x", "203 Rather OK", [
      "x-Mixed: 1",
      "WWW-Authenticate: a",
      "x-mixed: 2",
      "WWW-Authenticate: b",
    ]);
    const answer = await askReverse(internet, `GET /${HOST}/`);
    assert.match(answer.start, /^HTTP\/1\.1 203 Rather OK$/);
    const kept = answer.fields.filter(([name]) => /mixed|www/i.test(name));
    assert.deepEqual(kept, [
      ["x-Mixed", "1"],
      ["WWW-Authenticate", "a"],
      ["x-mixed", "2"],
      ["WWW-Authenticate", "b"],
    ]);
    assert.deepEqual(valuesOf(answer, "date"), []);
  });

  test("to HEAD has the length and no body; 204 and 304 have none either", async () => {
    reply = head("HTTP/1.1 200 OK", "Content-Length: 500");
    const answer = await askReverse(internet, `HEAD /${HOST}/`, [], { bodiless: true });
    assert.deepEqual([oneValue(answer, "content-length"), answer.body], ["500", ""]);
    for (const status of ["204 No Content", "304 Not Modified"]) {
      reply = head(`HTTP/1.1 ${status}`);
      const wire = await dialReverse(internet);
      assert.equal((await wire.send(head(`GET /${HOST}/ HTTP/1.1`, OWN_HOST))).body, "");
      reply = respond("next");
      assert.equal((await wire.send(head(`GET /${HOST}/ HTTP/1.1`, OWN_HOST))).body, "next");
      wire.destroy();
    }
  });

  test("in chunks keeps them and its trailers; a client of HTTP/1.0 gets the body without", async () => {
    reply = `${head("HTTP/1.1 200 OK", "Transfer-Encoding: chunked", "Trailer: X-Sum")}3\r\nabc\r\n0\r\nX-Sum: 6\r\n\r\n`;
    const answer = await askReverse(internet, `GET /${HOST}/`);
    assert.deepEqual([answer.body, answer.trailers], ["abc", [["X-Sum", "6"]]]);
    const wire = await dialReverse(internet);
    const old = await wire.send(head(`GET /${HOST}/ HTTP/1.0`, OWN_HOST));
    assert.deepEqual(
      [old.body, oneValue(old, "transfer-encoding"), await wire.closed()],
      ["abc", undefined, "end"],
    );
  });
});

describe("a response that names places", () => {
  after(() => {
    reply = undefined;
  });

  test("and redirects within its host stays in the base URL; another host stays as it is", async () => {
    for (const [location, expected] of [
      [`https://${HOST}/next?a=b#c`, `/${HOST}/next?a=b#c`],
      [`https://${HOST}:443`, `/${HOST}/`],
      [`//${HOST}/next`, `/${HOST}/next`],
      ["/next", `/${HOST}/next`],
      ["next", `/${HOST}/v1/next`],
      ["../../next", `/${HOST}/next`],
      ["?a=b", "?a=b"],
      ["https://files.example.net/x", "https://files.example.net/x"],
      ["//files.example.net/x", "https://files.example.net/x"],
      [`http://${HOST}/plain`, `http://${HOST}/plain`],
      [`https://${HOST}:8443/x`, `https://${HOST}:8443/x`],
      [`https://a@${HOST}/x`, `https://a@${HOST}/x`],
    ] as const) {
      reply = respond("", "302 Found", [`Location: ${location}`]);
      assert.equal(
        oneValue(await askReverse(internet, `GET /${HOST}/v1/me`), "location"),
        expected,
        location,
      );
    }
  });

  test("and sets cookies for its own segment alone", async () => {
    for (const [cookie, expected] of [
      ["a=b; Path=/; Domain=example.com; Secure; HttpOnly", `a=b; Secure; HttpOnly; Path=/${HOST}`],
      ["a=b; path=/v1; SameSite=Lax", `a=b; SameSite=Lax; Path=/${HOST}/v1`],
      ["a=b;DOMAIN=.example.com", `a=b; Path=/${HOST}/v1`],
      ["a=b; Path=relative", `a=b; Path=/${HOST}/v1`],
    ] as const) {
      reply = respond("", "200 OK", [`Set-Cookie: ${cookie}`, "Set-Cookie: z=1; Path=/"]);
      const answer = await askReverse(internet, `GET /${HOST}/v1/me`);
      assert.deepEqual(valuesOf(answer, "set-cookie"), [expected, `z=1; Path=/${HOST}`]);
    }
  });
});

describe("a refusal", () => {
  test("is the same as at every door, and sends no packet", async () => {
    await packets.take();
    const answer = await askReverse(internet, "GET /evil.example.org/x");
    assertRefused(answer, { status: 403, reason: "no-rule-matched", host: "evil.example.org", rule: null });
    assert.deepEqual(await packets.take(), []);
    const record = await gate.record({ host: "evil.example.org" });
    assert.deepEqual(
      [record["listener"], record["verdict"], record["reason"], record["path"], record["status"]],
      ["reverse", "deny", "no-rule-matched", "/x", 403],
    );
  });

  for (const [what, start, reason] of [
    ["a port that no rule lists", `GET /${HOST}:8443/`, "no-rule-matched"],
    ["a method that no rule lists", `DELETE /${NARROW}/v1/x`, "no-rule-matched"],
    ["a path that no rule lists", `GET /${NARROW}/v2/x`, "no-rule-matched"],
    ["a path that could be read in two ways", `GET /${NARROW}/v1/../v2`, "path-ambiguous"],
    ["TRACE where a secret is added", `TRACE /${HOST}/`, "method-refused"],
    ["a private address behind a name", "GET /inner.example.com/", "address-not-public"],
    ["a loopback address behind a name", "GET /rebound.example.com/", "loopback"],
    ["a loopback literal", "GET /127.0.0.1:9464/metrics", "loopback"],
    ["localhost", "GET /localhost:9464/metrics", "loopback"],
    ["an IPv6 loopback literal", "GET /[::1]:8081/", "loopback"],
    ["a metadata literal", "GET /169.254.169.254/latest", "address-not-public"],
  ] as const) {
    test(`of ${what} is ${reason}`, async () => {
      assertRefused(await askReverse(internet, start), { status: 403, reason });
    });
  }

  test("of a request with a body is read by a client that still sends it", async () => {
    const wire = await dialReverse(internet);
    const body = "x".repeat(3_000_000);
    wire.write(head("POST /evil.example.org/ HTTP/1.1", OWN_HOST, `Content-Length: ${body.length}`) + body);
    assertRefused(await wire.response(), { status: 403, reason: "no-rule-matched" });
    assert.equal(await wire.closed(), "end");
  });

  test("is not what an upstream's trouble is: that is a failure", async () => {
    assertFailed(await askReverse(internet, "GET /down.example.com/"), 502, "E_CONNECT");
    reply = "garbage\r\n\r\n";
    assertFailed(await askReverse(internet, `GET /${HOST}/`), 502, "E_UPSTREAM_PROTOCOL");
    reply = undefined;
  });
});

describe("at its limits", () => {
  test("a path with nothing in it says how a base URL is written", async () => {
    const answer = await askReverse(internet, "GET /");
    assert.equal(statusOf(answer), 400);
    assert.match(answer.body, /path begins with the host, as in \/api\.example\.com\/v1/);
    const record = await gate.record({ failure: "E_BAD_REQUEST" });
    assert.deepEqual([record["listener"], record["status"], record["host"]], ["reverse", 400, null]);
  });
});
