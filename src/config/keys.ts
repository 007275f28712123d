/** Every key of the config file, by section: what the readers accept, the schema offers and the docs explain. Pure. */
import { DEFAULT_LIMITS, type Limits } from "../model/limits.ts";

export const TOP_KEYS = [
  "version",
  "listen",
  "ca",
  "mode",
  "workers",
  "network",
  "credentials",
  "vault",
  "sandboxes",
  "upstream",
  "records",
  "limits",
  "hooks",
  "hook_options",
  "approvals",
] as const;

export const LISTEN_KEYS = ["proxy", "gateway", "reverse", "admin"] as const;
export const GATEWAY_KEYS = ["address", "dns", "interfaces", "firewall"] as const;
export const ADMIN_KEYS = ["address", "token"] as const;
export const CA_KEYS = ["dir"] as const;

export const VAULT_KEYS = ["address", "token", "namespace"] as const;

export const NETWORK_KEYS = ["allowlist", "denylist", "intercept"] as const;
export const ALLOW_KEYS = [
  "id",
  "domain",
  "ports",
  "protocol",
  "methods",
  "paths",
  "encoded_slash",
  "private",
  "intercept",
  "approve",
  "scrub",
  "outsiders",
  "credential",
  "transform",
  "client_certificate",
] as const;
export const DENY_KEYS = ["id", "domain", "ports"] as const;

export const CREDENTIAL_KEYS = [
  "id",
  "type",
  "token",
  "header_name",
  "prefix",
  "client_id",
  "client_secret",
  "token_url",
  "refresh_token",
  "scopes",
  "value",
  "trusted_domains",
  "injection_location",
  "header_names",
  "username",
  "password",
  "client_auth",
  "access_key_id",
  "secret_access_key",
  "session_token",
  "region",
  "service",
  "unsigned_payload",
  "app_id",
  "installation_id",
  "private_key",
  "api_url",
  "permissions",
  "repositories",
  "key",
  "audience",
] as const;

export const SANDBOX_KEYS = ["id", "source", "interface", "mac", "netns", "token", "env", "network"] as const;

export const UPSTREAM_KEYS = [
  "allow_ranges",
  "deny_ranges",
  "ca_file",
  "dns",
  "proxy",
  "client_certificates",
] as const;
export const CLIENT_CERTIFICATE_KEYS = ["id", "cert", "key", "passphrase"] as const;
export const DNS_KEYS = ["servers", "hosts"] as const;
export const PARENT_PROXY_KEYS = ["url", "auth", "no_proxy", "resolve"] as const;

export const RECORDS_KEYS = ["file"] as const;
export const LIMIT_KEYS = Object.keys(DEFAULT_LIMITS) as readonly (keyof Limits)[];

export const HOOK_KEYS = [
  "name",
  "type",
  "command",
  "url",
  "domains",
  "points",
  "timeout",
  "may_set",
] as const;
export const APPROVAL_KEYS = ["timeout", "wait", "webhook"] as const;
export const WEBHOOK_KEYS = ["url", "secret", "timeout"] as const;
export const HOOK_OPTION_KEYS = [
  "composition",
  "mode",
  "on_approval",
  "on_transform_conflict",
  "on_disagreement",
] as const;

/** Each section by the path that its keys stand at; `[]` is a list's entry. */
export const CONFIG_KEYS: Readonly<Record<string, readonly string[]>> = {
  "": TOP_KEYS,
  listen: LISTEN_KEYS,
  "listen.gateway": GATEWAY_KEYS,
  "listen.admin": ADMIN_KEYS,
  ca: CA_KEYS,
  network: NETWORK_KEYS,
  "network.allowlist[]": ALLOW_KEYS,
  "network.denylist[]": DENY_KEYS,
  "credentials[]": CREDENTIAL_KEYS,
  vault: VAULT_KEYS,
  "sandboxes[]": SANDBOX_KEYS,
  upstream: UPSTREAM_KEYS,
  "upstream.dns": DNS_KEYS,
  "upstream.proxy": PARENT_PROXY_KEYS,
  "upstream.client_certificates[]": CLIENT_CERTIFICATE_KEYS,
  records: RECORDS_KEYS,
  limits: LIMIT_KEYS,
  "hooks[]": HOOK_KEYS,
  hook_options: HOOK_OPTION_KEYS,
  approvals: APPROVAL_KEYS,
  "approvals.webhook": WEBHOOK_KEYS,
};
