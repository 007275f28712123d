/** What belongs to one hop stays there; everything else arrives as it was sent (F01 to F12). */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { askInside, askPlain, head } from "../support/ask.ts";
import type { Gate } from "../support/gate.ts";
import { SECRET, startGate } from "../support/gate.ts";
import { oneValue, statusOf, valuesOf } from "../support/message-reader.ts";
import type { Origin } from "../support/origin.ts";
import { createOrigin, respond } from "../support/origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";

const HOST = "api.example.com";
let internet: Internet;
let gate: Gate;
let origin: Origin;
let plain: Origin;
let extra: readonly string[] = [];
let status = "200 OK";

before(async () => {
  internet = await createInternet();
  for (const name of [HOST, "plain.example.com"]) internet.dns.set(name, { A: [PUBLIC_V4] });
  const answer = () => respond("ok", status, extra);
  origin = await createOrigin(internet, { tls: [HOST], bound: true, answer });
  plain = await createOrigin(internet, { answer });
  const allowlist = [
    { domain: HOST, transform: { Authorization: SECRET }, scrub: false },
    { domain: "plain.example.com" },
  ];
  gate = await startGate(internet, { network: { allowlist } });
});
after(() => internet.close());

describe("request fields of one hop", () => {
  for (const [what, sent, gone] of [
    ["Proxy-Authorization", ["Proxy-Authorization: Basic eDp5"], "proxy-authorization"],
    ["Proxy-Connection", ["Proxy-Connection: keep-alive"], "proxy-connection"],
    ["Keep-Alive", ["Connection: keep-alive", "Keep-Alive: timeout=5"], "keep-alive"],
    ["TE", ["TE: gzip"], "te"],
    [
      "Upgrade to h2c",
      ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"],
      "upgrade",
    ],
    [
      "HTTP2-Settings",
      ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AA"],
      "http2-settings",
    ],
    ["Upgrade to TLS", ["Connection: Upgrade", "Upgrade: TLS/1.0"], "upgrade"],
    ["a nominated field", ["Connection: x-mine", "X-Mine: 1"], "x-mine"],
    [
      "a nominated field of a second Connection",
      ["Connection:", "Connection: x-mine", "X-Mine: 1"],
      "x-mine",
    ],
    ["a nominated field in another case", ["Connection: close, X-MINE", "x-mine: 1"], "x-mine"],
  ] as const) {
    test(`${what} stays here`, async () => {
      const bytes = head(
        "GET http://plain.example.com/ HTTP/1.1",
        "Host: plain.example.com",
        "X-Kept: 1",
        ...sent,
      );
      assert.equal(statusOf(await askPlain(internet, bytes)), 200);
      const request = plain.requests.at(-1);
      assert.ok(request);
      assert.deepEqual(valuesOf(request, gone), []);
      assert.deepEqual(valuesOf(request, "x-kept"), ["1"]);
    });
  }

  test("nominating the injected field takes the client's value, never ours", async () => {
    const lines = ["Connection: authorization, cookie", "Authorization: mine", "Cookie: a=b"];
    await askInside(internet, gate, HOST, head("GET / HTTP/1.1", `Host: ${HOST}`, ...lines));
    const request = origin.requests.at(-1);
    assert.ok(request);
    assert.deepEqual(valuesOf(request, "authorization"), [internet.canary.secret]);
    assert.deepEqual(valuesOf(request, "cookie"), []);
  });
});

describe("everything else in a request", () => {
  test("arrives in its order, its spelling and its number, with nothing added", async () => {
    const fields = [
      ["Host", "plain.example.com"],
      ["accept-ENCODING", "zstd, br"],
      ["X-One", "1"],
      ["Cookie", "a=1"],
      ["Cookie", "b=2"],
      ["X-Forwarded-For", "10.0.0.1"],
      ["X-Latin", "caf\xe9"],
      ["__proto__", "x"],
      ["X-Empty", ""],
    ] as const;
    const lines = fields.map(([name, value]) => `${name}: ${value}`);
    await askPlain(internet, head("GET http://plain.example.com/ HTTP/1.1", ...lines));
    assert.deepEqual(plain.requests.at(-1)?.fields, fields);
  });

  for (const target of [
    "/a%2Fb?x=%20&y=[]",
    "/?",
    "/a?b?c#",
    "//evil.example.org/x",
    "/..//x",
    "/a;b=c/",
    "/\xe9",
    "/a\\b",
  ]) {
    test(`the target ${JSON.stringify(target)} leaves as it came, or is refused`, async () => {
      const bytes = head(`GET http://plain.example.com${target} HTTP/1.1`, "Host: plain.example.com");
      const before = plain.requests.length;
      const answer = await askPlain(internet, bytes);
      if (statusOf(answer) === 200) assert.equal(plain.requests.at(-1)?.start, `GET ${target} HTTP/1.1`);
      else assert.deepEqual([statusOf(answer), plain.requests.length], [400, before]);
    });
  }

  test("OPTIONS * stays an asterisk", async () => {
    await askInside(internet, gate, HOST, head("OPTIONS * HTTP/1.1", `Host: ${HOST}`));
    assert.equal(origin.requests.at(-1)?.start, "OPTIONS * HTTP/1.1");
  });

  test("an HTTP/1.0 client without keep-alive is answered and closed", async () => {
    const answer = await askPlain(
      internet,
      head("GET http://plain.example.com/ HTTP/1.0", "Host: plain.example.com"),
    );
    assert.equal(answer.body, "ok");
  });
});

describe("a response", () => {
  test("keeps its fields' order, case and number", async () => {
    extra = [
      "Set-Cookie: a=1",
      "set-cookie: b=2",
      "X-A: 1",
      "Set-Cookie: c=3",
      "WWW-Authenticate: Basic",
      "WWW-Authenticate: Bearer",
    ];
    const answer = await askInside(internet, gate, HOST);
    const kept = answer.fields.filter(([name]) => /cookie|x-a|www/i.test(name));
    assert.deepEqual(
      kept.map(([name, value]) => `${name}: ${value}`),
      extra,
    );
    extra = [];
  });

  test("loses what it nominates for its own hop", async () => {
    extra = [
      "Connection: x-hop, set-cookie",
      "X-Hop: 1",
      "Set-Cookie: a=1",
      "Keep-Alive: timeout=9",
      "X-End: 1",
    ];
    const answer = await askInside(internet, gate, HOST);
    for (const name of ["x-hop", "set-cookie", "keep-alive"])
      assert.deepEqual(valuesOf(answer, name), [], name);
    assert.equal(oneValue(answer, "x-end"), "1");
    extra = [];
  });

  test("keeps an encoding, a length, a validator and an odd status untouched", async () => {
    extra = ["Content-Encoding: zstd", 'ETag: "x"', "Date: Tue, 01 Jan 2030 00:00:00 GMT"];
    status = "299 Sonderfall \xe9";
    const answer = await askInside(internet, gate, HOST);
    assert.equal(answer.start, "HTTP/1.1 299 Sonderfall \xe9");
    assert.deepEqual(
      ["content-encoding", "content-length", "etag"].map((name) => oneValue(answer, name)),
      ["zstd", "2", '"x"'],
    );
    [extra, status] = [[], "200 OK"];
  });
});
