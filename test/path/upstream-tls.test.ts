/** An upstream that cannot prove its name gets no byte of a request, let alone a secret (G04, J). */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { SecureContextOptions } from "node:tls";
import { createSecureContext } from "node:tls";
import { askInside } from "../support/ask.ts";
import type { Gate } from "../support/gate.ts";
import { SECRET, startGate } from "../support/gate.ts";
import { statusOf } from "../support/message-reader.ts";
import type { Origin } from "../support/origin.ts";
import { createOrigin } from "../support/origin.ts";
import type { Authority, LeafOptions } from "../support/pki.ts";
import { createAuthority } from "../support/pki.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet } from "../support/private-internet.ts";
import { assertFailed } from "../support/refusal.ts";

const DAY = 86_400_000;

interface Case {
  readonly host: string;
  readonly leaf: LeafOptions;
  readonly by?: "stranger" | "intermediate";
  readonly server?: SecureContextOptions;
}

const REFUSED: Readonly<Record<string, Case>> = {
  "of another name": { host: "other.example.com", leaf: { names: ["else.example.com"] } },
  "of the parent's name": { host: "parent.example.com", leaf: { names: ["example.com"] } },
  "of a wildcard too deep": { host: "a.deep.example.com", leaf: { names: ["*.example.com"] } },
  "of a whole top-level domain": { host: "example.com", leaf: { names: ["*.com"] } },
  "of a partial wildcard": { host: "partial.example.com", leaf: { names: ["part*.example.com"] } },
  "of a name with a NUL": { host: "nul.example.com", leaf: { names: ["nul.example.com\0.evil.org"] } },
  "that names it only in the subject": { host: "cn.example.com", leaf: { commonName: "cn.example.com" } },
  "that has expired": {
    host: "expired.example.com",
    leaf: {
      names: ["expired.example.com"],
      notBefore: new Date(Date.now() - 9 * DAY),
      notAfter: new Date(Date.now() - DAY),
    },
  },
  "that is not valid yet": {
    host: "early.example.com",
    leaf: { names: ["early.example.com"], notBefore: new Date(Date.now() + DAY) },
  },
  "that it signed itself": {
    host: "self.example.com",
    leaf: { names: ["self.example.com"], selfSigned: true },
  },
  "of an authority nobody knows": {
    host: "stranger.example.com",
    leaf: { names: ["stranger.example.com"] },
    by: "stranger",
  },
  "issued by another leaf": {
    host: "chain.example.com",
    leaf: { names: ["chain.example.com"] },
    by: "intermediate",
  },
};

const ACCEPTED: Readonly<Record<string, Case>> = {
  "of its name": { host: "right.example.com", leaf: { names: ["right.example.com"] } },
  "of a wildcard of its level": { host: "wild.example.com", leaf: { names: ["*.example.com"] } },
  "of its name among others": {
    host: "many.example.com",
    leaf: { names: ["x.example.com", "many.example.com"] },
  },
  "with another subject": {
    host: "subject.example.com",
    leaf: { names: ["subject.example.com"], commonName: "x" },
  },
  "over TLS 1.2": {
    host: "older.example.com",
    leaf: { names: ["older.example.com"] },
    server: { maxVersion: "TLSv1.2" },
  },
};

let internet: Internet;
let gate: Gate;
const origins = new Map<string, Origin>();

before(async () => {
  internet = await createInternet();
  const cases = [...Object.values(REFUSED), ...Object.values(ACCEPTED)];
  const authorities = {
    stranger: createAuthority("Stranger"),
    intermediate: leafAsAuthority(internet.authority),
  };
  for (const [index, { host, leaf, by, server }] of cases.entries()) {
    const address = `11.0.1.${index + 1}`;
    internet.dns.set(host, { A: [address] });
    const signer = by === undefined ? internet.authority : authorities[by];
    const { certPem, keyPem } = signer.issue(leaf);
    const chain = by === "intermediate" ? certPem + signer.certPem : certPem;
    const tls = createSecureContext({ cert: chain, key: keyPem, ...server });
    origins.set(
      host,
      await createOrigin(internet, {
        address,
        tls,
        bound: Object.values(ACCEPTED).some((one) => one.host === host),
      }),
    );
  }
  internet.dns.set("plain.example.com", { A: ["11.0.2.1"] });
  internet.dns.set("silent.example.com", { A: ["11.0.2.2"] });
  internet.dns.set("hangup.example.com", { A: ["11.0.2.3"] });
  internet.dns.set("closed.example.com", { A: ["11.0.2.4"] });
  const hosts = ["plain.example.com", "silent.example.com", "hangup.example.com", "closed.example.com"];
  const allowlist = [...cases.map(({ host }) => host), ...hosts].map((domain) => ({
    domain,
    transform: { Authorization: SECRET },
  }));
  gate = await startGate(internet, { network: { allowlist }, limits: { connect_timeout: "1s" } });
});
after(() => internet.close());

/** A certificate that may serve but not issue, used as if it could issue. */
function leafAsAuthority(root: Authority): Authority {
  const { certPem, keyPem } = root.issue({ names: ["leaf.example.com"] });
  return { ...createAuthority("leaf.example.com", keyPem), certPem };
}

describe("an upstream with a certificate", () => {
  for (const [what, { host }] of Object.entries(REFUSED)) {
    test(`${what} gets no byte of the request`, async () => {
      assertFailed(await askInside(internet, gate, host), 502, "E_UPSTREAM_TLS");
      const connections = origins.get(host)?.connections ?? [];
      assert.equal(connections.length, 1);
      assert.equal(connections[0]?.received, "");
      const record = await gate.record({ host });
      assert.deepEqual(
        [record["failure"], record["status"], record["verdict"]],
        ["E_UPSTREAM_TLS", 502, "allow"],
      );
    });
  }

  for (const [what, { host }] of Object.entries(ACCEPTED)) {
    test(`${what} gets the request`, async () => {
      assert.equal(statusOf(await askInside(internet, gate, host)), 200);
      assert.equal(origins.get(host)?.requests.length, 1);
      assert.equal(origins.get(host)?.connections[0]?.servername, host);
    });
  }
});

describe("an upstream that", () => {
  test("speaks plain HTTP on 443 gets no request", async () => {
    const origin = await createOrigin(internet, {
      address: "11.0.2.1",
      port: 443,
      serve: ({ socket }) => void socket.write("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"),
    });
    assertFailed(await askInside(internet, gate, "plain.example.com"), 502, "E_UPSTREAM_TLS");
    assert.doesNotMatch(origin.connections[0]?.received ?? "", /HTTP/);
  });

  test("says nothing is given up in time", async () => {
    await createOrigin(internet, { address: "11.0.2.2", port: 443, serve: () => undefined });
    assertFailed(await askInside(internet, gate, "silent.example.com"), 504, "E_TIMEOUT");
  });

  test("hangs up in the handshake is a failure of its", async () => {
    await createOrigin(internet, {
      address: "11.0.2.3",
      port: 443,
      serve: ({ socket }) => void socket.destroy(),
    });
    const answer = await askInside(internet, gate, "hangup.example.com");
    assertFailed(answer, 502, "E_UPSTREAM_TLS");
  });

  test("does not listen is a failure to connect", async () => {
    assertFailed(await askInside(internet, gate, "closed.example.com"), 502, "E_CONNECT");
    const metrics = await gate.metrics();
    assert.equal(metrics.sum("sallyport_upstream_failures_total", { code: "E_CONNECT" }), 1);
  });
});
