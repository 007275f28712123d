/** `ca`: the gate's authority, and what makes a sandbox's clients trust it. */
import { X509Certificate } from "node:crypto";
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { loadConfig } from "../config/load.ts";
import { Failure } from "../model/failure.ts";
import { openCa } from "../pki/ca.ts";
import { certificatePath, readCertificate } from "../pki/ca-files.ts";
import { bundleOf, type Trusted, writeBundle, writeTruststore } from "../pki/trust-bundle.ts";
import { exportLine, trustEnvironment, truststoreBeside } from "../pki/trust-env.ts";
import { examineTrust, type Finding } from "../sandbox/trust-doctor.ts";
import { renderProblem } from "./check.ts";
import { type Command, DEFAULT_CONFIG, EXIT, type OptionValues, stringOf, UsageError } from "./command.ts";
import { environment } from "./environment.ts";

export const ca: Command = {
  name: "ca",
  summary: "make, show and hand out the gate's CA, and tell who trusts it",
  usage: "init|show|bundle|env|doctor [OPTIONS]",
  optionsHelp: [
    ["--config FILE", `whose ca.dir is meant (default ${DEFAULT_CONFIG})`],
    ["--out FILE", "bundle: write it there, and a truststore for Java beside it (default: to stdout)"],
    ["--bundle FILE", "env, doctor: a bundle that is there (default: made in ca.dir)"],
    ["--shell SHELL", "env: sh, fish or json (default sh)"],
    ["--url URL", "doctor: a host that the gate inspects or refuses (default https://not-listed.example/)"],
    ["--json", "print JSON"],
  ],
  example: 'eval "$(sallyport ca env)"',
  options: {
    config: { type: "string" },
    out: { type: "string" },
    bundle: { type: "string" },
    shell: { type: "string" },
    url: { type: "string" },
    json: { type: "boolean" },
  },
  run: runCa,
};

interface Part {
  /** Besides `--config`. */
  readonly options: readonly string[];
  run(values: OptionValues): number | Promise<number>;
}

const PARTS: Readonly<Record<string, Part>> = {
  init: { options: ["json"], run: init },
  show: { options: ["json"], run: show },
  bundle: { options: ["out"], run: bundle },
  env: { options: ["bundle", "shell", "json"], run: env },
  doctor: { options: ["bundle", "url", "json"], run: doctor },
};

const BUNDLE_FILE = "bundle.pem";
const DOCTOR_URL = "https://not-listed.example/";
/** The slowest client, a cold Java, takes some seconds. */
const DOCTOR_TIMEOUT_MS = 20_000;

async function runCa(values: OptionValues, positionals: readonly string[]): Promise<number> {
  const [name = "", ...more] = positionals;
  const part = Object.hasOwn(PARTS, name) ? PARTS[name] : undefined;
  if (part === undefined || more.length > 0) {
    throw new UsageError(`Say what to do with the CA: ${Object.keys(PARTS).join(", ")}`);
  }
  const stray = Object.keys(values).find((option) => !["config", ...part.options].includes(option));
  if (stray !== undefined) throw new UsageError(`ca ${name} takes no --${stray}`);
  return await part.run(values);
}

function init(values: OptionValues): number {
  const dir = caDirOf(values);
  const there = readCertificate(dir) !== undefined;
  openCa(dir);
  return tell(dir, values, there ? "was there already" : "made");
}

function show(values: OptionValues): number {
  return tell(caDirOf(values), values, undefined);
}

function bundle(values: OptionValues): number {
  const trusted = trustedIn(caDirOf(values));
  const out = stringOf(values, "out");
  if (out === undefined) process.stdout.write(bundleOf(trusted));
  else
    process.stdout.write(
      writeBoth(resolve(out), trusted)
        .map((path) => `${path}\n`)
        .join(""),
    );
  return EXIT.fine;
}

function env(values: OptionValues): number {
  const shell = values["json"] === true ? "json" : (stringOf(values, "shell") ?? "sh");
  if (shell !== "sh" && shell !== "fish" && shell !== "json")
    throw new UsageError("--shell is sh, fish or json");
  const bundle = bundleFor(values);
  const beside = truststoreBeside(bundle);
  const variables = trustEnvironment({ bundle, truststore: existsSync(beside) ? beside : undefined });
  if (shell === "json") process.stdout.write(`${JSON.stringify(variables)}\n`);
  else {
    for (const [name, value] of Object.entries(variables)) {
      process.stdout.write(`${exportLine(name, value, shell)}\n`);
    }
  }
  return EXIT.fine;
}

async function doctor(values: OptionValues): Promise<number> {
  const text = stringOf(values, "url") ?? DOCTOR_URL;
  const url = URL.parse(text);
  if (url?.protocol !== "https:")
    throw new UsageError(`--url takes an https URL, not ${JSON.stringify(text)}`);
  const inherited = environment();
  // Inside a sandbox there is no config; there the variables say where the bundle is.
  const asked = values["bundle"] !== undefined || values["config"] !== undefined;
  const bundle = bundleFor(asked ? values : { ...values, bundle: inherited["SSL_CERT_FILE"] });
  const json = values["json"] === true;
  const findings: Finding[] = [];
  for await (const finding of examineTrust({ bundle, url, env: inherited, timeout: DOCTOR_TIMEOUT_MS })) {
    findings.push(finding);
    if (!json) process.stdout.write(render(finding));
  }
  if (json) process.stdout.write(`${JSON.stringify({ url: url.href, bundle, clients: findings })}\n`);
  return findings.every(({ verdict }) => verdict === "trusts") ? EXIT.fine : EXIT.broke;
}

const VERDICTS = { trusts: "trusts it", distrusts: "does not", unclear: "unclear" } as const;

function render({ client, verdict, fix, detail }: Finding): string {
  return `${`${client.padEnd(16)} ${VERDICTS[verdict].padEnd(11)}${fix ?? detail ?? ""}`.trimEnd()}\n`;
}

/** The one that is named, or one made afresh beside the authority. */
function bundleFor(values: OptionValues): string {
  const named = stringOf(values, "bundle");
  if (named === undefined) {
    const dir = caDirOf(values);
    const [made = ""] = writeBoth(join(dir, BUNDLE_FILE), trustedIn(dir));
    return made;
  }
  const path = resolve(named);
  if (!existsSync(path))
    throw misconfigured(`There is no bundle ${path}; sallyport ca bundle --out makes it`);
  return path;
}

function writeBoth(bundle: string, trusted: Trusted): readonly string[] {
  const truststore = truststoreBeside(bundle);
  writeBundle(bundle, trusted);
  writeTruststore(truststore, trusted);
  return [bundle, truststore];
}

function tell(dir: string, values: OptionValues, made: string | undefined): number {
  const certificate = certificateIn(dir);
  const facts = {
    path: certificatePath(dir),
    subject: certificate.subject,
    fingerprint: certificate.fingerprint256,
    notBefore: new Date(certificate.validFrom).toISOString(),
    notAfter: new Date(certificate.validTo).toISOString(),
  };
  if (values["json"] === true) process.stdout.write(`${JSON.stringify(facts)}\n`);
  else {
    const lines = [
      `certificate  ${facts.path}${made === undefined ? "" : ` (${made})`}`,
      `subject      ${facts.subject}`,
      `SHA-256      ${facts.fingerprint}`,
      `valid        ${facts.notBefore} to ${facts.notAfter}`,
    ];
    process.stdout.write(`${lines.join("\n")}\n`);
  }
  return EXIT.fine;
}

function trustedIn(dir: string): Trusted {
  return { certificatePem: certificateIn(dir).toString() };
}

/** Throws `E_CONFIG` where there is none. */
function certificateIn(dir: string): X509Certificate {
  const pem = readCertificate(dir);
  if (pem === undefined) throw misconfigured(`There is no CA in ${dir}; sallyport ca init makes it`);
  try {
    return new X509Certificate(pem);
  } catch {
    throw misconfigured(`The CA certificate in ${dir} cannot be read; restore it or remove both files`);
  }
}

/** Prints what is wrong with the config, and throws, where it cannot be used. */
function caDirOf(values: OptionValues): string {
  const file = stringOf(values, "config") ?? DEFAULT_CONFIG;
  const loaded = loadConfig(file, 1);
  if (loaded.ok) return loaded.config.caDir;
  for (const problem of loaded.problems) process.stderr.write(`${renderProblem(problem)}\n`);
  throw misconfigured(`The config ${file} cannot be used; put it right or name another with --config`);
}

function misconfigured(message: string): Failure {
  return new Failure("E_CONFIG", "operator", message);
}
