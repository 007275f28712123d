/** Which upstream connection a stream gets. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Http2Pool } from "../../src/forward/h2-pool.ts";
import { IdleBook } from "../../src/forward/idle-book.ts";
import { DEFAULT_LIMITS } from "../../src/model/limits.ts";
import { linked } from "./h2-harness.ts";

test("Http2Pool: a stream gets a connection of its key, until that is full", async (context) => {
  const { pool, session } = await linked(context, { server: { settings: { maxConcurrentStreams: 1 } } });
  assert.equal(pool.take("other", "other"), undefined);
  assert.ok(pool.take("key", "key"));
  assert.ok(session.full);
  assert.equal(pool.take("key", "key"), undefined);
});

test("Http2Pool: a connection that nobody used yet goes to the first key that asks for it, for good", async (context) => {
  const { pool, session } = await linked(context, { key: "fresh" });
  assert.ok(pool.take("key", "fresh"));
  assert.equal(session.poolKey, "key");
  assert.equal(pool.take("other", "fresh"), undefined);
  assert.ok(pool.take("key", "fresh"));
});

test("Http2Pool: where there are connections enough, a stream waits on the least busy", async (context) => {
  const pool = new Http2Pool({ pool_connections: 2 }, new IdleBook(DEFAULT_LIMITS));
  const server = { settings: { maxConcurrentStreams: 1 } };
  const first = await linked(context, { pool, server });
  pool.take("key", "key");
  const second = await linked(context, { pool, server });
  pool.take("key", "key");
  pool.take("key", "key");
  pool.take("key", "key");
  assert.deepEqual([first.session.open, second.session.open], [2, 2]);
});

test("Http2Pool: retired, it closes what idles and keeps nothing that comes", async (context) => {
  const { pool, session } = await linked(context);
  const busy = await linked(context, { pool });
  busy.session.take();
  pool.retire();
  assert.ok(!session.usable);
  assert.equal(pool.take("key", "key"), undefined);
  const late = await linked(context, { pool });
  assert.ok(!late.session.usable);
  pool.destroy();
  assert.ok(busy.session.lost);
});
