/** Synthetic addresses: one name one address, and no address two names within a client's memory. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parseHostname } from "../../src/base/hostname.ts";
import { parseIpAddress } from "../../src/base/ip.ts";
import {
  addressOfReverseName,
  MOST_NAMES,
  REUSE_AGE_MS,
  SYNTHETIC_TTL,
  SyntheticNames,
} from "../../src/base/synthetic.ts";
import type { Hostname, IpAddress } from "../../src/model/exchange.ts";

function host(text: string): Hostname {
  const parsed = parseHostname(text);
  assert.ok(parsed);
  return parsed;
}

function ip(text: string): IpAddress {
  const parsed = parseIpAddress(text);
  assert.ok(parsed);
  return parsed;
}

interface Made {
  readonly names: SyntheticNames;
  readonly limits: { dns_names: number };
  readonly clock: { now: number };
}

function make(most: number): Made {
  const clock = { now: 0 };
  const limits = { dns_names: most };
  return { names: new SyntheticNames({ limits, now: () => clock.now }), limits, clock };
}

describe("SyntheticNames", () => {
  test("a name keeps its two addresses, and both stand for it", () => {
    const { names } = make(10);
    const first = names.addressesOf(host("a.example"));
    assert.deepEqual([first?.v4.text, first?.v6.text], ["198.18.1.0", "2001:2::c612:100"]);
    assert.equal(names.addressesOf(host("b.example"))?.v4.text, "198.18.1.1");
    assert.equal(names.addressesOf(host("a.example"))?.v4.text, "198.18.1.0");
    assert.equal(names.nameOf(ip("198.18.1.0")), "a.example");
    assert.equal(names.nameOf(ip("2001:2::c612:101")), "b.example");
    assert.equal(names.size, 2);
  });

  test("other addresses stand for nothing", () => {
    const { names } = make(10);
    names.addressesOf(host("a.example"));
    for (const text of [
      "198.18.1.1",
      "198.20.1.0",
      "198.17.1.0",
      "1.2.3.4",
      "2001:2::1",
      "2001:3::c612:100",
      "::1",
    ]) {
      assert.equal(names.nameOf(ip(text)), undefined, text);
    }
  });

  test("an address is another name's once its age is past every client's memory, the oldest first", () => {
    assert.ok(SYNTHETIC_TTL * 1_000 < REUSE_AGE_MS);
    const { names, clock } = make(2);
    names.addressesOf(host("a.example"));
    clock.now = 1_000;
    names.addressesOf(host("b.example"));
    clock.now = REUSE_AGE_MS - 1;
    assert.equal(names.addressesOf(host("c.example")), undefined);
    clock.now = REUSE_AGE_MS;
    assert.equal(names.addressesOf(host("c.example"))?.v4.text, "198.18.1.0");
    assert.equal(names.nameOf(ip("198.18.1.0")), "c.example");
    assert.equal(names.addressesOf(host("a.example")), undefined);
    assert.equal(names.size, 2);
  });

  test("being asked for makes a name young again", () => {
    const { names, clock } = make(2);
    names.addressesOf(host("a.example"));
    names.addressesOf(host("b.example"));
    clock.now = REUSE_AGE_MS;
    names.addressesOf(host("a.example"));
    assert.equal(names.addressesOf(host("c.example"))?.v4.text, "198.18.1.1");
  });
});

describe("SyntheticNames: what is in use", () => {
  test("an address is kept as long as a connection to it lives, whatever its age", () => {
    const { names, clock } = make(2);
    names.addressesOf(host("a.example"));
    names.addressesOf(host("b.example"));
    const releases = [names.hold(ip("198.18.1.0")), names.hold(ip("2001:2::c612:100"))];
    const other = names.hold(ip("198.18.1.1"));
    clock.now = REUSE_AGE_MS;
    assert.equal(names.addressesOf(host("c.example")), undefined);
    clock.now = 2 * REUSE_AGE_MS;
    other();
    other();
    assert.equal(names.addressesOf(host("c.example"))?.v4.text, "198.18.1.1");
    for (const release of releases) release();
    clock.now = 3 * REUSE_AGE_MS;
    assert.equal(names.addressesOf(host("d.example"))?.v4.text, "198.18.1.0");
    names.hold(ip("1.2.3.4"))();
  });

  test("all are held: none is free", () => {
    const { names, clock } = make(1);
    names.addressesOf(host("a.example"));
    names.hold(ip("198.18.1.0"));
    clock.now = REUSE_AGE_MS;
    assert.equal(names.addressesOf(host("b.example")), undefined);
  });

  test("never more than the range holds, whatever the limit says, and no address beyond it", () => {
    const { names } = make(1_000_000);
    for (let index = 0; index < MOST_NAMES; index++) names.addressesOf(`n${index}` as Hostname);
    assert.equal(names.addressesOf(host("one.more")), undefined);
    assert.equal(names.nameOf(ip("198.19.255.255")), `n${MOST_NAMES - 1}`);
  });
});

describe("addressOfReverseName", () => {
  test("reads both zones, in any case, with a last dot or without", () => {
    assert.equal(addressOfReverseName("0.1.18.198.in-addr.arpa")?.text, "198.18.1.0");
    assert.equal(addressOfReverseName("0.1.18.198.IN-ADDR.ARPA.")?.text, "198.18.1.0");
    const nibbles = "0.0.1.0.2.1.6.c.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.2.0.0.0.1.0.0.2";
    assert.equal(addressOfReverseName(`${nibbles}.ip6.arpa`)?.text, "2001:2::c612:100");
  });

  test("nothing else is one", () => {
    const others = ["", "a.example", "1.2.3.in-addr.arpa", "1.2.3.256.in-addr.arpa", "x.2.3.4.in-addr.arpa"];
    for (const name of [...others, "1.ip6.arpa", `${"g.".repeat(32)}ip6.arpa`]) {
      assert.equal(addressOfReverseName(name), undefined, name);
    }
  });
});
