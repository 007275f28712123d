import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parseHostname } from "../../src/base/hostname.ts";
import { destinationOf, identifyDestination, nameOf } from "../../src/identify/identify-destination.ts";
import type { Authority, Claims, Door } from "../../src/model/arrival.ts";
import type { Destination } from "../../src/model/exchange.ts";
import { Failure } from "../../src/model/failure.ts";
import { parseAuthority } from "../../src/wire/authority.ts";

interface Case {
  readonly says: string;
  readonly tunnel?: string;
  readonly serverName?: string;
  readonly authority?: string;
  readonly host?: string;
  readonly agree: boolean;
  readonly is: string;
}

const CASES: readonly Case[] = [
  {
    says: "absolute-form and Host",
    authority: "a.example:80",
    host: "a.example:80",
    agree: true,
    is: "a.example:80",
  },
  {
    says: "absolute-form without Host, HTTP/1.0",
    authority: "a.example:80",
    agree: true,
    is: "a.example:80",
  },
  {
    says: "absolute-form with another Host (D07)",
    authority: "a.example:80",
    host: "b.example:80",
    agree: false,
    is: "a.example:80",
  },
  {
    says: "Host with another port (D11)",
    authority: "a.example:80",
    host: "a.example:8080",
    agree: false,
    is: "a.example:80",
  },
  {
    says: "tunnel and Host",
    tunnel: "a.example:443",
    host: "a.example:443",
    agree: true,
    is: "a.example:443",
  },
  {
    says: "tunnel and another Host (D03)",
    tunnel: "a.example:443",
    host: "b.example:443",
    agree: false,
    is: "a.example:443",
  },
  {
    says: "tunnel and absolute-form of it (D08)",
    tunnel: "a.example:443",
    authority: "a.example:443",
    host: "a.example:443",
    agree: true,
    is: "a.example:443",
  },
  {
    says: "tunnel and absolute-form of another",
    tunnel: "a.example:443",
    authority: "b.example:443",
    host: "a.example:443",
    agree: false,
    is: "a.example:443",
  },
  {
    says: "tunnel, server name and Host",
    tunnel: "a.example:443",
    serverName: "a.example",
    host: "a.example:443",
    agree: true,
    is: "a.example:443",
  },
  {
    says: "tunnel and another server name (D01)",
    tunnel: "a.example:443",
    serverName: "b.example",
    host: "a.example:443",
    agree: false,
    is: "a.example:443",
  },
  {
    says: "server name and Host against the tunnel (D02)",
    tunnel: "a.example:443",
    serverName: "b.example",
    host: "b.example:443",
    agree: false,
    is: "a.example:443",
  },
  { says: "literals", authority: "11.0.0.10:80", host: "11.0.0.10:80", agree: true, is: "11.0.0.10:80" },
  {
    says: "a literal and a name",
    authority: "11.0.0.10:80",
    host: "a.example:80",
    agree: false,
    is: "11.0.0.10:80",
  },
  {
    says: "a literal tunnel with a server name",
    tunnel: "11.0.0.10:443",
    serverName: "a.example",
    agree: false,
    is: "11.0.0.10:443",
  },
];

describe("identifyDestination", () => {
  for (const { says, tunnel, serverName, authority, host, agree, is } of CASES) {
    test(`${says}: ${agree ? "agree" : "disagree"}`, () => {
      const claims: Claims = { authority: read(authority), host: read(host), proxyAuthorization: undefined };
      const identified = identifyDestination(claims, doorOf(tunnel, serverName));
      assert.equal(identified.agree, agree);
      assert.equal(`${nameOf(identified.destination)}:${identified.destination.port}`, is);
    });
  }

  test("throws E_BAD_REQUEST where a request that names no destination reaches the proxy itself", () => {
    const claims: Claims = { authority: undefined, host: read("a.example"), proxyAuthorization: undefined };
    assert.throws(
      () => identifyDestination(claims, doorOf(undefined, undefined)),
      (error) => error instanceof Failure && error.code === "E_BAD_REQUEST" && error.fault === "client",
    );
  });
});

function doorOf(tunnel: string | undefined, serverName: string | undefined): Door {
  const destination = tunnel === undefined ? undefined : destinationOf(authorityOf(tunnel));
  return {
    listener: "explicit",
    address: "10.0.0.1",
    tunnel: destination === undefined ? undefined : withClient(destination),
    scheme: destination === undefined ? "http" : "https",
    serverName: serverName === undefined ? undefined : parseHostname(serverName),
  };
}

function withClient(destination: Destination): NonNullable<Door["tunnel"]> {
  return { client: { sandbox: undefined, address: "10.0.0.1" }, destination };
}

function read(text: string | undefined): Authority | undefined {
  return text === undefined ? undefined : authorityOf(text);
}

function authorityOf(text: string): Authority {
  return parseAuthority(text, 80);
}
