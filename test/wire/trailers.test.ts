import assert from "node:assert/strict";
import { test } from "node:test";
import { isTrailer } from "../../src/wire/trailers.ts";
import { field } from "./support.ts";

test("I05 isTrailer() refuses what frames, routes, authenticates or modifies", () => {
  const names = [
    "Transfer-Encoding",
    "CONTENT-LENGTH",
    "Content-Type",
    "content_length",
    "Host",
    "Connection",
    "Authorization",
    "Proxy-Authorization",
    "Set-Cookie",
    "Cookie",
    "If-Match",
    "X-Forwarded-For",
    "X_Http_Method_Override",
    "X-Forwarded-Method",
    "X-Rewrite-URI",
    "Trailer",
    "Cache-Control",
  ];
  for (const name of names) {
    assert.equal(isTrailer(field(name, "a")), false, name);
  }
});

test("I05 isTrailer() lets sums, statuses and anything else pass", () => {
  for (const name of [
    "X-Checksum",
    "Content-Digest",
    "Repr-Digest",
    "grpc-status",
    "Server-Timing",
    "__proto__",
  ]) {
    assert.equal(isTrailer(field(name, "a")), true, name);
  }
});
