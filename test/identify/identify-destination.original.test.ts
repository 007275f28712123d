/** Transparent connections: Host names the destination, and must be what was dialled. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseHostname } from "../../src/base/hostname.ts";
import { parseIpAddress } from "../../src/base/ip.ts";
import { identifyDestination, nameOf } from "../../src/identify/identify-destination.ts";
import type { Claims, Door } from "../../src/model/arrival.ts";
import { parseAuthority } from "../../src/wire/authority.ts";

const CLIENT = { sandbox: "box", address: "10.0.0.2" };

/** Of a connection to port 80 of `address`, which was given out for `name`. */
function door(address: string, name?: string): Door {
  const dialled = parseIpAddress(address);
  assert.ok(dialled);
  const original = {
    client: CLIENT,
    address: dialled,
    port: 80,
    name: name === undefined ? undefined : parseHostname(name),
  };
  return {
    listener: "jail",
    address: "",
    tunnel: undefined,
    original,
    scheme: "http",
    serverName: undefined,
  };
}

const CASES = [
  ["its own name", door("198.18.1.0", "a.test"), "a.test", true, "a.test:80"],
  [
    "another name than the address was given out for",
    door("198.18.1.0", "a.test"),
    "b.test",
    false,
    "b.test:80",
  ],
  ["a name, of any other address", door("1.2.3.4"), "a.test", true, "a.test:80"],
  ["another port", door("1.2.3.4"), "a.test:81", false, "a.test:81"],
  ["the very address", door("1.2.3.4"), "1.2.3.4", true, "1.2.3.4:80"],
  ["another address", door("1.2.3.4"), "1.2.3.5", false, "1.2.3.5:80"],
  ["nothing", door("1.2.3.4"), undefined, true, "1.2.3.4:80"],
] as const;

for (const [what, at, host, agree, expected] of CASES) {
  test(`identifyDestination: Host is ${what}`, () => {
    const claims: Claims = {
      authority: undefined,
      host: host === undefined ? undefined : parseAuthority(host, 80),
      proxyAuthorization: undefined,
    };
    const identified = identifyDestination(claims, at);
    assert.equal(identified.agree, agree);
    assert.equal(`${nameOf(identified.destination)}:${identified.destination.port}`, expected);
  });
}

test("identifyDestination: absolute-form must be what was dialled too, and inside TLS the tunnel decides", () => {
  const claims = { authority: parseAuthority("b.test", 80), host: undefined, proxyAuthorization: undefined };
  assert.equal(identifyDestination(claims, door("198.18.1.0", "a.test")).agree, false);
  const destination = { kind: "name", host: parseHostname("b.test"), port: 80 } as const;
  const host = destination.host;
  assert.ok(host);
  const tunnel = { client: CLIENT, destination: { ...destination, host } };
  assert.equal(identifyDestination(claims, { ...door("198.18.1.0", "a.test"), tunnel }).agree, true);
});
