/**
 * h2spec against the intercepting listener and against a bare server of the same runtime: what fails through the gate
 * fails there too. The program is not part of this repository; `H2SPEC` says where it is.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import type { ServerHttp2Stream } from "node:http2";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { createH2Origin } from "../support/h2-origin.ts";
import { runJail, setUpJail } from "../support/jail.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";
import { run } from "../support/programs.ts";

const HOST = "h2.example.com";
const BODY = "x".repeat(64);
/** Fewer would mean that it did not really run. */
const LEAST_CASES = 140;

let internet: Internet;
let program: string;

before(async () => {
  program = process.env["H2SPEC"] ?? "";
  assert.notEqual(program, "", "H2SPEC must hold the path of an h2spec binary: github.com/summerwind/h2spec");
  internet = await createInternet();
  internet.dns.set(HOST, { A: [PUBLIC_V4] });
  await createH2Origin(internet, { names: [HOST], bound: true, serve: answer });
});
after(() => internet?.close());

test("h2spec finds no fault in the intercepting listener that a bare node:http2 server has not", async (context) => {
  const bare = await ask(internet, "bare");
  const gate = await ask(internet, "gate");
  context.diagnostic(`bare: ${bare.cases} cases, failed:\n${[...bare.failed].join("\n")}`);
  context.diagnostic(`gate: ${gate.cases} cases, failed:\n${[...gate.failed].join("\n")}`);
  assert.ok(bare.cases >= LEAST_CASES, `${bare.cases} cases`);
  assert.equal(gate.cases, bare.cases);
  assert.deepEqual(
    [...gate.failed].filter((name) => !bare.failed.has(name)),
    [],
  );
});

function answer(stream: ServerHttp2Stream): void {
  stream.on("data", () => undefined);
  stream.respond({ ":status": 200, "content-type": "text/plain" });
  stream.end(BODY);
}

interface Verdicts {
  readonly cases: number;
  /** Section and title of what failed. */
  readonly failed: ReadonlySet<string>;
}

/** It knows no proxy, and needs none in a jail: there the name's address is the gate's. */
async function ask(internet: Internet, whom: "bare" | "gate"): Promise<Verdicts> {
  const setup = setUpJail(internet, { network: { allowlist: [{ domain: HOST, intercept: "always" }] } });
  const report = join(setup.directory, "report.xml");
  const host = whom === "bare" ? PUBLIC_V4 : HOST;
  const command = [program, "--tls", "--insecure", "--host", host, "--port", "443", "--junit-report", report];
  const { stdout, stderr } =
    whom === "bare" ? await run(internet, command) : await runJail(internet, setup, command);
  assert.match(stdout, /\d+ tests, \d+ passed/, `${stdout.slice(-2000)}\n${stderr.slice(-2000)}`);
  return readReport(readFileSync(report, "utf8"));
}

/** JUnit's XML, as h2spec writes it. */
function readReport(xml: string): Verdicts {
  const cases = [
    ...xml.matchAll(/<testcase package="([^"]*)" classname="([^"]*)"[^>]*>([\s\S]*?)<\/testcase>/g),
  ];
  const failed = cases.filter(([, , , inside = ""]) => /<(?:failure|error)\b/.test(inside));
  return {
    cases: cases.length,
    failed: new Set(failed.map(([, section, title]) => `${section} ${title}`)),
  };
}
