/** A checked config file, as the rest of the program sees it. Types only. */
import type { TokenSource, VaultSource } from "./credential.ts";
import type { IpAddress } from "./exchange.ts";
import type { Limits } from "./limits.ts";
import type { PolicySource } from "./policy.ts";

export interface Config {
  /** Absolute path of the file it came from. */
  readonly file: string;
  /** What stood in it: workers read it for themselves. May hold literal secrets; print none of it. */
  readonly text: string;
  readonly listen: {
    readonly proxy: Endpoint | undefined;
    readonly admin: AdminEndpoint | undefined;
    readonly gateway: GatewayEndpoint | undefined;
    readonly reverse: Endpoint | undefined;
  };
  /** Absolute. */
  readonly caDir: string;
  readonly workers: number | "auto";
  readonly policy: PolicySource;
  /** Of each configured sandbox, what policy need not know. */
  readonly sandboxes: readonly SandboxSetup[];
  /** Every value that may hold a secret, by the key that an injection or a sandbox's token names it with. */
  readonly templates: ReadonlyMap<string, Template>;
  /** Where each of `upstream.client_certificates` stands, by id. */
  readonly certificates: ReadonlyMap<string, { readonly line: number; readonly column: number }>;
  /** What has short-lived tokens got for it. */
  readonly tokens: readonly TokenSource[];
  readonly vault: VaultSource | undefined;
  readonly upstream: {
    /** Absolute; PEM roots added to the system's. */
    readonly caFile: string | undefined;
    /** `address` or `address:port`, canonical; empty: the system's resolvers. */
    readonly dnsServers: readonly string[];
    readonly dnsHosts: ReadonlyMap<string, readonly IpAddress[]>;
  };
  /** Absolute path, or `-` for stdout. */
  readonly recordsFile: string;
  readonly limits: Limits;
}

export interface SandboxSetup {
  readonly id: string;
  /** Absolute path of a network namespace that `serve` attaches to. */
  readonly netns: string | undefined;
  /** Variables that `run` sets. */
  readonly env: Readonly<Record<string, string>>;
}

export interface Endpoint {
  /** A literal address; `::` listens on v4 and v6. */
  readonly host: string;
  readonly port: number;
}

/** A value such as `Bearer ${env:TOKEN}`, taken apart; a file path is absolute. Literals may be secret too: print none of it. */
export type Template = readonly TemplatePart[];

export type TemplatePart =
  | { readonly kind: "literal"; readonly text: string }
  /** `lines`: a key file, whose value may have line breaks. */
  | { readonly kind: "env"; readonly name: string; readonly lines?: true }
  | { readonly kind: "file"; readonly path: string; readonly lines?: true }
  /** A file of the directory that systemd keeps for the service. */
  | { readonly kind: "credential"; readonly name: string; readonly lines?: true }
  /** What a program prints; no shell. */
  | { readonly kind: "exec"; readonly command: readonly [file: string, ...args: readonly string[]] }
  /** A field of a secret in the vault, as it is in its current version. */
  | {
      readonly kind: "vault";
      readonly mount: string;
      readonly path: string;
      readonly field: string;
      readonly lines?: true;
    }
  /** base64 of `user:password`; both are keys of templates. */
  | { readonly kind: "basic"; readonly user: string; readonly password: string }
  /** The current token of a credential. */
  | { readonly kind: "minted"; readonly credential: string };

/** One thing that is wrong with a config file. */
export interface Problem {
  readonly severity: "error" | "warning";
  readonly file: string;
  /** From 1. */
  readonly line: number;
  readonly column: number;
  /** Never quotes a value that may be secret. */
  readonly message: string;
}

export type LoadResult =
  | { readonly ok: true; readonly config: Config; readonly warnings: readonly Problem[] }
  | { readonly ok: false; readonly problems: readonly Problem[] };

export interface AdminEndpoint extends Endpoint {
  /** Key in `templates` of the token that everything but the three public pages needs. */
  readonly token: string | undefined;
}

/** The door of namespaces whose default route is this host. */
export interface GatewayEndpoint {
  /** Where their TCP is redirected to. */
  readonly address: Endpoint;
  /** Where their port 53 is redirected to, UDP and TCP. */
  readonly dns: Endpoint;
  /** Names of interfaces, or patterns with `*` at the end. */
  readonly interfaces: readonly string[];
  readonly firewall: "apply" | "print" | "none";
}
