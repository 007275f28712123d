/** Named credentials, as the config has them: keys of secrets and plain facts, never a secret. Types only. */
import type { Destination } from "./exchange.ts";
import type { PatternSource } from "./pattern.ts";

/** An HTTP service that the gate itself calls: a token endpoint, a vault. */
export interface ServiceEndpoint {
  readonly scheme: "http" | "https";
  readonly destination: Destination;
  /** Path and query. */
  readonly target: string;
}

/** A HashiCorp Vault (or OpenBao) whose KV version 2 engines hold secrets. */
export interface VaultSource {
  /** Its target is what stands before `/v1`: mostly nothing. */
  readonly endpoint: ServiceEndpoint;
  /** Key of a template in `secrets/`. */
  readonly token: string;
  readonly namespace: string | undefined;
}

/** A text that stands for a secret inside the sandbox and is replaced on its way to the hosts that may have it. */
export interface PlaceholderSource {
  readonly id: string;
  /** Such as `__SALLYPORT_CRED_slack__`. */
  readonly placeholder: string;
  /** Key of a template in `secrets/`. */
  readonly secret: string;
  readonly domains: readonly PatternSource[];
  /** At least one. */
  readonly locations: readonly PlaceholderLocation[];
  /** Lower case; what `header` means. */
  readonly headerNames: readonly string[];
}

export type PlaceholderLocation = "header" | "query" | "body";

/** What gets a short-lived token from somebody. Each text that may be secret is a key of a template. */
export type TokenSource = OAuth2Source | GithubAppSource | GcpSource;

export interface OAuth2Source {
  readonly kind: "oauth2";
  readonly id: string;
  readonly endpoint: ServiceEndpoint;
  readonly clientId: string;
  readonly clientSecret: string | undefined;
  /** Present: it is the grant; absent: the client's own credentials are. */
  readonly refreshToken: string | undefined;
  readonly scopes: readonly string[];
  /** How the client names itself (RFC 6749 section 2.3.1). */
  readonly style: "basic" | "body";
}

export interface GithubAppSource {
  readonly kind: "github_app";
  readonly id: string;
  /** Its target is that of the one call. */
  readonly endpoint: ServiceEndpoint;
  readonly appId: string;
  readonly privateKey: string;
  readonly permissions: Readonly<Record<string, string>> | undefined;
  readonly repositories: readonly string[] | undefined;
}

export interface GcpSource {
  readonly kind: "gcp_service_account";
  readonly id: string;
  readonly endpoint: ServiceEndpoint;
  /** The whole JSON key file. */
  readonly key: string;
  /** One of the two. */
  readonly scopes: readonly string[];
  readonly audience: string | undefined;
}
