import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer as createProxy } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo, Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { openCa } from "../../src/pki/ca.ts";
import { createLeafKey, mintLeaf } from "../../src/pki/leaf.ts";
import { writeBundle, writeTruststore } from "../../src/pki/trust-bundle.ts";
import { examineTrust, type Finding } from "../../src/sandbox/trust-doctor.ts";
import { createAuthority } from "../support/pki.ts";

const dir = mkdtempSync(join(tmpdir(), "sallyport-doctor-"));
const servers: Server[] = [];
after(() => {
  for (const server of servers) server.close();
  rmSync(dir, { recursive: true });
});

/** The programs that the tests may count on. */
const PROGRAMS = {
  curl: lookUp("curl"),
  openssl: lookUp("openssl"),
  python3: "/usr/bin/python3",
  node: process.execPath,
  npm: lookUp("npm"),
  git: lookUp("git"),
  keytool: lookUp("keytool"),
  wget: lookUp("wget"),
};
const CLIENTS = [
  ...["curl", "openssl", "python urllib", "python requests", "python httpx"],
  ...["node", "npm", "git", "java", "wget"],
];

const bin = join(dir, "bin");
const home = join(dir, "home");
mkdirSync(bin);
mkdirSync(home);
for (const [name, path] of Object.entries(PROGRAMS)) symlinkSync(path, join(bin, name));

const ca = openCa(join(dir, "ca"));
const leafKey = createLeafKey();
const gate = await serve({ cert: mintLeaf(ca, "localhost", new Date(), leafKey), key: leafKey.privatePem });
const bundle = join(dir, "bundle.pem");
/** What this machine trusts, as far as the maker of the second bundle can tell. */
const root = createAuthority("A root of this machine");
const issued = root.issue({ names: ["localhost"] });
const origin = await serve({ cert: issued.certPem, key: issued.keyPem });

test("examineTrust: no client trusts the gate by itself, and each one's own line makes it", async () => {
  writeBundle(bundle, ca);
  writeTruststore(join(dir, "bundle.p12"), ca);
  const before = await examine({ url: gate });
  assert.deepEqual(verdicts(before), all("distrusts"));
  const afterwards = await examine({ url: gate, env: remedied(before) });
  assert.deepEqual(verdicts(afterwards), all("trusts"));
});

test("examineTrust: with the bundle, each client still trusts a root of the machine", async () => {
  makeBundleWhereTrusted(root.certPem);
  rmSync(join(home, ".wgetrc"));
  const env = remedied(await examine({ url: gate }));
  assert.deepEqual(verdicts(await examine({ url: gate, env })), all("trusts"));
  // By itself it would be refused as a host that is tunnelled: compared with its own root, it may be asked about.
  const alone = join(dir, "root.pem");
  writeFileSync(alone, root.certPem);
  assert.deepEqual(verdicts(await examine({ url: origin, env, bundle: alone })), all("trusts"));
});

test("examineTrust: a bundle without a truststore says who makes one", async () => {
  const alone = join(dir, "alone.pem");
  writeBundle(alone, ca);
  const findings = await examine({ url: gate, env: { PATH: only("keytool") }, bundle: alone });
  assert.match(findings[0]?.fix ?? "", /^sallyport ca bundle --out '.*alone\.pem'/);
});

test("examineTrust: a client that hangs is given up, and what it started ends", async () => {
  const pids = join(dir, "pids");
  const PATH = withCurl(`/bin/sleep 600 & echo $! >${pids}; wait`);
  const [finding] = await examine({ url: gate, env: { PATH }, timeout: 1_500 });
  assert.equal(finding?.verdict, "unclear");
  assert.equal(finding.detail, "No answer in time");
  assert.ok(await hasEnded(readFileSync(pids, "utf8").trim()));
});

test("examineTrust: what nobody understands is shown, without control characters", async () => {
  const PATH = withCurl("printf 'first\\n\\033[31mred\\n\\n'; exit 9");
  const [finding] = await examine({ url: gate, env: { PATH } });
  assert.equal(finding?.verdict, "unclear");
  assert.equal(finding.detail, "[31mred");
  const [silent] = await examine({ url: gate, env: { PATH: withCurl("exit 9") } });
  assert.equal(silent?.detail, "It said nothing");
});

test("examineTrust: another's host, another gate's bundle and no server at all are told apart", async () => {
  const other = join(dir, "other.pem");
  writeBundle(other, openCa(join(dir, "other")));
  const failure = { code: "E_CONFIG", fault: "operator" };
  await assert.rejects(examine({ url: gate, bundle: other }), {
    ...failure,
    message: /not signed by an authority of .*other\.pem/,
  });
  const both = join(dir, "both.pem");
  writeFileSync(both, `${root.certPem}\n${ca.certificatePem}`);
  await assert.rejects(examine({ url: origin, bundle: both }), {
    code: "E_CONFIG",
    message:
      /not signed by an authority of .*both\.pem: the request goes past the gate .*, the host is tunnelled/,
  });
  await assert.rejects(examine({ url: gate, bundle: join(dir, "none.pem") }), {
    ...failure,
    message: /none\.pem cannot be read; name it with --bundle/,
  });
  const nobody = await serve({ cert: issued.certPem, key: issued.keyPem });
  servers.pop()?.close();
  await assert.rejects(examine({ url: nobody }), { ...failure, message: /No TLS server.*ECONNREFUSED/ });
});

test("examineTrust: a proxy that refuses CONNECT has to be asked about a host that it inspects", async () => {
  const proxy = createProxy().on("connect", (_, socket) => {
    socket.end("HTTP/1.1 403 Blocked (no-rule-matched)\r\nContent-Length: 0\r\n\r\n");
  });
  const url = new URL(await listening(proxy, "http"));
  const env = { HTTPS_PROXY: url.href };
  await assert.rejects(examine({ url: new URL("https://not-listed.example/"), env }), {
    code: "E_CONFIG",
    message: /No TLS server answers at https:\/\/not-listed\.example\/ .*403.*--url/,
  });
});

interface Examination {
  readonly url: URL;
  readonly env?: Readonly<Record<string, string>>;
  readonly bundle?: string;
  readonly timeout?: number;
}

async function examine(asked: Examination): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  const env = { PATH: bin, HOME: home, LC_ALL: "C", ...asked.env };
  for await (const finding of examineTrust({ bundle, timeout: 60_000, ...asked, env }))
    findings.push(finding);
  return findings;
}

/** In a process of its own: Node.js reads what the machine trusts once. */
function makeBundleWhereTrusted(pem: string): void {
  const file = join(dir, "root.pem");
  writeFileSync(file, pem);
  const module = new URL("../../src/pki/trust-bundle.ts", import.meta.url).href;
  const program = `
    import { writeBundle, writeTruststore } from ${JSON.stringify(module)};
    const ca = { certificatePem: ${JSON.stringify(ca.certificatePem)} };
    writeBundle(${JSON.stringify(bundle)}, ca);
    writeTruststore(${JSON.stringify(join(dir, "bundle.p12"))}, ca);`;
  execFileSync(process.execPath, ["--input-type=module", "-e", program], { env: { SSL_CERT_FILE: file } });
}

function all(verdict: string): Readonly<Record<string, string>> {
  return Object.fromEntries(CLIENTS.map((client) => [client, verdict]));
}

function verdicts(findings: readonly Finding[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    findings.map(({ client, verdict, detail }) => [client, [verdict, ...(detail ?? [])].join("")]),
  );
}

/** What a shell's environment is after it has run every line. */
function remedied(findings: readonly Finding[]): Readonly<Record<string, string>> {
  const lines = findings.map(({ fix }) => fix ?? "");
  const script = [...lines, "exec env -0"].join("\n");
  const printed = execFileSync("/bin/sh", ["-c", script], { env: { HOME: home }, encoding: "utf8" });
  return Object.fromEntries(printed.split("\0").flatMap(pairOf));
}

function pairOf(text: string): readonly (readonly [string, string])[] {
  const [, name, value] = /^(\w+)=(.*)$/s.exec(text) ?? [];
  return name === undefined || value === undefined ? [] : [[name, value]];
}

function only(program: keyof typeof PROGRAMS): string {
  const folder = mkdtempSync(join(dir, "path-"));
  symlinkSync(PROGRAMS[program], join(folder, program));
  return folder;
}

/** A PATH whose only client is a script. */
function withCurl(script: string): string {
  const folder = mkdtempSync(join(dir, "path-"));
  writeFileSync(join(folder, "curl"), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return folder;
}

/** Answers as the gate does where it refuses. */
async function serve(pair: { readonly cert: string; readonly key: string }): Promise<URL> {
  const server = createServer(pair, (request, response) => {
    request.resume();
    response.writeHead(403, { "content-type": "application/json", connection: "close" });
    response.end('{"error":{"verdict":"deny"}}');
  });
  return new URL(await listening(server, "https"));
}

async function listening(server: Server, scheme: string): Promise<string> {
  servers.push(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return `${scheme}://localhost:${(server.address() as AddressInfo).port}/`;
}

/** A zombie has ended too: whoever should reap it may be slow. */
async function hasEnded(pid: string): Promise<boolean> {
  for (let look = 0; look < 200; look += 1) {
    if (/^(?:Z|X)?$/.test(stateOf(pid))) return true;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return false;
}

function stateOf(pid: string): string {
  try {
    return /\) (\w) /.exec(readFileSync(`/proc/${pid}/stat`, "utf8"))?.[1] ?? "";
  } catch {
    return "";
  }
}

function lookUp(program: string): string {
  return execFileSync("/bin/sh", ["-c", `command -v ${program}`], { encoding: "utf8" }).trim();
}
