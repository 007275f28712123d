import assert from "node:assert/strict";
import { test } from "node:test";
import { parseIpAddress } from "../../src/base/ip.ts";
import { mintDialable, mintPermit } from "../../src/decide/proofs.ts";
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
