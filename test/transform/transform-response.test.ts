import assert from "node:assert/strict";
import { test } from "node:test";
import type { Field, ResponseHead } from "../../src/model/exchange.ts";
import { transformResponse, transformResponseTrailers } from "../../src/transform/transform-response.ts";

test("transformResponse: keeps order, case and repetition (F12)", () => {
  const kept = ["Set-Cookie: a=1", "set-cookie: b=2", "Trailer: X-T", "SET-COOKIE: c=3", "Content-Length: 3"];
  const out = transformResponse(headOf(200, kept));
  assert.deepEqual(lines(out), kept);
  assert.deepEqual([out.status, out.phrase, out.minor], [200, "Fine", 1]);
});

test("transformResponse: keeps what the upstream marked as not to be remembered", () => {
  assert.deepEqual(transformResponse({ ...headOf(200, ["X: 1"]), sensitive: ["x"] }).sensitive, ["x"]);
});

test("transformResponse: drops the upstream's hop and what it nominates (F04)", () => {
  const out = transformResponse(
    headOf(200, [
      "Connection: close, x-foo",
      "X-Foo: 1",
      "Keep-Alive: timeout=5",
      "Transfer-Encoding: chunked",
      "Upgrade: h2c",
      "Proxy-Authenticate: Basic",
      "X-Bar: 1",
    ]),
  );
  assert.deepEqual(lines(out), ["X-Bar: 1"]);
});

test("transformResponse: drops Alt-Svc, which would lead the client past the gate", () => {
  assert.deepEqual(lines(transformResponse(headOf(200, ['Alt-Svc: h3=":443"', "X: 1"]))), ["X: 1"]);
});

test("transformResponse: keeps the upgrade of a 101 and of nothing else", () => {
  const fields = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Accept: x"];
  assert.deepEqual(lines(transformResponse(headOf(101, fields))), [
    "Upgrade: websocket",
    "Sec-WebSocket-Accept: x",
  ]);
  assert.deepEqual(lines(transformResponse(headOf(426, fields))), ["Sec-WebSocket-Accept: x"]);
});

test("transformResponseTrailers: drops what is no field of the message", () => {
  const trailers = headOf(200, ["X-Checksum: 1", "Connection: close", "Alt-Svc: clear"]).fields;
  assert.deepEqual(
    transformResponseTrailers(trailers).map(({ name }) => name),
    ["X-Checksum"],
  );
  assert.deepEqual(transformResponseTrailers([]), []);
});

function headOf(status: number, text: readonly string[]): ResponseHead {
  const fields = text.map((line): Field => {
    const colon = line.indexOf(":");
    const name = line.slice(0, colon);
    return { name, key: name.toLowerCase(), value: line.slice(colon + 2) };
  });
  return { status, phrase: "Fine", minor: 1, fields };
}

function lines({ fields }: ResponseHead): readonly string[] {
  return fields.map(({ name, value }) => `${name}: ${value}`);
}
