/** Ordinary clients just work, and show a refusal in words: curl, Python's urllib and requests, Node's fetch. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Gate } from "../support/gate.ts";
import { SECRET, startGate } from "../support/gate.ts";
import { oneValue } from "../support/message-reader.ts";
import type { Origin } from "../support/origin.ts";
import { createOrigin, respond } from "../support/origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";
import type { Outcome } from "../support/programs.ts";
import { curl, nodeFetch, python } from "../support/programs.ts";

const HOST = "api.example.com";
const URLS = [`https://${HOST}/`, "http://plain.example.com/", "https://tunnel.example.com/"] as const;

let internet: Internet;
let gate: Gate;
let bound: Origin;

before(async () => {
  internet = await createInternet();
  for (const name of [HOST, "plain.example.com"]) internet.dns.set(name, { A: [PUBLIC_V4] });
  internet.dns.set("tunnel.example.com", { A: ["11.0.0.11"] });
  const answer = ({ start, body }: { start: string; body: string }) =>
    respond(`${start.split(" ")[0]} ${body}`);
  bound = await createOrigin(internet, { tls: [HOST], bound: true, answer });
  await createOrigin(internet, { answer });
  // Its certificate is of the gate's own CA here, so that one file of roots serves all three ways.
  await createOrigin(internet, { address: "11.0.0.11", tls: ["tunnel.example.com"], answer });
  const allowlist = [
    { domain: HOST, transform: { Authorization: `Bearer ${SECRET}` } },
    { domain: "plain.example.com" },
    { domain: "tunnel.example.com", intercept: "always" },
  ];
  gate = await startGate(internet, { network: { allowlist } });
});
after(() => internet.close());

type Client = (url: string, body: string | undefined) => Promise<Outcome>;

const CLIENTS: Readonly<Record<string, Client>> = {
  curl: (url, body) => curl(internet, gate.caPem, ...(body === undefined ? [] : ["-d", body]), url),
  "Python's urllib": (url, body) =>
    python(
      internet,
      gate.caPem,
      `
import urllib.request
body = ${body === undefined ? "None" : `b"${body}"`}
print(urllib.request.urlopen("${url}", body, timeout=10).read().decode(), end="")`,
    ),
  "Python's requests": (url, body) =>
    python(
      internet,
      gate.caPem,
      `
import requests
with requests.Session() as session:
    for _ in range(2):
        answer = session.${body === undefined ? `get("${url}", timeout=10)` : `post("${url}", data="${body}", timeout=10)`}
    print(answer.text, end="")`,
    ),
  "Node's fetch": (url, body) =>
    nodeFetch(
      internet,
      gate.caPem,
      `const answer = await fetch("${url}", ${JSON.stringify(body === undefined ? {} : { method: "POST", body })});
process.stdout.write(await answer.text());`,
    ),
};

for (const [name, client] of Object.entries(CLIENTS)) {
  describe(name, () => {
    for (const url of URLS) {
      test(`gets and posts ${url}`, async () => {
        const got = await client(url, undefined);
        assert.deepEqual([got.code, got.stdout], [0, "GET "], got.stderr);
        const posted = await client(url, "a=b");
        assert.deepEqual([posted.code, posted.stdout], [0, "POST a=b"], posted.stderr);
        if (!url.includes(HOST)) return;
        assert.equal(
          oneValue(bound.requests.at(-1) ?? { fields: [] }, "authorization"),
          `Bearer ${internet.canary.secret}`,
        );
      });
    }

    test("says why it was refused", async () => {
      const tunnel = await client("https://unlisted.example.org/", undefined);
      assert.notEqual(tunnel.code, 0);
      // Node's fetch shows the status alone, and asks by CONNECT for http: too.
      assert.match(tunnel.stderr, /403/);
      if (name.startsWith("Python")) assert.match(tunnel.stderr, /Blocked \(no-rule-matched\)/);
      const plain = await client("http://unlisted.example.org/", undefined);
      assert.match(
        plain.stdout + plain.stderr,
        /^(curl|Python's requests)$/.test(name) ? /no rule allows/ : /403/,
      );
    });
  });
}

describe("curl, further", () => {
  test("uploads by PUT with Expect, follows a HEAD, and resumes a range", async () => {
    const put = await curl(
      internet,
      gate.caPem,
      "-X",
      "PUT",
      "-H",
      "Expect: 100-continue",
      "-d",
      "x".repeat(5_000),
      `https://${HOST}/`,
    );
    assert.equal(put.stdout.length, "PUT ".length + 5_000, put.stderr);
    const looked = await curl(
      internet,
      gate.caPem,
      "-r",
      "0-9",
      "-w",
      "%{http_code}",
      "-o",
      "/dev/null",
      `https://${HOST}/`,
    );
    assert.equal(looked.stdout, "200");
  });

  test("keeps one connection for many requests", async () => {
    const urls = Array.from({ length: 5 }, (_, index) => `https://${HOST}/${index}`);
    const outcome = await curl(internet, gate.caPem, "-w", "%{num_connects}", ...urls);
    assert.equal(outcome.stdout, "GET 1GET 0GET 0GET 0GET 0", outcome.stderr);
  });

  test("does not trust the gate without its CA", async () => {
    const outcome = await curl(internet, "/etc/ssl/certs/ca-certificates.crt", `https://${HOST}/`);
    assert.equal(outcome.code, 60);
  });
});
