import assert from "node:assert/strict";
import { test } from "node:test";
import { Http1Intake } from "../../src/accept/http1-intake.ts";
import { Failure } from "../../src/model/failure.ts";
import { DEFAULT_LIMITS } from "../../src/model/limits.ts";

const HEAD = "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\n";

function intake(): Http1Intake {
  return new Http1Intake(DEFAULT_LIMITS, "http");
}

test("Http1Intake gives a head once it is whole, however it comes", () => {
  const taken = intake();
  const text = `${HEAD}Content-Length: 0\r\n\r\n`;
  for (const byte of text.slice(0, -1)) {
    taken.hold(Buffer.from(byte));
    assert.equal(taken.head(), undefined);
  }
  taken.hold(Buffer.from(text.slice(-1)));
  const head = taken.head();
  assert.equal(head?.request.method, "POST");
  assert.equal(head?.claimed.target, "/");
  assert.equal(taken.waiting, 0);
});

test("Http1Intake gives a body's bytes and its trailers, and holds what follows", () => {
  const taken = intake();
  taken.hold(Buffer.from(`${HEAD}Transfer-Encoding: chunked\r\n\r\n`));
  assert.ok(taken.head());
  assert.equal(taken.unfinished, true);
  const data: string[] = [];
  const keep = (bytes: Buffer): void => void data.push(bytes.toString());
  assert.equal(taken.body(Buffer.from("3\r\nabc\r\n"), keep), undefined);
  const trailers = taken.body(Buffer.from("0\r\nX-A: 1\r\n\r\nGET"), keep);
  assert.deepEqual(
    trailers?.map(({ key, value }) => [key, value]),
    [["x-a", "1"]],
  );
  assert.equal(data.join(), "abc");
  assert.equal(taken.unfinished, false);
  assert.equal(taken.body(Buffer.from("more"), keep), undefined, "there is no body any more");
  assert.equal(taken.take().toString(), "GET");
  assert.equal(taken.waiting, 0);
});

test("Http1Intake throws the client's failure at a head or a body that is malformed or too long", () => {
  const malformed = intake();
  malformed.hold(Buffer.from("nonsense\r\n\r\n"));
  assert.throws(() => malformed.head(), Failure);
  const long = intake();
  long.hold(Buffer.from(`${HEAD}X: ${"x".repeat(DEFAULT_LIMITS.head_bytes)}`));
  assert.throws(() => long.head(), { status: 431 });
  const body = intake();
  body.hold(Buffer.from(`${HEAD}Transfer-Encoding: chunked\r\n\r\n`));
  assert.ok(body.head());
  assert.throws(() => body.body(Buffer.from("zz\r\n"), () => {}), { fault: "client" });
});
