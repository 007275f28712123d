import assert from "node:assert/strict";
import { test } from "node:test";
import { parseHostname } from "../../src/base/hostname.ts";
import { parseIpAddress } from "../../src/base/ip.ts";
import { mintDialable, mintHandedOver, mintPermit } from "../../src/decide/proofs.ts";
import { ask, known } from "./build.ts";

test("mintPermit: carries exactly what it was given", () => {
  const { client, destination, scheme } = ask("https://api.example.com/");
  const fields = { client, destination, scheme, rule: "r", injections: [], mayReachPrivate: true };
  assert.deepEqual({ ...mintPermit(fields) }, fields);
});

test("mintDialable: is one address and port, and stays so", () => {
  const address = known(parseIpAddress("93.184.216.34"), "");
  const dialable = mintDialable(address, 443);
  assert.deepEqual({ ...dialable }, { address, port: 443 });
  assert.equal(Object.isFrozen(dialable), true);
});

test("mintHandedOver: is one name and port, and stays so", () => {
  const host = known(parseHostname("api.example.com"), "");
  const handed = mintHandedOver(host, 443);
  assert.deepEqual({ ...handed }, { host, port: 443 });
  assert.equal(Object.isFrozen(handed), true);
});
