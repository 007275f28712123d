/** The compiled policy: made once from the operator's rules, then only read. Pure. */
import { parseHostname } from "../base/hostname.ts";
import type { PlaceholderSource } from "../model/credential.ts";
import type { Injection } from "../model/decision.ts";
import type { Destination } from "../model/exchange.ts";
import { Failure } from "../model/failure.ts";
import type { PatternSource } from "../model/pattern.ts";
import type {
  AddressRange,
  DenySource,
  NetworkSource,
  ParentSource,
  PolicySource,
  RuleSource,
} from "../model/policy.ts";
import { buildHostTrie, type HostTrie } from "./host-trie.ts";
import { compilePath } from "./path-pattern.ts";

/** Immutable, so that an exchange that read it once is decided by one policy. */
export interface Policy {
  readonly generation: number;
  /** SHA-256 of the source text, hex. */
  readonly digest: string;
  readonly mode: "enforce" | "evaluate_only";
  /** For clients without a sandbox. */
  readonly network: Network;
  readonly sandboxes: ReadonlyMap<string, Network>;
  /** Top-level: for every client. */
  readonly denylist: HostTrie<DenyRule>;
  readonly allowRanges: readonly AddressRange[];
  readonly denyRanges: readonly AddressRange[];
  /** Indices of the operator's hooks, by what they are asked about. */
  readonly hooks: HostTrie<number>;
  /** By the domains that are trusted with them. */
  readonly placeholders: HostTrie<PlaceholderSource>;
  /** `host port` of what the gate itself asks over HTTP: no destinations for a sandbox. */
  readonly endpoints: ReadonlySet<string>;
  readonly parent: ParentSource | undefined;
}

/** Undefined: disabled. */
export type Network = { readonly rules: HostTrie<Rule>; readonly denylist: HostTrie<DenyRule> } | undefined;

export interface Rule {
  readonly id: string;
  readonly ports: readonly number[];
  readonly opaque: boolean;
  readonly methods: readonly string[] | undefined;
  /** Whether one of the patterns matches a whole path; undefined: any path. */
  readonly paths: PathTest | undefined;
  readonly encodedSlash: boolean;
  readonly injections: readonly Injection[];
  /** Id of the client certificate that goes with it. */
  readonly certificate: string | undefined;
  readonly mayReachPrivate: boolean;
  readonly intercept: "auto" | "always" | "never";
  readonly approve: boolean;
  readonly scrub: boolean;
  /** Has methods or paths, so a field that overrides either would get around it. */
  readonly limitsRequest: boolean;
  /** Cannot be judged, or done, without seeing the request. */
  readonly needsRequest: boolean;
}

/** Has the members of a `Rule` that a refusal reads. */
export interface DenyRule {
  readonly id: string;
  readonly mayReachPrivate: false;
  readonly ports: readonly number[] | undefined;
}

type PathTest = (path: string) => boolean;

/** Path tests by source, so that a pattern used in a thousand entries is compiled once. */
type PathTests = Map<string, PathTest>;

/** Takes a source that `config/` checked. What should not be in one fails (E_CONFIG) rather than widen a rule. */
export function compilePolicy(source: PolicySource): Policy {
  const tests: PathTests = new Map();
  return Object.freeze({
    generation: source.generation,
    digest: source.digest,
    mode: source.mode,
    network: compileNetwork(source.network, tests),
    sandboxes: new Map(source.sandboxes.map(({ id, network }) => [id, compileNetwork(network, tests)])),
    denylist: compileDenylist(source.denylist),
    allowRanges: source.allowRanges,
    denyRanges: source.denyRanges,
    hooks: buildHostTrie(
      source.hooks.flatMap(({ name, domains }, index) =>
        domains.map((domain) => [checkedPattern(domain, name), index] as const),
      ),
    ),
    placeholders: buildHostTrie(
      source.placeholders.flatMap((one) =>
        one.domains.map((domain) => [checkedPattern(domain, one.id), one] as const),
      ),
    ),
    endpoints: new Set([...endpointsOf(source), ...parentOf(source), ...source.endpoints.map(endpointKey)]),
    parent: source.parent,
  });
}

function compileNetwork(source: NetworkSource, tests: PathTests): Network {
  if (source.kind === "disabled") return undefined;
  return {
    rules: buildHostTrie(
      source.rules.map((rule) => [checkedPattern(rule.pattern, rule.id), compileRule(rule, tests)] as const),
    ),
    denylist: compileDenylist(source.denylist),
  };
}

function compileDenylist(sources: readonly DenySource[]): HostTrie<DenyRule> {
  return buildHostTrie(
    sources.map(
      ({ id, pattern, ports }) =>
        [checkedPattern(pattern, id), { id, mayReachPrivate: false, ports }] as const,
    ),
  );
}

function compileRule(source: RuleSource, tests: PathTests): Rule {
  const { id, pattern, methods, injections, intercept } = source;
  const limitsRequest = methods !== undefined || source.paths !== undefined;
  const opaque = source.protocol === "tcp";
  const needsRequest = limitsRequest || injections.length > 0 || source.certificate !== undefined;
  const shut = opaque || intercept === "never";
  if (needsRequest && shut) throw invalid(id, "needs to see inside the connection, and may not");
  return {
    id,
    ports: source.ports,
    opaque,
    methods,
    paths: source.paths === undefined ? undefined : compilePaths(source.paths, id, tests),
    encodedSlash: source.encodedSlash,
    injections,
    certificate: source.certificate,
    mayReachPrivate: source.private || pattern.kind === "exact" || pattern.kind === "address",
    intercept,
    approve: source.approve,
    scrub: source.scrub !== false,
    limitsRequest,
    needsRequest: needsRequest || (source.approve && !shut),
  };
}

function compilePaths(sources: readonly string[], id: string, tests: PathTests): PathTest {
  const all = sources.map((source) => {
    const known = tests.get(source);
    if (known !== undefined) return known;
    const compiled = compilePath(source);
    if (!compiled.ok) throw invalid(id, `has a path that cannot be used: ${compiled.problem}`);
    tests.set(source, compiled.matches);
    return compiled.matches;
  });
  return (path) => all.some((matches) => matches(path));
}

/** A name that is not canonical would sit in the trie where no question ever finds it. */
function checkedPattern(pattern: PatternSource, id: string): PatternSource {
  const name =
    pattern.kind === "exact" ? pattern.host : pattern.kind === "wildcard" ? pattern.base : undefined;
  if (name !== undefined && parseHostname(name) !== name)
    throw invalid(id, "has a name that is not canonical");
  return pattern;
}

function endpointsOf({ hooks, approvals }: PolicySource): readonly string[] {
  const asked = hooks.flatMap(({ handler }) => (handler.kind === "http" ? [handler.destination] : []));
  const webhook = approvals.webhook?.endpoint.destination;
  return [...asked, ...(webhook === undefined ? [] : [webhook])].map(endpointKey);
}

function parentOf({ parent }: PolicySource): readonly string[] {
  return parent === undefined ? [] : [endpointKey(parent.destination)];
}

export function endpointKey(destination: Destination): string {
  const host = destination.kind === "name" ? destination.host : destination.address.text;
  return `${host} ${destination.port}`;
}

function invalid(id: string, problem: string): Failure {
  return new Failure("E_CONFIG", "operator", `Rule ${id} ${problem}`);
}
