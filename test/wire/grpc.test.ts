/** Who speaks gRPC, and how its messages are encoded. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { grpcMessage, isGrpc } from "../../src/wire/grpc.ts";

test("isGrpc knows gRPC by its content type, and gRPC-Web is another thing", () => {
  const speaks = (value: string, key = "content-type") => isGrpc([{ name: key, key, value }]);
  for (const type of ["application/grpc", "application/grpc+proto", "Application/GRPC;charset=utf-8"]) {
    assert.ok(speaks(type), type);
  }
  for (const type of ["application/grpc-web", "application/grpcx", "text/application/grpc", ""]) {
    assert.ok(!speaks(type), type);
  }
  assert.ok(!speaks("application/grpc", "accept"));
  assert.ok(!isGrpc([]));
});

test("grpcMessage encodes what is not printable, and the percent sign", () => {
  assert.equal(grpcMessage("100 % of é\n~"), "100 %25 of %C3%A9%0A~");
  assert.equal(grpcMessage("\u{1f600}"), "%F0%9F%98%80");
});

test("grpcMessage is undone by decoding", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), (text) => {
      const encoded = grpcMessage(text);
      assert.match(encoded, /^[ -~]*$/);
      assert.equal(decodeURIComponent(encoded), text);
    }),
  );
});
