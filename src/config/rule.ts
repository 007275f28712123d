/** One entry of an allowlist. Pure. */
import type { Injection } from "../model/decision.ts";
import type { PatternSource } from "../model/pattern.ts";
import type { RuleSource } from "../model/policy.ts";
import { useClientCertificate } from "./client-certificates.ts";
import { useCredential } from "./credentials.ts";
import { patternKey } from "./domain.ts";
import { readId, readPattern, readPorts } from "./entry.ts";
import { type Fields, readChoice, readFlag, readMap, readTexts } from "./expect.ts";
import { ALLOW_KEYS } from "./keys.ts";
import { outsidersOf } from "./outsiders.ts";
import { quoteName, type Report } from "./report.ts";
import type { Scope } from "./scope.ts";
import { readTransform, samePlace } from "./transform.ts";
import type { Position, TreeNode } from "./tree.ts";

export interface PlacedRule {
  readonly rule: RuleSource;
  /** The entry's `id`; undefined where its pattern stands for it. */
  readonly id: string | undefined;
  readonly at: Position;
}

export interface RuleDefaults {
  readonly intercept: RuleSource["intercept"];
  /** Path of the entry, such as `network.allowlist[0]`. */
  readonly key: string;
}

type AllowFields = Fields<(typeof ALLOW_KEYS)[number]>;
type Inside = Pick<RuleSource, "methods" | "paths" | "injections" | "certificate">;

const DEFAULT_PORTS = [80, 443];
const PROTOCOLS = ["http", "tcp"] as const;
const SLASHES = ["allow", "deny"] as const;
/** Keys that lend the sandbox what is the operator's. */
const LENT = ["transform", "credential", "client_certificate"] as const;
/** Keys that need the inside of a request. */
const INSIDE = [...LENT, "methods", "paths"] as const;
export const INTERCEPTS = ["auto", "always", "never"] as const;

export function readRule(scope: Scope, node: TreeNode, defaults: RuleDefaults): PlacedRule | undefined {
  const { report } = scope;
  const fields = readMap(report, node, "An entry of `allowlist`", ALLOW_KEYS);
  if (fields === undefined) return undefined;
  const id = readId(report, fields.get("id"));
  const pattern = readPattern(report, fields);
  const inside = readInside(scope, fields, defaults.key);
  const protocol = optional(fields.get("protocol"), (value) =>
    readChoice(report, value, "`protocol`", PROTOCOLS),
  );
  const encodedSlash = optional(fields.get("encoded_slash"), (value) =>
    readChoice(report, value, "`encoded_slash`", SLASHES),
  );
  const opens = optional(fields.get("private"), (value) => readFlag(report, value, "`private`"));
  const approve = optional(fields.get("approve"), (value) => readFlag(report, value, "`approve`"));
  const scrub = optional(fields.get("scrub"), (value) => readFlag(report, value, "`scrub`"));
  if (scrub === true && inside.injections.length === 0) {
    report.warn(fields.keyAt("scrub"), "`scrub` does nothing where nothing is injected");
  }
  const ports = readPorts(report, fields.get("ports"));
  const intercept = readIntercept(report, fields, defaults.intercept);
  checkInside(report, fields, intercept, protocol === "tcp");
  if (pattern === undefined) return undefined;
  checkOutsiders(report, fields, pattern.source);
  const rule: RuleSource = {
    id: id ?? pattern.written,
    pattern: pattern.source,
    ports: ports ?? DEFAULT_PORTS,
    protocol: protocol ?? "http",
    ...inside,
    encodedSlash: encodedSlash === "allow",
    private: opens ?? false,
    approve: approve ?? false,
    ...(scrub === false ? { scrub } : {}),
    intercept,
  };
  return { rule, id, at: fields.keyAt("domain") };
}

function readInside(scope: Scope, fields: AllowFields, key: string): Inside {
  const transform = fields.get("transform");
  const set = transform === undefined ? [] : readTransform(scope, transform, `${key}.transform`);
  const brought = readCredential(scope, fields);
  checkSigned(scope, fields, brought, set);
  const certificate = useClientCertificate(
    scope.report,
    scope.certificates,
    fields.get("client_certificate"),
  );
  return {
    ...(certificate === undefined ? {} : { certificate }),
    methods: optional(fields.get("methods"), (node) => readMethods(scope.report, node)),
    paths: optional(fields.get("paths"), (node) => readPaths(scope, node)),
    // What the operator wrote out is on top of what the credential brings.
    injections: [...brought.filter((one) => !set.some((other) => samePlace(one, other))), ...set],
  };
}

function readCredential(scope: Scope, fields: AllowFields): readonly Injection[] {
  const node = fields.get("credential");
  const credential = node && useCredential(scope, node);
  if (node === undefined || credential === undefined) return [];
  if (credential.placeholder !== undefined) {
    scope.report.error(
      node.at,
      "A placeholder is replaced for its `trusted_domains`; an entry needs no `credential` for it",
    );
  }
  return credential.injections;
}

/** What is signed is the gate's from end to end, and STS gives out what would be the sandbox's own. */
function checkSigned(
  { report }: Scope,
  fields: AllowFields,
  brought: readonly Injection[],
  set: readonly Injection[],
): void {
  if (!brought.some(({ signing }) => signing !== undefined)) return;
  const both = set.find(({ key }) => brought.some((other) => other.key === key));
  if (both !== undefined)
    report.error(fields.keyAt("transform"), `${quoteName(both.field)} is part of the signature`);
  const domain = fields.get("domain");
  if (domain?.kind === "scalar" && /^(?:\*\.)?sts[.-]/i.test(String(domain.value))) {
    report.error(domain.at, "STS gives out other credentials, and a sandbox gets none");
  }
}

function readMethods(report: Report, node: TreeNode): readonly string[] | undefined {
  const methods = readTexts(report, node, "`methods`");
  if (methods?.length === 0) report.error(node.at, "`methods` must name at least one method, or be left out");
  for (const { text, at } of methods ?? []) {
    if (!/^[!#$%&'*+.^_`|~0-9A-Z-]+$/.test(text)) {
      const upper = text.toUpperCase();
      const advice = /^[A-Z]+$/.test(upper) ? `; write \`${upper}\`` : "";
      report.error(at, `A method must be a word in upper case${advice}`);
    } else if (text === "CONNECT") {
      report.warn(at, "CONNECT opens a tunnel and is never a request that `methods` judges");
    }
  }
  return methods && [...new Set(methods.map(({ text }) => text))];
}

function readPaths(scope: Scope, node: TreeNode): readonly string[] | undefined {
  const paths = readTexts(scope.report, node, "`paths`");
  if (paths?.length === 0)
    scope.report.error(node.at, "`paths` must hold at least one pattern, or be left out");
  for (const { text, at } of paths ?? []) {
    const problem = scope.checkPath(text);
    if (problem !== undefined) scope.report.error(at, `Path pattern: ${problem}`);
    else if (/^[A-Za-z0-9_-]/.test(text)) {
      scope.report.warn(at, "A path begins with `/`, so this pattern matches nothing");
    } else if (text.includes("?") && /[^\\]\?[A-Za-z0-9_]+=/.test(text)) {
      scope.report.warn(at, "The query is no part of the path that a pattern sees");
    }
  }
  return paths?.map(({ text }) => text);
}

function readIntercept(
  report: Report,
  fields: AllowFields,
  fallback: RuleSource["intercept"],
): RuleSource["intercept"] {
  const node = fields.get("intercept");
  return (node && readChoice(report, node, "`intercept`", INTERCEPTS)) ?? fallback;
}

/** What needs the request's inside, beside settings that keep us outside. */
function checkInside(
  report: Report,
  fields: AllowFields,
  intercept: RuleSource["intercept"],
  tcp: boolean,
): void {
  if (tcp) checkTcp(report, fields, intercept);
  const first = INSIDE.find((key) => asks(fields, key));
  if (first !== undefined && tcp) {
    report.error(
      fields.keyAt(first),
      `\`${first}\` needs the inside of a request, and \`protocol: tcp\` has none`,
    );
  } else if (first !== undefined && intercept === "never") {
    report.error(
      fields.keyAt(first),
      `\`${first}\` needs the inside of TLS, and \`intercept: never\` keeps it shut`,
    );
  }
  if (fields.has("encoded_slash") && !fields.has("paths")) {
    report.warn(fields.keyAt("encoded_slash"), "`encoded_slash` does nothing without `paths`");
  }
}

function checkTcp(report: Report, fields: AllowFields, intercept: RuleSource["intercept"]): void {
  if (!fields.has("ports")) report.error(fields.keyAt("protocol"), "`protocol: tcp` needs its `ports`");
  if (intercept === "always" && fields.has("intercept")) {
    report.error(fields.keyAt("intercept"), "`protocol: tcp` passes unseen and cannot be intercepted");
  }
}

/** A secret for names that strangers can own would be given to strangers. */
function checkOutsiders(report: Report, fields: AllowFields, pattern: PatternSource): void {
  const node = fields.get("outsiders");
  const accepted = node !== undefined && readChoice(report, node, "`outsiders`", ["accept"]) !== undefined;
  const key = LENT.find((candidate) => asks(fields, candidate));
  const found = key === undefined ? undefined : outsidersOf(pattern);
  if (key === undefined || found === undefined) {
    if (accepted)
      report.warn(fields.keyAt("outsiders"), "`outsiders` does nothing where no wildcard injects");
    return;
  }
  if (found.kind === "none" || (found.kind === "private" && accepted)) return;
  const owners = pattern.kind === "any" ? "any name" : `names under ${quoteName(found.suffix)}`;
  const advice =
    found.kind === "private" ? "; name the hosts, or write `outsiders: accept`" : "; name the hosts";
  report.error(
    fields.keyAt(key),
    `${quoteName(patternKey(pattern))} cannot inject: strangers can own ${owners}${advice}`,
  );
}

/** Whether an entry has the key, and not as an empty `transform`, which asks for nothing. */
function asks(fields: AllowFields, key: (typeof INSIDE)[number]): boolean {
  const node = fields.get(key);
  if (node?.kind === "list" && key === "transform") return node.items.length > 0;
  return node !== undefined && !(node.kind === "map" && node.entries.length === 0);
}

function optional<T>(node: TreeNode | undefined, read: (node: TreeNode) => T | undefined): T | undefined {
  return node === undefined ? undefined : read(node);
}
