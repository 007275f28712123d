/** Runs real client programs in the gate's namespace and gives back what they wrote. */
import { once } from "node:events";
import { BASE_ENV } from "./namespace.ts";
import type { Internet } from "./private-internet.ts";

export interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
  /** The program may see the secret: its output is then not searched for it. */
  readonly trusted?: boolean;
}

const PROXY_URL = "http://127.0.0.1:8080";

export async function run(
  internet: Internet,
  command: readonly string[],
  options: RunOptions = {},
): Promise<Outcome> {
  const child = internet.gate.spawn(command, { env: { ...BASE_ENV, ...options.env } });
  const watch = options.trusted === true ? undefined : internet.canary.watch(`output of ${command[0]}`);
  const stdout: Buffer[] = [];
  const stderr: Buffer[] = [];
  child.stdout?.on("data", (bytes: Buffer) => void stdout.push(bytes));
  child.stderr?.on("data", (bytes: Buffer) => void stderr.push(bytes));
  child.stdin?.on("error", () => undefined);
  child.stdin?.end(options.stdin ?? "");
  const [code] = (await once(child, "close")) as [number | null];
  const outcome = { code: code ?? -1, stdout: textOf(stdout), stderr: textOf(stderr) };
  watch?.see(outcome.stdout);
  watch?.see(outcome.stderr);
  return outcome;
}

/** Silent but for errors, through the proxy, trusting `caPem` (a file). */
export async function curl(internet: Internet, caPem: string, ...args: readonly string[]): Promise<Outcome> {
  const common = [
    "-sS",
    "--suppress-connect-headers",
    "--max-time",
    "10",
    "--proxy",
    PROXY_URL,
    "--cacert",
    caPem,
  ];
  return await run(internet, ["curl", ...common, ...args]);
}

/** A Python program on stdin, with the proxy and the CA in its environment. */
export async function python(internet: Internet, caPem: string, program: string): Promise<Outcome> {
  const env = { ...proxyEnv(), SSL_CERT_FILE: caPem, REQUESTS_CA_BUNDLE: caPem };
  return await run(internet, ["/usr/bin/python3", "-"], { env, stdin: program });
}

/** An ES module on stdin, with the proxy and the CA in its environment. */
export async function nodeFetch(internet: Internet, caPem: string, program: string): Promise<Outcome> {
  const env = { ...proxyEnv(), NODE_USE_ENV_PROXY: "1", NODE_EXTRA_CA_CERTS: caPem, NODE_NO_WARNINGS: "1" };
  return await run(internet, [process.execPath, "--input-type=module", "-"], { env, stdin: program });
}

function proxyEnv(): Readonly<Record<string, string>> {
  return { http_proxy: PROXY_URL, https_proxy: PROXY_URL, HTTP_PROXY: PROXY_URL, HTTPS_PROXY: PROXY_URL };
}

function textOf(chunks: readonly Buffer[]): string {
  return Buffer.concat(chunks).toString("utf8");
}
