/** Policies and questions for tests, from the few words that matter to each. */
import { parseHostname } from "../../src/base/hostname.ts";
import { parseIpAddress, parseRange } from "../../src/base/ip.ts";
import { compilePolicy, type Policy } from "../../src/decide/policy.ts";
import type { PlaceholderSource } from "../../src/model/credential.ts";
import type { Destination, Question, RequestHead } from "../../src/model/exchange.ts";
import type { PatternSource } from "../../src/model/pattern.ts";
import type {
  AddressRange,
  ApprovalOptions,
  DenySource,
  HookSource,
  NetworkSource,
  PolicySource,
  RuleSource,
} from "../../src/model/policy.ts";

/** An entry as an operator writes it. */
export interface Entry {
  readonly id?: string;
  readonly domain: string;
  readonly ports?: readonly number[];
  readonly protocol?: "http" | "tcp";
  readonly methods?: readonly string[];
  readonly paths?: readonly string[];
  readonly encoded_slash?: "allow";
  readonly private?: boolean;
  readonly approve?: boolean;
  readonly intercept?: "auto" | "always" | "never";
  readonly transform?: Readonly<Record<string, string>>;
  readonly scrub?: false;
  readonly client_certificate?: string;
}

export interface Net {
  readonly allowlist?: readonly Entry[];
  readonly denylist?: readonly Entry[];
}

/** A config file's policy, as an operator writes it. */
export interface Settings {
  readonly mode?: "enforce" | "evaluate_only";
  readonly network?: Net | "disabled";
  readonly sandboxes?: readonly { readonly id: string; readonly network?: Net | "disabled" }[];
  readonly hooks?: readonly { readonly domains: readonly string[]; readonly url?: string }[];
  readonly approvals?: Partial<ApprovalOptions>;
  readonly placeholders?: readonly PlaceholderSource[];
  readonly upstream?: { readonly allow_ranges?: readonly string[]; readonly deny_ranges?: readonly string[] };
}

export function buildPolicy(settings: Settings): Policy {
  return compilePolicy(buildSource(settings));
}

export function buildSource(settings: Settings): PolicySource {
  const { network } = settings;
  return {
    generation: 1,
    digest: "0".repeat(64),
    mode: settings.mode ?? "enforce",
    network: networkSource(typeof network === "object" ? { allowlist: network.allowlist ?? [] } : network),
    denylist: typeof network === "object" ? (network.denylist ?? []).map(denySource) : [],
    sandboxes: (settings.sandboxes ?? []).map((sandbox) => ({
      id: sandbox.id,
      source: [],
      token: undefined,
      network: networkSource(sandbox.network),
    })),
    allowRanges: (settings.upstream?.allow_ranges ?? []).map(range),
    denyRanges: (settings.upstream?.deny_ranges ?? []).map(range),
    hooks: (settings.hooks ?? []).map(hookSource),
    approvals: { possible: true, timeout: 60_000, wait: true, ...settings.approvals },
    placeholders: settings.placeholders ?? [],
    endpoints: [],
    hookOptions: {
      mode: "enforce",
      profile: "sequential/first_deny",
      onApproval: "stop",
      onTransformConflict: "deny",
      onDisagreement: "deny",
    },
  };
}

/** `https://api.example.com/x`, with every part of a question that is left out filled in. */
export function ask(url: string, extra: Partial<Question> & Partial<RequestHead> = {}): Question {
  const { scheme, destination, target } = parseUrl(url);
  const request: RequestHead = {
    method: extra.method ?? "GET",
    target: extra.target ?? target,
    minor: 1,
    fields: extra.fields ?? [],
  };
  const visibility = extra.visibility ?? "request";
  return {
    client: extra.client ?? { sandbox: undefined, address: "10.80.0.2" },
    destination,
    scheme: extra.scheme ?? scheme,
    visibility,
    request: visibility === "request" ? request : undefined,
  };
}

/** What can be seen of the same question from outside. */
export function outside(question: Question): Question {
  return { ...question, visibility: "destination", request: undefined };
}

export function field(name: string, value = ""): RequestHead["fields"][number] {
  return { name, key: name.toLowerCase(), value };
}

export function range(text: string): AddressRange {
  return known(parseRange(text), text);
}

export function known<Value>(value: Value | undefined, text: string): Value {
  if (value === undefined) throw new Error(`Not readable: ${text}`);
  return value;
}

/** By hand, because `new URL` would make a good name of a bad one. */
function parseUrl(url: string): Pick<Question, "scheme" | "destination"> & { readonly target: string } {
  const match = /^(https|http|tcp):\/\/(\[[^\]]*\]|[^/:*]*)(?::(\d+))?(.*)$/s.exec(url);
  if (match === null) throw new Error(`Not readable: ${url}`);
  const [, scheme, host = "", port, target] = match;
  return {
    scheme: scheme as Question["scheme"],
    destination: destinationOf(host, Number(port ?? (scheme === "http" ? 80 : 443))),
    target: target === "" || target === undefined ? "/" : target,
  };
}

function destinationOf(host: string, port: number): Destination {
  const address = parseIpAddress(host.replace(/^\[|\]$/g, ""));
  if (address !== undefined) return { kind: "address", address, port };
  return { kind: "name", host: known(parseHostname(host), host), port };
}

function networkSource(network: Net | "disabled" | undefined): NetworkSource {
  if (network === undefined || network === "disabled") return { kind: "disabled" };
  return {
    kind: "allowlist",
    rules: (network.allowlist ?? []).map(ruleSource),
    denylist: (network.denylist ?? []).map(denySource),
  };
}

function ruleSource(entry: Entry): RuleSource {
  return {
    id: entry.id ?? entry.domain,
    pattern: patternSource(entry.domain),
    ports: entry.ports ?? [80, 443],
    protocol: entry.protocol ?? "http",
    methods: entry.methods,
    paths: entry.paths,
    encodedSlash: entry.encoded_slash === "allow",
    approve: entry.approve ?? false,
    private: entry.private ?? false,
    intercept: entry.intercept ?? "auto",
    ...(entry.scrub === false ? { scrub: false } : {}),
    ...(entry.client_certificate === undefined ? {} : { certificate: entry.client_certificate }),
    injections: Object.keys(entry.transform ?? {}).map((name) => ({
      field: name,
      key: name.toLowerCase(),
      secret: `network.allowlist.${entry.domain}.transform.${name}`,
    })),
  };
}

function denySource(entry: Entry): DenySource {
  return { id: entry.id ?? entry.domain, pattern: patternSource(entry.domain), ports: entry.ports };
}

function hookSource(hook: NonNullable<Settings["hooks"]>[number], index: number): HookSource {
  const url = hook.url === undefined ? undefined : parseUrl(hook.url);
  return {
    name: `hook-${index}`,
    domains: hook.domains.map(patternSource),
    timeout: 5_000,
    maySet: [],
    points: ["pre_tool_call"],
    handler:
      url === undefined
        ? { kind: "command", command: ["/bin/true"] }
        : { kind: "http", scheme: "https", destination: url.destination, target: url.target },
  };
}

function patternSource(domain: string): PatternSource {
  if (domain === "*") return { kind: "any" };
  if (domain.startsWith("*.")) return { kind: "wildcard", base: domain.slice(2) };
  const address = parseIpAddress(domain);
  return address === undefined ? { kind: "exact", host: domain } : { kind: "address", address };
}
