/** `approve`: what waits for a person's word at a running gate, and the giving of it. */
import type { IncomingMessage } from "node:http";
// biome-ignore lint/style/noRestrictedImports: the operator's own call to the gate's own page, from another process
import { request } from "node:http";
import { userInfo } from "node:os";
import { loadConfig } from "../config/load.ts";
import { readScope } from "../hooks/resolution.ts";
import type { Config } from "../model/config.ts";
import { Failure } from "../model/failure.ts";
import { createSecrets } from "../secrets/secrets.ts";
import { renderProblem } from "./check.ts";
import { type Command, DEFAULT_CONFIG, EXIT, type OptionValues, stringOf, UsageError } from "./command.ts";
import { environment } from "./environment.ts";

export const approve: Command = {
  name: "approve",
  summary: "list the exchanges that wait for approval, or approve or reject one",
  usage: "[ID] [--reject] [--for once|sandbox|30m] [--by NAME] [--config FILE] [--json]",
  optionsHelp: [
    ["--reject", "say no"],
    ["--for SCOPE", "once (default), sandbox: as long as the sandbox is configured, or minutes: 30m"],
    ["--by NAME", "who says so, for the record; default the name of your account"],
    ["--config FILE", `where listen.admin and its token stand; default ${DEFAULT_CONFIG}`],
    ["--json", "print the list as one JSON object"],
  ],
  example: "sallyport approve 0123456789ab --for 30m",
  options: {
    reject: { type: "boolean" },
    for: { type: "string" },
    by: { type: "string" },
    config: { type: "string" },
    json: { type: "boolean" },
  },
  run: runApprove,
};

const TIMEOUT_MS = 15_000;
const MAX_ANSWER = 4_194_304;

interface Waiting {
  readonly id: string;
  readonly sandbox?: string;
  readonly method: string;
  readonly host: string;
  readonly port: number;
  readonly path: string | null;
  readonly why?: string;
}

async function runApprove(values: OptionValues, positionals: readonly string[]): Promise<number> {
  const id = idOf(positionals);
  const scope = stringOf(values, "for") ?? "once";
  if (readScope(scope) === undefined) throw new UsageError("--for is once, sandbox, or minutes such as 30m");
  const loaded = loadConfig(stringOf(values, "config") ?? DEFAULT_CONFIG, 1);
  if (!loaded.ok) {
    for (const problem of loaded.problems) process.stderr.write(`${renderProblem(problem)}\n`);
    return EXIT.usage;
  }
  if (id === undefined) return list(await ask(loaded.config, "GET", "/approvals"), values["json"] === true);
  const outcome = values["reject"] === true ? "reject" : "approve";
  const by = stringOf(values, "by") ?? userInfo().username;
  await ask(loaded.config, "POST", `/approvals/${id}`, JSON.stringify({ outcome, by, for: scope }));
  process.stdout.write(`${id}: ${outcome === "approve" ? "approved" : "rejected"}\n`);
  return EXIT.fine;
}

function idOf(positionals: readonly string[]): string | undefined {
  const [id] = positionals;
  if (positionals.length > 1) throw new UsageError("Give one id");
  if (id !== undefined && !/^[0-9a-f]{12}$/.test(id)) throw new UsageError("An id is twelve hex digits");
  return id;
}

function list(text: string, json: boolean): number {
  const { approvals } = JSON.parse(text) as { readonly approvals: readonly Waiting[] };
  if (json) process.stdout.write(`${JSON.stringify({ approvals })}\n`);
  else if (approvals.length === 0) process.stdout.write("Nothing waits for approval\n");
  for (const one of json ? [] : approvals) process.stdout.write(`${render(one)}\n`);
  return EXIT.fine;
}

/** One line: a client chose the path, and a terminal reads this. */
function render({ id, sandbox, method, host, port, path, why }: Waiting): string {
  const about = `${id}  ${sandbox ?? "-"}  ${method} ${host}:${port}${path ?? ""}${why === undefined ? "" : `  (${why})`}`;
  return about.replace(/[^ -~]/g, "?").slice(0, 1_000);
}

async function ask(config: Config, method: string, path: string, body?: string): Promise<string> {
  const { admin } = config.listen;
  if (admin?.token === undefined) {
    throw new Failure("E_CONFIG", "operator", "listen.admin needs a token: without one nobody can approve");
  }
  const secrets = createSecrets(config.templates, { env: environment(), now: () => performance.now() });
  const token = secrets.render(admin.token);
  if (!token.ok) throw new Failure("E_CONFIG", "operator", token.problem);
  const host = admin.host === "::" || admin.host === "0.0.0.0" ? "127.0.0.1" : admin.host;
  const { status, text } = await call({ host, port: admin.port, method, path }, token.value, body);
  if (status === 200) return text;
  if (status === 404) throw new Failure("E_INTERNAL", "operator", "Nothing of this id waits for approval");
  throw new Failure("E_INTERNAL", "operator", `The gate answered with status ${status}`);
}

function call(
  options: { readonly host: string; readonly port: number; readonly method: string; readonly path: string },
  token: string,
  body: string | undefined,
): Promise<{ readonly status: number; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}`, connection: "close" };
    const outgoing = request({ ...options, headers, timeout: TIMEOUT_MS });
    outgoing.on("timeout", () => outgoing.destroy(new Error("The gate did not answer in time")));
    outgoing.on("error", (error) => {
      reject(new Failure("E_CONNECT", "operator", `The gate cannot be reached: ${error.message}`));
    });
    outgoing.on("response", (response) => {
      read(response).then((text) => resolve({ status: response.statusCode ?? 0, text }), reject);
    });
    outgoing.end(body);
  });
}

async function read(response: IncomingMessage): Promise<string> {
  let text = "";
  for await (const bytes of response) {
    text += String(bytes);
    if (text.length > MAX_ANSWER)
      throw new Failure("E_INTERNAL", "operator", "The gate's answer is too long");
  }
  return text;
}
