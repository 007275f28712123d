import assert from "node:assert/strict";
import { test } from "node:test";
import { methodsInQuery, overrideKind } from "../../src/base/override-fields.ts";

test("overrideKind: fields that name another method", () => {
  for (const key of ["x-http-method-override", "x-http-method", "x-method-override", "x-forwarded-method"]) {
    assert.equal(overrideKind(key), "method", key);
  }
});

test("overrideKind: fields that name another URL", () => {
  for (const key of ["x-original-url", "x-rewrite-url", "x-original-uri", "x-forwarded-uri", "destination"]) {
    assert.equal(overrideKind(key), "url", key);
  }
});

test("overrideKind: G02 an underscore is a hyphen", () => {
  assert.equal(overrideKind("x_http_method_override"), "method");
  assert.equal(overrideKind("x-original_url"), "url");
});

test("overrideKind: all other fields are data", () => {
  for (const key of ["host", "x-forwarded-host", "forwarded", "x-api-key", "date", "", "constructor", "x"]) {
    assert.equal(overrideKind(key), undefined, key);
  }
});

test("methodsInQuery: whatever the parameter is called, and however it is written", () => {
  for (const query of [
    "_method=DELETE",
    "a=1&_METHOD=delete",
    "%5fmethod=%44ELETE",
    "+.method=DELETE",
    "a;_method=delete+",
    "method=Delete",
    "[method=DELETE",
    "_method%00x=DELETE",
    "X-HTTP-Method-Override=DELETE",
    "x.http.method=DELETE",
    "x_http_verb_override=DELETE",
  ]) {
    assert.deepEqual(methodsInQuery(`/x?${query}`), ["DELETE"], query);
  }
});

test("methodsInQuery: nothing else is a method", () => {
  for (const target of [
    "/_method=DELETE",
    "/?method=flickr.photos",
    "/?methods=DELETE",
    "/?_method",
    "/?a=%6d",
  ])
    assert.deepEqual(methodsInQuery(target), [], target);
});
