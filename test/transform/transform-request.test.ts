import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { parseHostname } from "../../src/base/hostname.ts";
import { parseIpAddress } from "../../src/base/ip.ts";
import type { Destination, Field, FieldLines, RequestHead } from "../../src/model/exchange.ts";
import {
  type RequestRewrite,
  transformRequest,
  transformRequestTrailers,
} from "../../src/transform/transform-request.ts";

const TOKEN = { field: "Authorization", key: "authorization", value: "Bearer of-the-gate" };
const API_KEY = { field: "X-Api-Key", key: "x-api-key", value: "key-of-the-gate" };

describe("transformRequest", () => {
  test("leaves method, target and the order of what it keeps", () => {
    const head = headOf(["Accept: */*", "Host: a.example", "X-B: 1", "x-b: 2"], "POST", "/a//b?c=%2F");
    const out = transformRequest(head, rewrite({}));
    assert.deepEqual([out.method, out.target, out.minor], ["POST", "/a//b?c=%2F", 1]);
    assert.deepEqual(lines(out.fields), ["Accept: */*", "Host: a.example", "X-B: 1", "x-b: 2"]);
  });

  test("drops the fields of the client's hop (F03)", () => {
    const hop = [
      "Proxy-Authorization: Basic c2FuZGJveA==",
      "Proxy-Connection: keep-alive",
      "Keep-Alive: timeout=5",
      "TE: trailers",
      "Trailer: X-T",
      "Upgrade: h2c",
      "HTTP2-Settings: AAMAAABk",
      "Connection: Upgrade, HTTP2-Settings",
      "Transfer-Encoding: chunked",
    ];
    const out = transformRequest(headOf(["Host: a.example", ...hop]), rewrite({}));
    assert.deepEqual(lines(out.fields), ["Host: a.example"]);
  });

  test("lets `te: trailers` of HTTP/2 go on", () => {
    const head = headOf(["Host: a.example", "te: trailers"]);
    assert.deepEqual(lines(transformRequest(head, { ...rewrite({}), trailers: true }).fields), [
      "Host: a.example",
      "te: trailers",
    ]);
  });

  test("marks what it injects as what the client marked: not to be remembered", () => {
    const head = headOf(["Host: a.example", "X-Mine: 1"]);
    const injections = [TOKEN, API_KEY];
    assert.equal(transformRequest(head, rewrite({ injections })).sensitive, undefined);
    const marked = transformRequest({ ...head, sensitive: ["x-mine"] }, rewrite({ injections }));
    assert.deepEqual(marked.sensitive, ["x-mine", "authorization", "x-api-key"]);
  });

  test("drops what Connection nominates before it injects, so that ours cannot be nominated away (F01)", () => {
    const head = headOf([
      "Host: a.example",
      "Connection: authorization, x-own",
      "X-Own: 1",
      "Authorization: theirs",
    ]);
    const out = transformRequest(head, rewrite({ injections: [TOKEN] }));
    assert.deepEqual(lines(out.fields), ["Host: a.example", "Authorization: Bearer of-the-gate"]);
  });

  test("replaces every value of the client's own by one of ours (G01)", () => {
    const head = headOf(["Authorization: a", "Host: a.example", "AUTHORIZATION: b", "authorization: c"]);
    const out = transformRequest(head, rewrite({ injections: [TOKEN] }));
    assert.deepEqual(lines(out.fields), ["Host: a.example", "Authorization: Bearer of-the-gate"]);
  });

  test("counts an underscore as a hyphen where a field is injected, and only there (G02)", () => {
    const head = headOf(["Host: a.example", "X_Api_Key: theirs", "X-Api_Key: theirs", "X_Other: 1"]);
    const out = transformRequest(head, rewrite({ injections: [API_KEY] }));
    assert.deepEqual(lines(out.fields), ["Host: a.example", "X_Other: 1", "X-Api-Key: key-of-the-gate"]);
  });
});

describe("transformRequest: host, upgrade, injection", () => {
  test("writes the decided name in the place of the client's spelling of it", () => {
    const head = headOf(["Accept: */*", "HOST: A.Example.:443", "X: 1"]);
    const out = transformRequest(head, rewrite({}));
    assert.deepEqual(lines(out.fields), ["Accept: */*", "HOST: a.example", "X: 1"]);
  });

  test("names the host first where an HTTP/1.0 client named none", () => {
    const out = transformRequest(headOf(["X: 1"]), rewrite({}));
    assert.deepEqual(lines(out.fields), ["Host: a.example", "X: 1"]);
  });

  test("writes the port where it is not the scheme's own, and brackets around an IPv6 literal", () => {
    const cases: readonly (readonly [Destination, "http" | "https", string])[] = [
      [named("a.example", 443), "https", "a.example"],
      [named("a.example", 443), "http", "a.example:443"],
      [named("a.example", 80), "http", "a.example"],
      [named("a.example", 8443), "https", "a.example:8443"],
      [literal("11.0.0.10", 80), "http", "11.0.0.10"],
      [literal("2001:4860::8", 443), "https", "[2001:4860::8]"],
      [literal("2001:4860::8", 8443), "https", "[2001:4860::8]:8443"],
    ];
    for (const [destination, scheme, expected] of cases) {
      const out = transformRequest(headOf(["Host: x"]), rewrite({ destination, scheme }));
      assert.deepEqual(lines(out.fields), [`Host: ${expected}`]);
    }
  });

  test("keeps nothing of an upgrade but a WebSocket's (F09)", () => {
    const head = headOf(["Host: a.example", "Connection: upgrade", "Upgrade: websocket"]);
    assert.deepEqual(lines(transformRequest(head, rewrite({ upgrade: true })).fields), [
      "Host: a.example",
      "Upgrade: websocket",
    ]);
    assert.deepEqual(lines(transformRequest(head, rewrite({})).fields), ["Host: a.example"]);
  });
});

describe("transformRequest: any head", () => {
  test("whatever the client sends, each injected field leaves exactly once with our value", () => {
    const name = fc.constantFrom(
      "Authorization",
      "AUTHORIZATION",
      "X-Api-Key",
      "x_api_key",
      "Connection",
      "Host",
      "A",
    );
    const value = fc.constantFrom(
      "theirs",
      "authorization",
      "x-api-key, authorization",
      "close",
      "a.example",
    );
    fc.assert(
      fc.property(fc.array(fc.tuple(name, value), { maxLength: 12 }), (pairs) => {
        const head = headOf(pairs.map(([left, right]) => `${left}: ${right}`));
        const { fields } = transformRequest(head, rewrite({ injections: [TOKEN, API_KEY] }));
        for (const { key, value: ours } of [TOKEN, API_KEY]) {
          const found = fields.filter((field) => field.key.replaceAll("_", "-") === key);
          assert.deepEqual(
            found.map((field) => field.value),
            [ours],
          );
        }
        assert.equal(fields.filter(({ key }) => key === "host").length, 1);
      }),
    );
  });
});

describe("transformRequestTrailers", () => {
  test("drops an injected field under any spelling and keeps the rest", () => {
    const trailers = fieldsOf(["Authorization: theirs", "X_Api_Key: theirs", "X-Checksum: 1"]);
    assert.deepEqual(lines(transformRequestTrailers(trailers, [TOKEN, API_KEY])), ["X-Checksum: 1"]);
  });

  test("leaves trailers alone where nothing is injected", () => {
    const trailers = fieldsOf(["Authorization: theirs"]);
    assert.deepEqual(transformRequestTrailers(trailers, []), trailers);
    assert.deepEqual(transformRequestTrailers([], [TOKEN]), []);
  });
});

function rewrite(part: Partial<RequestRewrite>): RequestRewrite {
  return { destination: named("a.example", 443), scheme: "https", injections: [], upgrade: false, ...part };
}

function named(name: string, port: number): Destination {
  const host = parseHostname(name);
  assert.ok(host);
  return { kind: "name", host, port };
}

function literal(text: string, port: number): Destination {
  const address = parseIpAddress(text);
  assert.ok(address);
  return { kind: "address", address, port };
}

function headOf(text: readonly string[], method = "GET", target = "/"): RequestHead {
  return { method, target, minor: 1, fields: fieldsOf(text) };
}

function fieldsOf(text: readonly string[]): Field[] {
  return text.map((line) => {
    const [name = "", value = ""] = [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)];
    return { name, key: name.toLowerCase(), value };
  });
}

function lines(fields: FieldLines): readonly string[] {
  return fields.map(({ name, value }) => `${name}: ${value}`);
}
