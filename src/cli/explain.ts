/** `explain`: what the gate would do with a request, from the very code that enforces. */
import { createInterface } from "node:readline/promises";
import { wayTo } from "../base/bypass.ts";
import { parseHostnameIdn } from "../base/hostname.ts";
import { loadConfig } from "../config/load.ts";
import { refuseAddress } from "../decide/decide-address.ts";
import { decideConnection } from "../decide/decide-connection.ts";
import { decideExchange } from "../decide/decide-exchange.ts";
import { decideHandOver } from "../decide/decide-hand-over.ts";
import { type Explanation, explain, type Query } from "../decide/explain.ts";
import { compilePolicy, type Policy } from "../decide/policy.ts";
import { destinationOf, nameOf } from "../identify/identify-destination.ts";
import type { Config } from "../model/config.ts";
import type { Permit } from "../model/decision.ts";
import { Failure } from "../model/failure.ts";
import { parseAbsoluteForm, parseAuthorityForm } from "../wire/request-target.ts";
import { renderProblem } from "./check.ts";
import {
  type Command,
  DEFAULT_CONFIG,
  EXIT,
  type OptionValues,
  stringOf,
  UsageError,
  unknownSandbox,
} from "./command.ts";
import { environment } from "./environment.ts";
import { type SecretView, viewSecrets } from "./explain-secrets.ts";

export const explainUrl: Command = {
  name: "explain",
  summary: "the verdict on a URL, with rule, reason, interception and injected header names",
  usage: "URL [--method M] [--sandbox ID] [--config FILE] [--with-secrets] [--json]",
  optionsHelp: [
    ["--method M", "the request's method (default GET)"],
    ["--sandbox ID", "the sandbox that asks; needed where the config names sandboxes"],
    ["--config FILE", `default ${DEFAULT_CONFIG}`],
    ["--with-secrets", "deny where a secret is missing here, as the gate does; otherwise that is a note"],
    ["--json", "print one JSON object a line"],
  ],
  example: "sallyport explain https://api.github.com/repos/my-org/x --method GET",
  options: {
    method: { type: "string" },
    sandbox: { type: "string" },
    config: { type: "string" },
    "with-secrets": { type: "boolean" },
    json: { type: "boolean" },
  },
  run: runExplain,
};

type Nullable = Omit<Explanation, "rule"> & { readonly rule?: string | null | undefined };

export interface Asked {
  readonly method: string;
  readonly sandbox: string | undefined;
  readonly config: Config;
  readonly policy: Policy;
  readonly secrets: SecretView;
  /** Whether a secret that is missing here is missing in the gate. */
  readonly asGate: boolean;
}

/** `-` reads `URL` or `METHOD URL` lines from stdin: one process for many questions. */
async function runExplain(values: OptionValues, positionals: readonly string[]): Promise<number> {
  const [url] = positionals;
  if (url === undefined || positionals.length > 1)
    throw new UsageError("Give one URL, or - for lines on stdin");
  const asked = askedOf(values);
  if (asked === undefined) return EXIT.usage;
  const json = values["json"] === true;
  if (url !== "-") return answer(url, asked, json);
  let code: number = EXIT.fine;
  for await (const line of createInterface({ input: process.stdin })) {
    const [first = "", second] = line.trim().split(/\s+/);
    if (first === "") continue;
    const one = second === undefined ? asked : { ...asked, method: first };
    code = Math.max(code, answer(second ?? first, one, json));
  }
  return code;
}

/** Undefined where the config cannot be used, which has then been said. */
export function askedOf(values: OptionValues): Asked | undefined {
  const loaded = loadConfig(stringOf(values, "config") ?? DEFAULT_CONFIG, 1);
  if (!loaded.ok) {
    for (const problem of loaded.problems) process.stderr.write(`${renderProblem(problem)}\n`);
    return undefined;
  }
  const { config } = loaded;
  const sandbox = stringOf(values, "sandbox");
  if (sandbox !== undefined && !config.policy.sandboxes.some(({ id }) => id === sandbox)) {
    throw unknownSandbox(sandbox, config.policy.sandboxes);
  }
  const method = stringOf(values, "method") ?? "GET";
  const policy = compilePolicy(config.policy);
  const secrets = viewSecrets(config, policy, environment());
  return { method, sandbox, config, policy, secrets, asGate: values["with-secrets"] === true };
}

function answer(url: string, asked: Asked, json: boolean): number {
  const explanation = explainOne(url, asked);
  const text = json ? `${JSON.stringify(jsonOf(url, explanation))}\n` : render(url, explanation);
  process.stdout.write(text);
  return explanation.verdict === "allow" ? EXIT.fine : EXIT.denied;
}

export function explainOne(url: string, asked: Asked): Explanation {
  return explanationOf(queryOf(url, asked), asked);
}

/** What cannot be put on is not sent: in the gate, an allowance whose secret is missing is a denial. */
function withSecrets(
  query: Query,
  explanation: Explanation,
  { policy, secrets, asGate }: Asked,
): Explanation {
  const permit = explanation.verdict === "allow" ? permitOf(query, policy) : undefined;
  if (permit === undefined) return explanation;
  const missing = secrets.missing(permit);
  if (missing.length > 0 && asGate) {
    return { ...explanation, verdict: "deny", reason: "secret-unavailable", injected: [], notes: missing };
  }
  if (missing.length > 0) {
    const notes = [
      ...explanation.notes,
      ...missing,
      "Where the gate lacks it too, it denies: secret-unavailable",
    ];
    return { ...explanation, notes };
  }
  const inspected = explanation.interception === "inspect" && explanation.reason === "rule-allows";
  return { ...explanation, notes: [...explanation.notes, ...secrets.notes(permit, inspected)] };
}

/** Throws a UsageError where the URL cannot be one of a request through the gate. */
function queryOf(url: string, { method, sandbox }: Asked): Query {
  const client = { sandbox, address: "" };
  if (!/^(?:https?|tcp):\/\//i.test(url)) {
    throw new UsageError(`${JSON.stringify(url)} is no URL; it begins with https://, http:// or tcp://`);
  }
  try {
    const sent = withAsciiHost(url);
    const tcp = /^tcp:\/\/([^/]+)\/?$/.exec(sent)?.[1];
    if (tcp !== undefined) {
      const destination = destinationOf(parseAuthorityForm(tcp));
      return { client, destination, scheme: "tcp", request: { method, target: "/", minor: 1, fields: [] } };
    }
    const { scheme, authority, target } = parseAbsoluteForm(sent, method);
    const destination = destinationOf(authority);
    return { client, destination, scheme, request: { method, target, minor: 1, fields: [] } };
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const remedy = /[^\x21-\x7e]|#/.test(url) ? "; percent-encode the path, and leave out the fragment" : "";
    throw new UsageError(`${JSON.stringify(url)}: ${error.message}${remedy}`);
  }
}

/** A name as a person writes it; clients send its A-labels. */
function withAsciiHost(url: string): string {
  const [, scheme = "", host = "", rest = ""] = /^([a-z]+:\/\/)([^/?#:@]+)(.*)$/is.exec(url) ?? [];
  const name = parseHostnameIdn(host);
  return name === undefined ? url : `${scheme}${name}${rest}`;
}

/** What enforcement would say: identity first, then rules, secrets, and such addresses as the config itself gives. */
function explanationOf(query: Query, asked: Asked): Explanation {
  const { config, policy, sandbox } = asked;
  const nobody = { rule: undefined, interception: "none", injected: [] } as const;
  if (config.policy.sandboxes.length > 0 && sandbox === undefined) {
    const notes = ["The config names sandboxes: say which one asks with --sandbox ID"];
    return { verdict: "deny", reason: "identity-unknown", notes, ...nobody };
  }
  const explanation = throughParent(query, withSecrets(query, explain(query, policy), asked), asked);
  const addresses = config.upstream.dnsHosts.get(nameOf(query.destination));
  if (explanation.verdict === "deny" || addresses === undefined) return explanation;
  const mayReachPrivate = permitOf(query, policy)?.mayReachPrivate ?? false;
  const reasons = addresses.map((address) => refuseAddress(address, mayReachPrivate, policy));
  const [reason] = reasons;
  if (reason === undefined || reasons.includes(undefined)) return explanation;
  const notes = ["upstream.dns.hosts gives the name an address that is refused"];
  return { ...explanation, verdict: "deny", reason, injected: [], notes };
}

/** What a parent proxy makes of an allowance: a note, or a refusal of what is not given away. */
function throughParent(
  query: Query,
  explanation: Explanation,
  { config, policy }: Pick<Asked, "config" | "policy">,
): Explanation {
  const { parent } = policy;
  if (parent === undefined || explanation.verdict === "deny") return explanation;
  const way = wayTo(parent, config.upstream.dnsHosts, query.destination);
  const permit = permitOf(query, policy);
  const handOver = way === "named" && permit !== undefined ? decideHandOver(permit) : undefined;
  if (handOver?.verdict === "deny") {
    const notes = ["A name of this kind is not given to a parent proxy that resolves it"];
    return { ...explanation, verdict: "deny", reason: handOver.reason, injected: [], notes };
  }
  return { ...explanation, notes: [...explanation.notes, WAYS[way]] };
}

const WAYS = {
  direct: "It goes past the parent proxy, as upstream.proxy.no_proxy says",
  vetted: "It leaves by the parent proxy, to an address that is vetted here",
  named: "It leaves by the parent proxy, which resolves the name: no address is checked here",
} as const;

/** The permit behind an explanation that allows. */
function permitOf(query: Query, policy: Policy): Permit | undefined {
  const outside = { ...query, visibility: "destination", request: undefined } as const;
  const connection = query.scheme === "http" ? undefined : decideConnection(outside, policy);
  if (connection?.verdict === "tunnel") return connection.allowance.permit;
  const decision = decideExchange({ ...query, visibility: "request" }, policy);
  return decision.verdict === "allow" ? decision.permit : undefined;
}

/** Every key is always there, as in a refusal: `rule` is null where none decided. */
function jsonOf(url: string, { verdict, reason, rule = null, ...rest }: Nullable): object {
  return { url, verdict, reason, rule, ...rest };
}

function render(url: string, explanation: Explanation): string {
  const lines = [
    `${explanation.verdict}  ${JSON.stringify(url).slice(1, -1)}`,
    `  reason        ${explanation.reason}`,
    `  rule          ${explanation.rule ?? "-"}`,
    `  interception  ${explanation.interception}`,
    `  injected      ${explanation.injected.join(", ") || "-"}`,
    ...explanation.notes.map((note) => `  note          ${note}`),
  ];
  return `${lines.join("\n")}\n`;
}
