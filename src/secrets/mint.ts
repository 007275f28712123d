/** What each kind of token is asked for with, and what comes of it. */
import type {
  GcpSource,
  GithubAppSource,
  OAuth2Source,
  ServiceEndpoint,
  TokenSource,
} from "../model/credential.ts";
import type { Fetched } from "./refresher.ts";
import { checkedToken, fieldsOf, readGrant, type TokenAnswer } from "./token-answer.ts";

/** One POST to an endpoint of the config. */
export interface TokenOrder {
  readonly endpoint: ServiceEndpoint;
  readonly fields: readonly (readonly [name: string, value: string])[];
  readonly body: string;
}

export interface Minting {
  /** Over the guarded way of everything that leaves. Rejects with a Failure. */
  post(order: TokenOrder): Promise<TokenAnswer>;
  /** The value of a template; throws where it cannot be had. */
  secret(key: string): string;
  /** The refresh token that holds now, and what came in its place. */
  refreshToken(source: OAuth2Source): string;
  rotated(source: OAuth2Source, token: string): void;
  /** Seconds since the epoch. */
  epoch(): number;
}

const FORM = ["Content-Type", "application/x-www-form-urlencoded"] as const;
const JWT_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/** GitHub refuses more than ten minutes, and clocks differ. */
const APP_LIFE_S = 540;
const SKEW_S = 60;
const ASSERTION_LIFE_S = 3_600;
const INSTALLATION_LIFETIME = 3_600_000;

export function mint(source: TokenSource, minting: Minting): Promise<Fetched> {
  switch (source.kind) {
    case "oauth2":
      return mintOAuth2(source, minting);
    case "github_app":
      return mintInstallation(source, minting);
    case "gcp_service_account":
      return mintGcp(source, minting);
  }
}

/** RFC 6749 sections 4.4 and 6. */
async function mintOAuth2(source: OAuth2Source, minting: Minting): Promise<Fetched> {
  const { endpoint, scopes, style } = source;
  const client = minting.secret(source.clientId);
  const secret = source.clientSecret === undefined ? undefined : minting.secret(source.clientSecret);
  const form = new URLSearchParams();
  if (source.refreshToken === undefined) form.set("grant_type", "client_credentials");
  else {
    form.set("grant_type", "refresh_token");
    form.set("refresh_token", minting.refreshToken(source));
  }
  if (scopes.length > 0) form.set("scope", scopes.join(" "));
  const basic = style === "basic" && secret !== undefined;
  if (!basic) {
    form.set("client_id", client);
    if (secret !== undefined) form.set("client_secret", secret);
  }
  const fields = basic ? [FORM, ["Authorization", basicOf(client, secret)] as const] : [FORM];
  const granted = readGrant(await minting.post({ endpoint, fields, body: form.toString() }), "access_token");
  if (granted.refreshToken !== undefined) minting.rotated(source, granted.refreshToken);
  return { value: granted.token, lifetime: granted.lifetime };
}

/** RFC 6749 section 2.3.1: both halves are form-encoded first. */
function basicOf(client: string, secret: string): string {
  const encoded = [client, secret]
    .map((text) => new URLSearchParams({ a: text }).toString().slice(2))
    .join(":");
  return `Basic ${Buffer.from(encoded, "latin1").toString("base64")}`;
}

async function mintInstallation(source: GithubAppSource, minting: Minting): Promise<Fetched> {
  const { signJwt } = await import("./jwt.ts");
  const iat = minting.epoch() - SKEW_S;
  const claims = { iss: source.appId, iat, exp: iat + SKEW_S + APP_LIFE_S };
  const jwt = await signJwt(claims, minting.secret(source.privateKey), undefined);
  const { permissions, repositories } = source;
  const { status, text } = await minting.post({
    endpoint: source.endpoint,
    fields: [
      ["Content-Type", "application/json"],
      ["Authorization", `Bearer ${jwt}`],
      ["X-GitHub-Api-Version", "2022-11-28"],
    ],
    body: JSON.stringify({ permissions, repositories }),
  });
  if (status !== 201) throw new Error(`GitHub answered with ${status}`);
  const { token, expires_at } = fieldsOf(text);
  const ends = typeof expires_at === "string" ? Date.parse(expires_at) : Number.NaN;
  const lifetime = Number.isNaN(ends) ? INSTALLATION_LIFETIME : ends - minting.epoch() * 1_000;
  if (lifetime <= 0) throw new Error("The token that came has expired already");
  return { value: checkedToken(token), lifetime };
}

/** RFC 7523 section 2.1, with Google's claims. */
async function mintGcp(source: GcpSource, minting: Minting): Promise<Fetched> {
  const { signJwt } = await import("./jwt.ts");
  const { endpoint, scopes, audience } = source;
  const { client_email, private_key, private_key_id, token_uri } = fieldsOf(minting.secret(source.key));
  const url = urlOf(endpoint);
  if (typeof client_email !== "string" || typeof private_key !== "string") {
    throw new Error("The key is not the JSON key file of a service account");
  }
  if (token_uri !== undefined && token_uri !== url) throw new Error("The key is for another `token_url`");
  const iat = minting.epoch();
  const asked = audience === undefined ? { scope: scopes.join(" ") } : { target_audience: audience };
  const claims = { iss: client_email, aud: url, iat, exp: iat + ASSERTION_LIFE_S, ...asked };
  const kid = typeof private_key_id === "string" ? private_key_id : undefined;
  const assertion = await signJwt(claims, private_key, kid);
  const body = new URLSearchParams({ grant_type: JWT_GRANT, assertion }).toString();
  const answer = await minting.post({ endpoint, fields: [FORM], body });
  const { token, lifetime } = readGrant(answer, audience === undefined ? "access_token" : "id_token");
  // An ID token comes without a word of when it ends: it is good for an hour.
  return { value: token, lifetime };
}

function urlOf({ scheme, destination, target }: ServiceEndpoint): string {
  const host = destination.kind === "name" ? destination.host : destination.address.text;
  const name = host.includes(":") ? `[${host}]` : host;
  const usual = destination.port === (scheme === "https" ? 443 : 80);
  return `${scheme}://${name}${usual ? "" : `:${destination.port}`}${target}`;
}
