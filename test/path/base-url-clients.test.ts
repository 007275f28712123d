/** Ordinary clients at a base URL, with no proxy and no CA told to them: curl, SDKs, Python, npm, git. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { REVERSE_LISTEN, REVERSE_URL } from "../support/base-url.ts";
import { SECRET, startGate } from "../support/gate.ts";
import type { Message } from "../support/message-reader.ts";
import { oneValue } from "../support/message-reader.ts";
import type { Origin } from "../support/origin.ts";
import { createOrigin, respond } from "../support/origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet } from "../support/private-internet.ts";
import type { Outcome, RunOptions } from "../support/programs.ts";
import { run } from "../support/programs.ts";

const API = "api.example.com";
const INDEX = "pypi.example.org";
const REGISTRY = "registry.example.net";
const FORGE = "git.example.com";
const ADDRESSES = { [API]: "11.0.0.10", [INDEX]: "11.0.0.11", [REGISTRY]: "11.0.0.12", [FORGE]: "11.0.0.13" };

const TARBALL = `https://${REGISTRY}/@scope/thing/-/thing-1.0.0.tgz`;

let internet: Internet;
let api: Origin;
let registry: Origin;
let forge: Origin;

before(async () => {
  internet = await createInternet();
  for (const [name, address] of Object.entries(ADDRESSES)) internet.dns.set(name, { A: [address] });
  api = await createOrigin(internet, {
    address: ADDRESSES[API],
    tls: [API],
    bound: true,
    answer: ({ start, body }) => respond(`${start.split(" ").slice(0, 2).join(" ")} ${body}`),
  });
  await createOrigin(internet, { address: ADDRESSES[INDEX], tls: [INDEX], answer: indexPage });
  registry = await createOrigin(internet, {
    address: ADDRESSES[REGISTRY],
    tls: [REGISTRY],
    bound: true,
    answer: registryAnswer,
  });
  const repository = await createRepository();
  forge = await createOrigin(internet, {
    address: ADDRESSES[FORGE],
    tls: [FORGE],
    bound: true,
    answer: (request) => gitBackend(request, repository),
  });
  const transform = { Authorization: `Bearer ${SECRET}` };
  await startGate(internet, {
    ...REVERSE_LISTEN,
    network: {
      allowlist: [
        { domain: API, transform },
        { domain: INDEX },
        { domain: REGISTRY, transform },
        { domain: FORGE, transform },
      ],
    },
  });
});
after(() => internet.close());

function go(command: readonly string[], options: RunOptions = {}): Promise<Outcome> {
  return run(internet, command, options);
}

function assertInjected(origin: Origin): void {
  const request = origin.requests.at(-1) ?? { fields: [] };
  assert.equal(oneValue(request, "authorization"), `Bearer ${internet.canary.secret}`);
}

describe("curl", () => {
  test("gets, posts, uploads with Expect, and keeps its connection", async () => {
    const get = await go(["curl", "-sS", `${REVERSE_URL}/${API}/v1?x=1`]);
    assert.deepEqual([get.code, get.stdout], [0, "GET /v1?x=1 "], get.stderr);
    assertInjected(api);
    const post = await go(["curl", "-sS", "-d", "a=b", `${REVERSE_URL}/${API}/v1`]);
    assert.equal(post.stdout, "POST /v1 a=b", post.stderr);
    const put = await go(
      ["curl", "-sS", "-H", "Expect: 100-continue", "-T", "-", `${REVERSE_URL}/${API}/v1`],
      {
        stdin: "x".repeat(5_000),
      },
    );
    assert.equal(put.stdout, `PUT /v1 ${"x".repeat(5_000)}`, put.stderr);
    const urls = Array.from({ length: 5 }, (_, index) => `${REVERSE_URL}/${API}/${index}`);
    const kept = await go(["curl", "-sS", "-w", "%{num_connects}", ...urls]);
    assert.equal(kept.stdout, "GET /0 1GET /1 0GET /2 0GET /3 0GET /4 0", kept.stderr);
  });

  test("with HTTP/2 in mind stays at HTTP/1.1", async () => {
    const outcome = await go([
      "curl",
      "-sS",
      "--http2",
      "-w",
      " %{http_version}",
      `${REVERSE_URL}/${API}/h2c`,
    ]);
    assert.equal(outcome.stdout, "GET /h2c  1.1", outcome.stderr);
  });

  test("shows a refusal in words", async () => {
    const outcome = await go(["curl", "-sS", `${REVERSE_URL}/evil.example.org/`]);
    assert.match(outcome.stdout, /no rule allows this request to evil\.example\.org/);
  });
});

describe("an SDK", () => {
  test("in Node.js has its base URL, and a key of no worth", async () => {
    const program = `
const base = ${JSON.stringify(`${REVERSE_URL}/${API}/v1`)};
const headers = { authorization: "Bearer no-worth", "content-type": "application/json" };
for (const turn of [1, 2]) {
  const answer = await fetch(base + "/messages", { method: "POST", headers, body: JSON.stringify({ turn }) });
  process.stdout.write(await answer.text());
}`;
    const outcome = await go([process.execPath, "--input-type=module", "-"], { stdin: program });
    assert.equal(outcome.stdout, 'POST /v1/messages {"turn":1}POST /v1/messages {"turn":2}', outcome.stderr);
    assertInjected(api);
  });

  test("in Python has its base URL", async () => {
    const program = `
import urllib.request
request = urllib.request.Request("${REVERSE_URL}/${API}/v1/x", b"body", {"Authorization": "Bearer no-worth"})
print(urllib.request.urlopen(request, timeout=10).read().decode(), end="")`;
    const outcome = await go(["/usr/bin/python3", "-"], { stdin: program });
    assert.equal(outcome.stdout, "POST /v1/x body", outcome.stderr);
    assertInjected(api);
  });
});

describe("a package index", () => {
  test("whose links are relative leads to its files, as an installer follows them", async () => {
    const program = `
import re, urllib.parse, urllib.request
page = "${REVERSE_URL}/${INDEX}/simple/thing/"
request = urllib.request.Request(page, headers={"Accept": "text/html"})
with urllib.request.urlopen(request, timeout=10) as answer:
    link = re.search('href="([^"#]+)', answer.read().decode()).group(1)
    file = urllib.parse.urljoin(answer.url, link)
print(file, urllib.request.urlopen(file, timeout=10).read().decode(), end="")`;
    const outcome = await go(["/usr/bin/python3", "-"], { stdin: program });
    assert.equal(outcome.stdout, `${REVERSE_URL}/${INDEX}/files/thing-1.0.whl wheel`, outcome.stderr);
  });
});

describe("npm", () => {
  test("reads its registry there, with the secret", async () => {
    const directory = join(internet.directory, "npm");
    mkdirSync(directory);
    const env = {
      HOME: directory,
      npm_config_cache: join(directory, "cache"),
      npm_config_update_notifier: "false",
    };
    const registryUrl = `--registry=${REVERSE_URL}/${REGISTRY}/`;
    const outcome = await go(["npm", "view", "@scope/thing", "dist.tarball", registryUrl], { env });
    assert.deepEqual([outcome.code, outcome.stdout.trim()], [0, TARBALL], outcome.stderr);
    assert.equal(registry.requests.at(-1)?.start, "GET /@scope%2fthing HTTP/1.1");
    assertInjected(registry);
  });
});

describe("git", () => {
  test("clones and pushes by insteadOf, over smart HTTP", async () => {
    const clone = join(internet.directory, "clone");
    const instead = ["-c", `url.${REVERSE_URL}/${FORGE}/.insteadOf=https://${FORGE}/`];
    const env = { HOME: internet.directory, GIT_TERMINAL_PROMPT: "0" };
    const cloned = await go(["git", ...instead, "clone", "-q", `https://${FORGE}/thing.git`, clone], { env });
    assert.equal(cloned.code, 0, cloned.stderr);
    const log = await go(["git", "-C", clone, "log", "--format=%s"], { env });
    assert.equal(log.stdout, "First\n", log.stderr);
    writeFileSync(join(clone, "large"), Buffer.alloc(2_000_000, "x"));
    const author = ["-c", "user.name=A", "-c", "user.email=a@example.com"];
    for (const command of [
      ["add", "large"],
      [...author, "commit", "-q", "-m", "Second"],
      [...instead, "push", "-q", "origin", "HEAD"],
    ]) {
      const done = await go(["git", "-C", clone, ...command], { env });
      assert.equal(done.code, 0, done.stderr);
    }
    assert.ok(forge.requests.some(({ start }) => start.startsWith("POST /thing.git/git-receive-pack")));
    assertInjected(forge);
  });
});

function indexPage({ start }: Message): string {
  return start.includes("/simple/thing/")
    ? respond('<a href="../../files/thing-1.0.whl#sha256=0">thing-1.0.whl</a>', "200 OK", [
        "Content-Type: text/html",
      ])
    : respond("wheel");
}

/** What a registry says of a package: where its file is, by the registry's own name. */
function registryAnswer(): string {
  const version = { name: "@scope/thing", version: "1.0.0", dist: { tarball: TARBALL } };
  const page = { name: "@scope/thing", "dist-tags": { latest: "1.0.0" }, versions: { "1.0.0": version } };
  return respond(JSON.stringify(page), "200 OK", ["Content-Type: application/json"]);
}

/** The folder that holds `thing.git`, with one commit. */
async function createRepository(): Promise<string> {
  const root = join(internet.directory, "forge");
  const bare = join(root, "thing.git");
  const work = join(internet.directory, "work");
  const author = ["-c", "user.name=A", "-c", "user.email=a@example.com"];
  mkdirSync(root);
  for (const command of [
    ["init", "-q", "--bare", bare],
    ["-C", bare, "config", "http.receivepack", "true"],
    ["init", "-q", work],
    ["-C", work, ...author, "commit", "-q", "--allow-empty", "-m", "First"],
    ["-C", work, "push", "-q", bare, "HEAD:refs/heads/main"],
    ["-C", bare, "symbolic-ref", "HEAD", "refs/heads/main"],
  ]) {
    const done = await go(["git", ...command], { env: { HOME: internet.directory } });
    assert.equal(done.code, 0, done.stderr);
  }
  return root;
}

/** git's own server, as the CGI program that it is. */
async function gitBackend(request: Message, root: string): Promise<Buffer> {
  const [method = "", target = ""] = request.start.split(" ");
  const [path = "", query = ""] = target.split("?");
  const child = spawn("git", ["http-backend"], {
    stdio: ["pipe", "pipe", "inherit"],
    env: {
      ...process.env,
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: "1",
      REQUEST_METHOD: method,
      PATH_INFO: path,
      QUERY_STRING: query,
      CONTENT_TYPE: oneValue(request, "content-type") ?? "",
      HTTP_CONTENT_ENCODING: oneValue(request, "content-encoding") ?? "",
      GIT_PROTOCOL: oneValue(request, "git-protocol") ?? "",
    },
  });
  const pieces: Buffer[] = [];
  child.stdout.on("data", (piece: Buffer) => void pieces.push(piece));
  // It may have answered, and ended, before it read all.
  child.stdin.on("error", () => undefined);
  child.stdin.end(Buffer.from(request.body, "latin1"));
  await once(child, "close");
  const output = Buffer.concat(pieces);
  const end = output.indexOf("\r\n\r\n");
  const fields = output.subarray(0, end).toString("latin1");
  const status = /^Status: (.*)$/m.exec(fields)?.[1] ?? "200 OK";
  const body = output.subarray(end + 4);
  const head = `HTTP/1.1 ${status}\r\n${fields}\r\nContent-Length: ${body.length}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head, "latin1"), body]);
}
