/** `explain --json` and enforcement say the same of a thousand generated questions. */
import assert from "node:assert/strict";
import { isIP } from "node:net";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { head } from "../support/ask.ts";
import type { Gate, RecordLine } from "../support/gate.ts";
import { fromEnv, SECRET, startGate } from "../support/gate.ts";
import type { Message } from "../support/message-reader.ts";
import { oneValue, statusOf } from "../support/message-reader.ts";
import type { Connection } from "../support/origin.ts";
import { createOrigin, respond } from "../support/origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";
import { run } from "../support/programs.ts";
import type { Wire } from "../support/wire-client.ts";
import { dial } from "../support/wire-client.ts";

const QUESTIONS = 1_000;
const LANES = 8;
const MAIN = fileURLToPath(new URL("../../src/start.mjs", import.meta.url));

const NETWORK = {
  allowlist: [
    { domain: "a.example.com", transform: { Authorization: SECRET, "X-Two": "two" } },
    { id: "reads", domain: "b.example.com", methods: ["GET", "HEAD"], paths: ["/repos/.*", "/"] },
    {
      id: "writes",
      domain: "b.example.com",
      methods: ["POST"],
      paths: ["/inbox"],
      transform: { "X-Api-Key": SECRET },
    },
    { domain: "c.example.com" },
    { id: "lost", domain: "lost.example.com", transform: { "X-Lost": fromEnv("NOT_SET") } },
    { domain: "d.example.com", ports: [8443], intercept: "always" },
    { domain: "*.example.com", methods: ["GET"] },
    { id: "deep", domain: "*.deep.example.com", intercept: "always" },
    { domain: "*.example.net" },
    { domain: PUBLIC_V4, ports: [80] },
  ],
  denylist: [{ id: "tracker", domain: "tracker.example.com" }, { domain: "*.bad.example.net" }],
};

const HOSTS = [
  ...[
    "a.example.com",
    "b.example.com",
    "c.example.com",
    "d.example.com",
    "e.example.com",
    "lost.example.com",
    "x.deep.example.com",
  ],
  ...[
    "example.com",
    "tracker.example.com",
    "y.example.net",
    "z.bad.example.net",
    "bad.example.net",
    "example.net",
  ],
  ...[
    "evil.org",
    "a.example.com.evil.org",
    "localhost",
    "metadata",
    "x.internal",
    "xn--bcher-kva.example.net",
  ],
  ...["A.Example.COM", "c.example.com.", PUBLIC_V4, "127.0.0.1", "10.0.0.1", "169.254.169.254", "[::1]"],
];
const PATHS = [
  "/",
  "/repos/x",
  "/repos/../x",
  "/repos/%2e%2e/x",
  "/repos//x",
  "/repos/a%2fb",
  "/inbox",
  "/inbox?a=/../b",
  "/other",
];

interface Question {
  readonly method: string;
  readonly url: string;
  readonly scheme: string;
  readonly authority: string;
  readonly path: string;
}

interface Verdict {
  readonly verdict: string;
  readonly reason: string;
  readonly rule: string | null;
  /** Undefined where the upstream could not be had: then nothing left to inject into. */
  readonly injected: readonly string[] | undefined;
  readonly interception: string;
}

const question = fc
  .record({
    method: fc.constantFrom("GET", "GET", "HEAD", "POST", "DELETE", "TRACE"),
    scheme: fc.constantFrom("https", "https", "http"),
    host: fc.constantFrom(...HOSTS),
    port: fc.constantFrom("", "", "", ":80", ":443", ":8443", ":22"),
    path: fc.constantFrom(...PATHS),
  })
  .map(({ method, scheme, host, port, path }): Question => {
    const authority = `${host}${port}`;
    return { method, scheme, authority, path, url: `${scheme}://${authority}${path}` };
  });

let internet: Internet;
let gate: Gate;

before(async () => {
  internet = await createInternet();
  const names = HOSTS.map(canonical).filter((name) => name.includes(".") && isIP(name) === 0);
  for (const name of names) internet.dns.set(name, { A: [PUBLIC_V4] });
  const answer = ({ start }: { start: string }) =>
    start.startsWith("HEAD") ? head("HTTP/1.1 200 OK", "Content-Length: 2") : respond("ok");
  // Hangs up on TLS, which would else wait for an answer that never comes.
  const serve = ({ socket }: Connection) =>
    void socket.on("data", (bytes: Buffer) =>
      bytes[0] === 22 ? socket.destroy() : socket.write(answer({ start: `${bytes}` })),
    );
  await createOrigin(internet, { serve });
  for (const port of [443, 8443]) await createOrigin(internet, { port, tls: names, bound: true, answer });
  gate = await startGate(internet, { network: NETWORK });
});
after(() => internet.close());

function canonical(host: string): string {
  return host.toLowerCase().replace(/\.$/, "");
}

describe("explain", () => {
  test(`agrees with enforcement on ${QUESTIONS} questions`, async () => {
    const questions = fc.sample(question, { numRuns: QUESTIONS, seed: 20 });
    const said = await explain(questions);
    const enforced = await enforceAll(questions);
    const differences = questions.flatMap(({ method, url }, index) => {
      const unsent = enforced[index]?.injected === undefined ? { injected: undefined } : {};
      const [one, other] = [
        JSON.stringify({ ...said[index], ...unsent }),
        JSON.stringify({ ...enforced[index], ...unsent }),
      ];
      return one === other ? [] : [`${method} ${url}\n  explain  ${one}\n  enforced ${other}`];
    });
    assert.equal(
      differences.length,
      0,
      `${differences.length} differ:\n${differences.slice(0, 10).join("\n")}`,
    );
    assert.ok(enforced.some(({ reason }) => reason === "secret-unavailable"));
    const allowed = enforced.filter(({ verdict }) => verdict === "allow").length;
    assert.ok(allowed > QUESTIONS / 10 && allowed < (QUESTIONS * 9) / 10, `${allowed} allowed`);
  });
});

const AS_GATE = ["explain", "-", "--json", "--with-secrets"];

/** All in one process, with the gate's secrets: it reads `METHOD URL` lines. */
async function explain(questions: readonly Question[]): Promise<readonly Verdict[]> {
  const command = [process.execPath, "--disable-warning=ExperimentalWarning", MAIN];
  const stdin = questions.map(({ method, url }) => `${method} ${url}\n`).join("");
  const outcome = await run(internet, [...command, ...AS_GATE, "--config", gate.configFile], {
    stdin,
    env: { SECRET: internet.canary.secret },
  });
  assert.equal(outcome.code, 3, outcome.stderr);
  const lines = outcome.stdout.trim().split("\n");
  assert.equal(lines.length, questions.length);
  return lines.map((line) => {
    const { verdict, reason, rule, injected, interception } = JSON.parse(line) as Partial<Verdict>;
    return { verdict, reason, rule: rule ?? null, injected, interception } as Verdict;
  });
}

/** Some at a time, each from an address of its own, by which its record is known. */
async function enforceAll(questions: readonly Question[]): Promise<readonly Verdict[]> {
  const verdicts: Verdict[] = [];
  let next = 0;
  async function lane(from: string): Promise<void> {
    for (let index = next++; index < questions.length; index = next++) {
      const one = questions[index] as Question;
      verdicts[index] = await enforce(one, from).catch((cause: unknown) => {
        throw new Error(`${one.method} ${one.url}`, { cause });
      });
    }
  }
  await Promise.all(Array.from({ length: LANES }, (_, index) => lane(`127.0.0.${index + 2}`)));
  return verdicts;
}

/** What the client gets and what the record says must be the same story; it is told in explain's words. */
async function enforce(asked: Question, from: string): Promise<Verdict> {
  const wire = await dial(internet, { from });
  const take = { bodiless: asked.method === "HEAD" };
  const answer =
    asked.scheme === "http" ? await wire.send(requestOf(asked, asked.url), take) : await askTls(wire, asked);
  wire.destroy();
  const record = await gate.record({ client: from });
  const { verdict, reason, rule, injected } = record as unknown as Verdict;
  const unsent = record["failure"] !== null;
  if (unsent) assert.deepEqual(injected, [], asked.url);
  const refusal = answer === undefined ? undefined : oneValue(answer, "x-sallyport-reason");
  assert.equal(refusal ?? "rule-allows", reason, asked.url);
  if (verdict === "deny") assert.equal(statusOf(answer ?? { start: "" }), 403, asked.url);
  return {
    verdict,
    reason,
    rule,
    injected: unsent ? undefined : injected,
    interception: interceptionOf(asked, record),
  };
}

async function askTls(wire: Wire, asked: Question): Promise<Message | undefined> {
  const target = /:\d+$/.test(asked.authority) ? asked.authority : `${asked.authority}:443`;
  const connected = await wire.send(head(`CONNECT ${target} HTTP/1.1`, `Host: ${target}`), { connect: true });
  if (statusOf(connected) !== 200) return connected;
  const name = canonical(asked.authority.replace(/:\d+$/, ""));
  const servername = isIP(name) === 0 ? name : "";
  const secure = await wire.secure({ rejectUnauthorized: false, servername }).catch(() => undefined);
  // The upstream of a tunnel may speak no TLS.
  return await secure?.send(requestOf(asked, asked.path), { bodiless: asked.method === "HEAD" });
}

function requestOf({ method, authority }: Question, target: string): string {
  const length = method === "POST" ? ["Content-Length: 0"] : [];
  return head(`${method} ${target} HTTP/1.1`, `Host: ${authority}`, ...length);
}

function interceptionOf({ scheme }: Question, { visibility, verdict }: RecordLine): string {
  if (scheme === "http") return "none";
  if (visibility === "request") return "inspect";
  return verdict === "allow" ? "tunnel" : "none";
}
