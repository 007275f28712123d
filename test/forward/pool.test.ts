import assert from "node:assert/strict";
import { test } from "node:test";
import { seatFor } from "../../src/base/roster.ts";
import type { Http1Upstream } from "../../src/forward/http1-upstream.ts";
import { IdleBook } from "../../src/forward/idle-book.ts";
import { UpstreamPool } from "../../src/forward/pool.ts";

import { DEFAULT_LIMITS } from "../../src/model/limits.ts";

const KEY = "box https a.example 443 1.7";
/** Of connections that carried nothing yet. */
const FRESH = "box https a.example 443 1";
const KEEP_MS = 30_000;

test("take gives the connection used last, so that extras expire", () => {
  const pool = new UpstreamPool({ pool_connections: 9 }, new IdleBook(DEFAULT_LIMITS));
  const [first, second] = [fake(pool), fake(pool)];
  pool.idle(first, KEEP_MS);
  pool.idle(second, KEEP_MS);
  assert.equal(pool.take(KEY, FRESH), second);
  assert.equal(pool.take(KEY, FRESH), first);
  assert.equal(pool.take(KEY, FRESH), undefined);
});

test("take crosses no key", () => {
  const pool = new UpstreamPool({ pool_connections: 9 }, new IdleBook(DEFAULT_LIMITS));
  pool.idle(fake(pool, "other https a.example 443 1.7"), KEEP_MS);
  pool.idle(fake(pool, "box https a.example 443 2.7"), KEEP_MS);
  assert.equal(pool.take(KEY, FRESH), undefined);
});

test("take finds a connection that carried nothing yet, and it belongs to the key from then on", () => {
  const pool = new UpstreamPool({ pool_connections: 9 }, new IdleBook(DEFAULT_LIMITS));
  const probed = fake(pool, FRESH);
  pool.idle(probed, KEEP_MS);
  assert.equal(pool.take(KEY, FRESH), probed);
  assert.equal(probed.poolKey, KEY);
  pool.idle(probed, KEEP_MS);
  assert.equal(pool.take(FRESH, FRESH), undefined);
  assert.equal(pool.take(KEY, FRESH), probed);
});

test("take passes over what is of no use any more, and closes it", () => {
  const pool = new UpstreamPool({ pool_connections: 9 }, new IdleBook(DEFAULT_LIMITS));
  const [good, stale] = [fake(pool), fake(pool)];
  pool.idle(good, KEEP_MS);
  pool.idle(stale, KEEP_MS);
  stale.usable = false;
  assert.equal(pool.take(KEY, FRESH), good);
  assert.equal(stale.destroyed, true);
});

test("idle keeps so many of a key, by the limit as it is now", () => {
  const limits = { pool_connections: 1 };
  const pool = new UpstreamPool(limits, new IdleBook(DEFAULT_LIMITS));
  const [kept, extra, another, elsewhere] = [fake(pool), fake(pool), fake(pool), fake(pool, "other")];
  for (const upstream of [kept, extra, elsewhere]) pool.idle(upstream, KEEP_MS);
  assert.deepEqual(
    [kept, extra, elsewhere].map(({ destroyed }) => destroyed),
    [false, true, false],
  );
  limits.pool_connections = 2;
  pool.idle(another, KEEP_MS);
  assert.equal(another.destroyed, false);
});

test("idle keeps nothing that may not idle", () => {
  const pool = new UpstreamPool({ pool_connections: 9 }, new IdleBook(DEFAULT_LIMITS));
  const upstream = fake(pool);
  pool.idle(upstream, 0);
  assert.equal(upstream.destroyed, true);
  assert.equal(pool.take(KEY, FRESH), undefined);
});

test("closed forgets an idle connection, and minds none that it does not know", () => {
  const pool = new UpstreamPool({ pool_connections: 1 }, new IdleBook(DEFAULT_LIMITS));
  const upstream = fake(pool);
  pool.idle(upstream, KEEP_MS);
  upstream.destroy();
  assert.equal(pool.take(KEY, FRESH), undefined);
  pool.closed(upstream);
  const another = fake(pool);
  pool.idle(another, KEEP_MS);
  assert.equal(another.destroyed, false, "its place is free");
});

test("retire closes what idles, lets what works go on, and keeps nothing after it", () => {
  const pool = new UpstreamPool({ pool_connections: 9 }, new IdleBook(DEFAULT_LIMITS));
  const [idle, also, working] = [fake(pool), fake(pool, "other"), fake(pool)];
  pool.idle(idle, KEEP_MS);
  pool.idle(also, KEEP_MS);
  pool.retire();
  assert.deepEqual(
    [idle, also, working].map(({ destroyed }) => destroyed),
    [true, true, false],
  );
  pool.idle(working, KEEP_MS);
  assert.equal(working.destroyed, true);
});

test("destroy closes everything, at work or not", () => {
  const pool = new UpstreamPool({ pool_connections: 9 }, new IdleBook(DEFAULT_LIMITS));
  const [idle, working] = [fake(pool), fake(pool)];
  pool.idle(idle, KEEP_MS);
  pool.destroy();
  assert.deepEqual([idle.destroyed, working.destroyed], [true, true]);
});

type Fake = Http1Upstream & { usable: boolean; destroyed: boolean };

/** What a pool sees of a connection. */
function fake(pool: UpstreamPool, poolKey = KEY): Fake {
  const upstream = {
    poolKey,
    usable: true,
    destroyed: false,
    destroy() {
      if (upstream.destroyed) return;
      upstream.destroyed = true;
      pool.closed(upstream as unknown as Fake);
    },
  };
  const whole = Object.assign(upstream, { seat: seatFor(upstream) }) as unknown as Fake;
  pool.adopt(whole);
  return whole;
}
