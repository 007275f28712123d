/** Asks every client that is found whether it trusts the gate, by letting it make a request through it. */
import { spawn } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { accessSync, constants, existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { Failure } from "../model/failure.ts";
import { exportLine, trustEnvironment, truststoreBeside } from "../pki/trust-env.ts";
import {
  judge,
  type Outcome,
  type Target,
  TRUST_CHECKS,
  type Trust,
  type TrustCheck,
} from "./trust-checks.ts";

export interface DoctorOptions {
  /** Absolute; read for comparison, and named in the remedies. */
  readonly bundle: string;
  /** HTTPS, of a host that the gate inspects or refuses: its certificate must be one of the gate's. */
  readonly url: URL;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** For each client, in milliseconds. */
  readonly timeout: number;
}

export interface Finding {
  readonly client: string;
  /** Absolute path of what was run. */
  readonly program: string;
  readonly verdict: Exclude<Trust, "absent">;
  /** One line for the sandbox's shell; present where the verdict is `distrusts`. */
  readonly fix: string | undefined;
  /** What it said, where that is not understood. */
  readonly detail: string | undefined;
}

type Env = DoctorOptions["env"];

const OUTPUT_BYTES = 65_536;
const DETAIL_CHARACTERS = 200;

/**
 * One finding after the other, as they come. Throws `E_CONFIG` where the URL does not lead to the gate or the bundle
 * is not the gate's: whatever the clients said then would be about somebody else.
 */
export async function* examineTrust(options: DoctorOptions): AsyncGenerator<Finding> {
  const { url, env, timeout } = options;
  const target = { url, proxy: proxyOf(env) };
  await insistOnGate(options);
  for (const check of TRUST_CHECKS) {
    const program = onPath(check.program, env["PATH"] ?? "");
    if (program === undefined) continue;
    const outcome = await ask([program, ...check.argv(target)], { ...env, ...check.env?.(target) }, timeout);
    const verdict = judge(check, outcome);
    if (verdict !== "absent") yield finding(check, program, { verdict, outcome, bundle: options.bundle });
  }
}

function finding(
  { client, variable }: TrustCheck,
  program: string,
  { verdict, outcome, bundle }: { verdict: Finding["verdict"]; outcome: Outcome; bundle: string },
): Finding {
  return {
    client,
    program,
    verdict,
    fix: verdict === "distrusts" ? fixOf(variable, bundle) : undefined,
    detail: verdict === "unclear" ? detailOf(outcome) : undefined,
  };
}

/** GNU wget is the one that no variable reaches. */
function fixOf(variable: string | undefined, bundle: string): string {
  if (variable === undefined) return `echo 'ca_certificate = ${bundle}' >>~/.wgetrc`;
  const truststore = truststoreBeside(bundle);
  if (variable === "JAVA_TOOL_OPTIONS" && !existsSync(truststore)) {
    return `sallyport ca bundle --out '${bundle}'   # outside the sandbox: it makes ${truststore}`;
  }
  return exportLine(variable, trustEnvironment({ bundle, truststore })[variable] ?? bundle);
}

function detailOf({ timedOut, output }: Outcome): string {
  if (timedOut) return "No answer in time";
  const lines = output.split("\n").map((line) => line.replace(/[^\x20-\x7e]/g, " ").trim());
  return (lines.findLast((line) => line !== "") ?? "It said nothing").slice(0, DETAIL_CHARACTERS);
}

/** The leaf that is shown at the URL, whoever signed it; or why there was none. */
const PROBE = `require("node:https").get(process.argv[1], { rejectUnauthorized: false }, (answer) => {
  console.log(JSON.stringify({ leaf: answer.socket.getPeerCertificate().raw.toString("base64") }));
  answer.destroy();
}).on("error", (error) => console.log(JSON.stringify({ problem: error.message || error.code })));`;

/** As `pki/ca.ts` names what it makes. */
const OUR_SUBJECT = "CN=Sallyport CA ";

async function insistOnGate({ bundle, url, env, timeout }: DoctorOptions): Promise<void> {
  const authorities = authoritiesIn(bundle);
  const argv = [process.execPath, "-e", PROBE, url.href];
  const { output } = await ask(argv, { ...env, NODE_USE_ENV_PROXY: "1", NODE_NO_WARNINGS: "1" }, timeout);
  const { leaf, problem } = parseProbe(output);
  if (leaf === undefined) {
    throw misconfigured(
      `No TLS server answers at ${url.href} (${problem}); name a host that the gate inspects with --url`,
    );
  }
  const certificate = new X509Certificate(Buffer.from(leaf, "base64"));
  // A company's root in the bundle may sign leaves itself, so an authority that bears our name counts alone. Where the
  // operator brought another, any does: no public authority signs a leaf with its root.
  const ours = authorities.filter(({ subject }) => subject.startsWith(OUR_SUBJECT));
  const signers = ours.length > 0 ? ours : authorities;
  if (signers.some((authority) => certificate.verify(authority.publicKey))) return;
  throw misconfigured(
    `The certificate at ${url.href} is not signed by an authority of ${bundle}: the request goes past the gate (is HTTPS_PROXY set?), the host is tunnelled (name one that the gate inspects with --url), or the bundle is another gate's`,
  );
}

function parseProbe(output: string): { readonly leaf?: string; readonly problem?: string } {
  try {
    return JSON.parse(output) as { leaf?: string; problem?: string };
  } catch {
    return { problem: "no answer in time" };
  }
}

function authoritiesIn(bundle: string): readonly X509Certificate[] {
  try {
    const blocks = readFileSync(bundle, "utf8").match(
      /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g,
    );
    return (blocks ?? []).map((pem) => new X509Certificate(pem));
  } catch {
    throw misconfigured(`The bundle ${bundle} cannot be read; name it with --bundle`);
  }
}

function proxyOf(env: Env): Target["proxy"] {
  const text = env["https_proxy"] ?? env["HTTPS_PROXY"] ?? "";
  return URL.canParse(text) ? new URL(text) : undefined;
}

function onPath(program: string, path: string): string | undefined {
  const places = path.split(":").filter((folder) => folder.startsWith("/"));
  return places.map((folder) => join(folder, program)).find(isProgram);
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** In a process group of its own, so that what it starts ends with it. */
function ask(argv: readonly string[], env: Env, timeout: number): Promise<Outcome> {
  const [program = "", ...rest] = argv;
  return new Promise((resolve) => {
    const child = spawn(program, rest, { env, cwd: "/", detached: true, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      endGroup(child.pid);
    }, timeout);
    const take = (piece: Buffer): void => {
      if (output.length < OUTPUT_BYTES) output += piece.toString("latin1");
    };
    child.stdout.on("data", take);
    child.stderr.on("data", take);
    const done = (code: number | null): void => {
      clearTimeout(timer);
      resolve({ code: code ?? undefined, timedOut, output });
    };
    child.once("error", () => done(null));
    child.once("close", done);
  });
}

function endGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGKILL");
  } catch {
    // It ended by itself in the meantime.
  }
}

function misconfigured(message: string): Failure {
  return new Failure("E_CONFIG", "operator", message);
}
