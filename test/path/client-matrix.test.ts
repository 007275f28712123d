/**
 * The client matrix: every client through the explicit door and through the jail, against real origins. Its results
 * are the table of docs/clients.md, which `npm run clients` writes and which has to be what this run shows.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type DOORS, ROWS, type Row, tableIn, tableOf } from "../support/clients/clients.ts";
import { createGitOrigin } from "../support/clients/git-origin.ts";
import { createMatrixOrigin } from "../support/clients/origin.ts";
import { packageFiles } from "../support/clients/packages.ts";
import { type Gate, SECRET, startGate } from "../support/gate.ts";
import { type JailSetup, runJail, setUpJail } from "../support/jail.ts";
import { createOrigin } from "../support/origin.ts";
import { createInternet, type Internet, PUBLIC_V4 } from "../support/private-internet.ts";
import { run } from "../support/programs.ts";

const WITH_SECRET = { transform: { Authorization: `Bearer ${SECRET}` } };
const NETWORK = {
  allowlist: [
    { domain: "api.test", ...WITH_SECRET },
    { domain: "git.test", ...WITH_SECRET },
    // A tunnel: the client meets a certificate of a root that it does not know.
    { domain: "stranger.test" },
  ],
};
const PROXY = "http://127.0.0.1:8080";
const PROGRAMS = fileURLToPath(new URL("../support/clients/programs", import.meta.url));
const MAIN = fileURLToPath(new URL("../../src/start.mjs", import.meta.url));
const MISTRUST = /certificate|ERR_CERT|issuer|not trusted|unknown authority|PKIX|unable to|self.signed/i;

const PAGE = fileURLToPath(new URL("../../docs/clients.md", import.meta.url));
const results = new Map<string, Partial<Record<(typeof DOORS)[number], boolean>>>();

let internet: Internet;
let gate: Gate;
let setup: JailSetup;
let built: string;
let explicitEnv: Readonly<Record<string, string>>;

before(async () => {
  internet = await createInternet();
  internet.dns.set("api.test", { A: [PUBLIC_V4] });
  internet.dns.set("git.test", { A: ["11.0.0.11"] });
  internet.dns.set("stranger.test", { A: ["11.0.0.12"] });
  await createMatrixOrigin(internet, "api.test", packageFiles(internet.directory, "api.test"));
  await createGitOrigin(internet, "git.test", "11.0.0.11");
  await createOrigin(internet, { address: "11.0.0.12", tls: ["stranger.test"] });
  built = await build(internet);
  gate = await startGate(internet, { network: NETWORK });
  setup = setUpJail(internet, { network: NETWORK });
  // Node.js reads the proxy variables where this one says so.
  explicitEnv = { ...(await trustVariables()), ...proxyVariables(), NODE_USE_ENV_PROXY: "1" };
});
after(() => internet.close());

describe("through the explicit door", { concurrency: 2 }, () => {
  for (const row of ROWS)
    test(row.name, async () => {
      const env = { ...explicitEnv, BUILT: built };
      const ended = await run(internet, ["sh", "-c", scriptOf(row)], { env });
      judge(row, "explicit", ended.stdout + ended.stderr);
    });
});

describe("through the jail, as an ordinary user with nothing set by hand", { concurrency: 2 }, () => {
  for (const row of ROWS)
    test(row.name, async () => {
      const ended = await runJail(internet, setup, ["sh", "-c", scriptOf(row)], { env: { BUILT: built } });
      judge(row, "jail", ended.stdout + ended.stderr);
    });
});

test("the table of docs/clients.md is the one that these results make (npm run clients writes it)", () => {
  const page = readFileSync(PAGE, "utf8");
  const table = tableOf(ROWS, results);
  // Only where a person asks for it: a test leaves the tree as it is.
  if (process.env["WRITE_CLIENTS_TABLE"] === "yes") {
    writeFileSync(
      PAGE,
      page.replace(tableIn(page), () => table),
    );
  } else assert.equal(tableIn(page), table);
});

/** Asks whom policy admits, whom it does not, and whose certificate nobody vouches for. */
function scriptOf(row: Row): string {
  return `
exec 2>&1
top=$(mktemp -d); export HOME="$top"; trap 'rm -rf "$top"' EXIT
for one in api unlisted stranger; do
  export HOST=$one.test GIT_HOST=$one.test RANDOM_NAME=b$$; [ $one != api ] || GIT_HOST=git.test
  mkdir "$top/$one"; cd "$top/$one"
  ( set -e; ${row.script} ); code=$?; echo; echo "== $one $code"
done`;
}

function judge({ name }: Row, door: (typeof DOORS)[number], output: string): void {
  const row = results.get(name) ?? {};
  results.set(name, row);
  row[door] = false;
  assertRow(output);
  row[door] = true;
}

function assertRow(output: string): void {
  const [allowed = "", refused = "", stranger = ""] = output.split(/(?<=^== .*\n)/m);
  assert.match(allowed, /hello/);
  assert.match(allowed, /^== api 0$/m, allowed);
  assert.doesNotMatch(refused, /^hello/m);
  assert.match(refused, /^== unlisted [1-9]/m, refused);
  assert.ok(refused.trim().split("\n").length > 1, "It says nothing about the refusal");
  assert.match(stranger, /^== stranger [1-9]/m, stranger);
  assert.match(stranger, MISTRUST);
}

/** Go and Java, once for both doors. */
async function build({ directory }: Internet): Promise<string> {
  const to = join(directory, "built");
  mkdirSync(to);
  chmodSync(directory, 0o711);
  const env = {
    ...process.env,
    CGO_ENABLED: "0",
    GOPROXY: "off",
    GOFLAGS: "-mod=mod",
    GOCACHE: join(directory, "go-cache"),
  };
  const start = promisify(execFile);
  await Promise.all([
    start("go", ["build", "-o", join(to, "get-go"), join(PROGRAMS, "main.go")], { env }),
    start("javac", ["-d", to, join(PROGRAMS, "Get.java")]),
  ]);
  return to;
}

async function trustVariables(): Promise<Readonly<Record<string, string>>> {
  const command = [process.execPath, MAIN, "ca", "env", "--shell", "json", "--config", gate.configFile];
  const { code, stdout, stderr } = await run(internet, command, {
    env: { SECRET: internet.canary.secret },
    trusted: true,
  });
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout) as Readonly<Record<string, string>>;
}

function proxyVariables(): Readonly<Record<string, string>> {
  const names = ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"];
  return Object.fromEntries(names.map((name) => [name, PROXY]));
}
