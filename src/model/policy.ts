/** What `config/` hands to `decide/` to be compiled: the operator's rules, checked, in plain values. */
import type { PlaceholderSource, ServiceEndpoint } from "./credential.ts";
import type { Injection } from "./decision.ts";
import type { Destination, IpAddress } from "./exchange.ts";
import type { PatternSource } from "./pattern.ts";

export interface PolicySource {
  /** Rises by one with every policy that came into force in this process. Pools are keyed by it. */
  readonly generation: number;
  /** SHA-256 of the source text, hex; its first 12 characters are `policy` in records. */
  readonly digest: string;
  readonly mode: "enforce" | "evaluate_only";
  /** Applies where `sandboxes` is empty. */
  readonly network: NetworkSource;
  /** The top-level denylist: it applies to every sandbox. */
  readonly denylist: readonly DenySource[];
  readonly sandboxes: readonly SandboxSource[];
  readonly allowRanges: readonly AddressRange[];
  readonly denyRanges: readonly AddressRange[];
  /** In the order of the file, which is the order they are asked in. */
  readonly hooks: readonly HookSource[];
  readonly hookOptions: HookOptions;
  readonly placeholders: readonly PlaceholderSource[];
  /** What the gate itself calls, hooks aside: no destinations for a sandbox. */
  readonly endpoints: readonly Destination[];
  readonly approvals: ApprovalOptions;
  /** `upstream.proxy`: what leaves goes by it. */
  readonly parent?: ParentSource | undefined;
}

/** Another proxy, between this one and the world. */
export interface ParentSource {
  /** `https`: TLS to the proxy itself. */
  readonly scheme: "http" | "https";
  readonly destination: Destination;
  /** Key of the template that is `user:password`; undefined: it asks for none. */
  readonly auth: string | undefined;
  /** What is dialled directly all the same. */
  readonly bypass: readonly BypassSource[];
  /** `local`: names are resolved and their addresses vetted here. `parent`: it gets the name. */
  readonly resolve: "local" | "parent";
}

/** Of names, or of addresses. */
export type BypassSource =
  | Exclude<PatternSource, { kind: "address" }>
  | { readonly kind: "range"; readonly range: AddressRange };

/** What becomes of an exchange that a person has to approve. */
export interface ApprovalOptions {
  /** Milliseconds. */
  readonly timeout: number;
  /** Whether anybody can approve: the admin listener has a token, or there is a webhook. */
  readonly possible: boolean;
  /** Whether the client waits; else it is refused at once, and may ask again. */
  readonly wait: boolean;
  /** Told of each exchange that waits; its answer may be the word. */
  readonly webhook?: ApprovalWebhook;
}

export interface ApprovalWebhook {
  readonly endpoint: HttpEndpoint;
  /** Key of a template in `secrets/`: what a request is signed with. */
  readonly secret: string | undefined;
  /** Milliseconds that it may take to answer. */
  readonly timeout: number;
}

/** What the gate itself posts to. */
export interface HttpEndpoint extends ServiceEndpoint {
  readonly kind: "http";
}

/** An operator's hook: it may turn an allowance into a denial. */
export interface HookSource {
  readonly name: string;
  /** Destinations that it is asked about. */
  readonly domains: readonly PatternSource[];
  /** Milliseconds. */
  readonly timeout: number;
  /** Fields that it may set, as the operator spells them. */
  readonly maySet: readonly string[];
  readonly points: readonly HookPoint[];
  readonly handler:
    | { readonly kind: "command"; readonly command: readonly [file: string, ...args: readonly string[]] }
    | HttpEndpoint;
}

/** Before an exchange leaves, and once it is over. */
export type HookPoint = "pre_tool_call" | "post_tool_call";

/** How several hooks make one verdict: AGENT-HOOKS-0.1 section 7. */
export interface HookOptions {
  readonly mode: "enforce" | "evaluate_only";
  readonly profile:
    | "sequential/first_deny"
    | "sequential/run_all"
    | "parallel/strictest"
    | "parallel/unanimous";
  readonly onApproval: "stop" | "resume";
  readonly onTransformConflict: "deny" | "approval";
  readonly onDisagreement: "deny" | "approval";
}

export type NetworkSource =
  | { readonly kind: "disabled" }
  | {
      readonly kind: "allowlist";
      readonly rules: readonly RuleSource[];
      /** A sandbox's own denylist; the top-level one is not repeated here. */
      readonly denylist: readonly DenySource[];
    };

export interface RuleSource {
  /** The entry's `id`, or its pattern as written. */
  readonly id: string;
  readonly pattern: PatternSource;
  readonly ports: readonly number[];
  readonly protocol: "http" | "tcp";
  /** Upper case; undefined: any. */
  readonly methods: readonly string[] | undefined;
  /** RE2 sources matched against the whole path; undefined: any. */
  readonly paths: readonly string[] | undefined;
  /** `encoded_slash: allow`. */
  readonly encodedSlash: boolean;
  readonly private: boolean;
  /** `approve: true`: a person has to approve each exchange. */
  readonly approve: boolean;
  /** `scrub: false`: answers are not searched for what was injected. */
  readonly scrub?: false;
  readonly intercept: "auto" | "always" | "never";
  readonly injections: readonly Injection[];
  /** Id of the client certificate that is shown to the upstream. */
  readonly certificate?: string;
}

export interface DenySource {
  readonly id: string;
  readonly pattern: PatternSource;
  /** Undefined: every port. */
  readonly ports: readonly number[] | undefined;
}

export interface SandboxSource {
  readonly id: string;
  readonly source: readonly AddressRange[];
  /** Key of the token's template in `secrets/`; undefined where the sandbox has none. */
  readonly token: string | undefined;
  readonly network: NetworkSource;
  /** At the gateway: the interface, or the port of a bridge, that it sends by. */
  readonly interface?: string;
  /** At the gateway: lower case. */
  readonly mac?: string;
}

export interface AddressRange {
  readonly base: IpAddress;
  readonly prefixBits: number;
}
