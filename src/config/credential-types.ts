/** Each kind of credential, read. Pure. */
import type { GcpSource, GithubAppSource, OAuth2Source, PlaceholderSource } from "../model/credential.ts";
import type { Injection } from "../model/decision.ts";
import type { SigningSource } from "../model/signing.ts";
import {
  domainsAt,
  headerAt,
  headerNamesAt,
  locationsAt,
  prefixAt,
  type Reader,
  secretAt,
  textAt,
  textsAt,
} from "./credential-fields.ts";
import { readChoice, readFlag } from "./expect.ts";
import { readServiceUrl, serviceUrl } from "./http-endpoint.ts";
import { outsidersOf } from "./outsiders.ts";
import { quoteName } from "./report.ts";

/** Undefined where an error was reported. */
interface Parts {
  readonly injections?: readonly Injection[];
  readonly placeholder?: PlaceholderSource;
  readonly token?: OAuth2Source | GithubAppSource | GcpSource;
}

export const READERS: Readonly<Record<string, (reader: Reader) => Parts>> & {
  readonly [Type in
    | "bearer_token"
    | "basic"
    | "oauth2"
    | "environment_variable"
    | "aws_sigv4"
    | "github_app"
    | "gcp_service_account"]: (reader: Reader) => Parts;
} = {
  bearer_token: readBearer,
  basic: readBasic,
  oauth2: readOAuth2,
  environment_variable: readPlaceholder,
  aws_sigv4: readSigning,
  github_app: readGithubApp,
  gcp_service_account: readGcp,
};

/** What a sandbox holds in the place of the secret. */
function placeholderOf(id: string): string {
  return `__SALLYPORT_CRED_${id}__`;
}

function readBearer(reader: Reader): Parts {
  const { scope, id } = reader;
  const key = secretAt(reader, "token");
  const template = key === undefined ? undefined : scope.templates.get(key);
  if (key === undefined || template === undefined) return {};
  scope.templates.set(key, [...before(reader), ...template]);
  return { injections: [injection(headerAt(reader) ?? "Authorization", `credentials.${id}.token`)] };
}

function readBasic(reader: Reader): Parts {
  const { scope, id } = reader;
  const user = secretAt(reader, "username");
  const password = secretAt(reader, "password");
  if (user === undefined || password === undefined) return {};
  if (scope.templates.get(user)?.some((part) => part.kind === "literal" && part.text.includes(":")) === true)
    scope.report.error(reader.fields.keyAt("username"), "`username` must not hold a colon (RFC 7617)");
  const key = `credentials.${id}`;
  scope.templates.set(key, [
    { kind: "literal", text: "Basic " },
    { kind: "basic", user, password },
  ]);
  return { injections: [injection("Authorization", key)] };
}

function readOAuth2(reader: Reader): Parts {
  const { scope, id, fields } = reader;
  const endpointNode = fields.get("token_url");
  const endpoint = endpointNode && readServiceUrl(scope.report, endpointNode, "`token_url`");
  const clientId = secretAt(reader, "client_id");
  const clientSecret = secretAt(reader, "client_secret");
  const refreshToken = secretAt(reader, "refresh_token");
  const styleNode = fields.get("client_auth");
  const style = styleNode && readChoice(scope.report, styleNode, "`client_auth`", ["basic", "body"]);
  if (!fields.has("refresh_token") && !fields.has("client_secret")) {
    scope.report.error(
      fields.at,
      "A credential of type `oauth2` needs a `refresh_token`, or a `client_secret` to ask with",
    );
  }
  const scopes = textsAt(reader, "scopes") ?? [];
  const injections = minted(reader);
  if (endpoint === undefined || clientId === undefined) return { injections };
  const client = { clientId, clientSecret, refreshToken };
  const token = { kind: "oauth2", id, endpoint, ...client, scopes, style: style ?? "basic" } as const;
  return { injections, token };
}

function readGithubApp(reader: Reader): Parts {
  const { scope, id, fields } = reader;
  const urlNode = fields.get("api_url");
  const base =
    urlNode === undefined
      ? serviceUrl("https://api.github.com/")
      : readServiceUrl(scope.report, urlNode, "`api_url`");
  const numbers = (["app_id", "installation_id"] as const).map((key) => {
    const node = fields.get(key);
    const value = node?.kind === "scalar" ? String(node.value) : "";
    // A client id (`Iv1.…`) is as good as the number of an app.
    if (/^[A-Za-z0-9.]{1,40}$/.test(value)) return value;
    if (node !== undefined) scope.report.error(node.at, `\`${key}\` must be a number or a client id`);
    return "";
  });
  const [appId = "", installation = ""] = numbers;
  const privateKey = secretAt(reader, "private_key", "lines");
  const permissions = permissionsAt(reader);
  const repositories = textsAt(reader, "repositories");
  const injections = minted(reader);
  if (base === undefined || privateKey === undefined) return { injections };
  const target = `${base.target.replace(/\/$/, "")}/app/installations/${installation}/access_tokens`;
  const endpoint = { ...base, target };
  const token: GithubAppSource = {
    kind: "github_app",
    id,
    endpoint,
    appId,
    privateKey,
    permissions,
    repositories,
  };
  return { injections, token };
}

function permissionsAt({ scope, fields }: Reader): Readonly<Record<string, string>> | undefined {
  const node = fields.get("permissions");
  if (node === undefined) return undefined;
  if (node.kind !== "map") {
    scope.report.error(node.at, "`permissions` must be a map of permissions and levels");
    return undefined;
  }
  const levels = ["read", "write", "admin"] as const;
  return Object.fromEntries(
    node.entries.map(({ key, value }) => [
      key,
      readChoice(scope.report, value, quoteName(key), levels) ?? "",
    ]),
  );
}

function readGcp(reader: Reader): Parts {
  const { scope, id, fields } = reader;
  const urlNode = fields.get("token_url");
  const endpoint =
    urlNode === undefined
      ? serviceUrl("https://oauth2.googleapis.com/token")
      : readServiceUrl(scope.report, urlNode, "`token_url`");
  const key = secretAt(reader, "key", "lines");
  const scopes = textsAt(reader, "scopes") ?? [];
  const audience = textAt(reader, "audience");
  if (fields.has("scopes") === fields.has("audience")) {
    scope.report.error(
      fields.at,
      "A credential of type `gcp_service_account` needs either `scopes` or an `audience`",
    );
  }
  const injections = minted(reader);
  if (endpoint === undefined || key === undefined) return { injections };
  return { injections, token: { kind: "gcp_service_account", id, endpoint, key, scopes, audience } };
}

function readPlaceholder(reader: Reader): Parts {
  const { scope, id, fields } = reader;
  const secret = secretAt(reader, "value");
  const domains = domainsAt(reader);
  const locations = locationsAt(reader);
  const headerNames = headerNamesAt(reader);
  for (const domain of domains ?? []) {
    const found = outsidersOf(domain);
    if (found === undefined || found.kind === "none") continue;
    scope.report.error(fields.keyAt("trusted_domains"), "Strangers can own names under a trusted domain");
  }
  if (secret === undefined || domains === undefined) return {};
  return {
    placeholder: { id, placeholder: placeholderOf(id), secret, domains, locations, headerNames },
  };
}

function readSigning(reader: Reader): Parts {
  const { scope, id, fields } = reader;
  const accessKeyId = secretAt(reader, "access_key_id");
  const secretAccessKey = secretAt(reader, "secret_access_key");
  const sessionToken = secretAt(reader, "session_token");
  const [region, service] = (["region", "service"] as const).map((key) => {
    const text = textAt(reader, key);
    if (text === undefined || /^[a-z0-9-]{1,64}$/.test(text)) return text;
    scope.report.error(fields.keyAt(key), `\`${key}\` must be lower-case letters, digits and hyphens`);
    return undefined;
  });
  if (service === "sts") {
    scope.report.error(fields.keyAt("service"), "STS gives out other credentials, and a sandbox gets none");
  }
  const flag = fields.get("unsigned_payload");
  const unsigned = flag && readFlag(scope.report, flag, "`unsigned_payload`");
  if (unsigned === true && service !== "s3") {
    scope.report.error(fields.keyAt("unsigned_payload"), "`unsigned_payload` is for `service: s3` alone");
  }
  if (accessKeyId === undefined || secretAccessKey === undefined) return {};
  if (region === undefined || service === undefined) return {};
  const keys = { accessKeyId, secretAccessKey, sessionToken };
  const signing = { id, ...keys, region, service, unsignedPayload: unsigned ?? false };
  return { injections: signedFields(signing) };
}

/** What a signature adds, each with a secret that it is made of. */
function signedFields(signing: SigningSource): readonly Injection[] {
  const fields: (readonly [string, string | undefined])[] = [
    ["Authorization", signing.secretAccessKey],
    ["X-Amz-Date", signing.accessKeyId],
    ["X-Amz-Content-Sha256", signing.secretAccessKey],
    ["X-Amz-Security-Token", signing.sessionToken],
  ];
  return fields.flatMap(([field, secret]) =>
    secret === undefined ? [] : [{ ...injection(field, secret), signing }],
  );
}

/** The field that carries a token which is yet to be had. */
function minted(reader: Reader): readonly Injection[] {
  const { scope, id } = reader;
  const key = `credentials.${id}`;
  scope.templates.set(key, [...before(reader), { kind: "minted", credential: id }]);
  return [injection(headerAt(reader) ?? "Authorization", key)];
}

function before(reader: Reader): readonly { readonly kind: "literal"; readonly text: string }[] {
  const prefix = prefixAt(reader);
  return prefix === "" ? [] : [{ kind: "literal", text: `${prefix} ` }];
}

function injection(field: string, secret: string): Injection {
  return { field, key: field.toLowerCase(), secret };
}
