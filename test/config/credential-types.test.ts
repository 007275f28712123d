/** Each kind of credential: what it becomes, and what is wrong with its fields. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references of the config look like those of JavaScript
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Config } from "../../src/model/config.ts";
import { configOf, testProblems } from "./support.ts";

const HEAD =
  "version: 1\nnetwork: { allowlist: [ { domain: a.example, credential: c } ] }\ncredentials:\n  - { id: c, type: ";

function one(fields: string): Config {
  return configOf(`${HEAD}${fields} }\n`);
}

function injectionsOf({ policy }: Config): readonly (readonly [string, string])[] {
  assert.ok(policy.network.kind === "allowlist");
  return policy.network.rules.flatMap(({ injections }) =>
    injections.map(({ field, secret }) => [field, secret] as const),
  );
}

test("bearer_token: field and prefix as they are said", () => {
  const config = one('bearer_token, token: "${env:T}", header_name: x-goog-api-key, prefix: ""');
  assert.deepEqual(injectionsOf(config), [["x-goog-api-key", "credentials.c.token"]]);
  assert.deepEqual(config.templates.get("credentials.c.token"), [{ kind: "env", name: "T" }]);
});

test("basic: user and password become one value", () => {
  const config = one('basic, username: ada, password: "${env:P}"');
  assert.deepEqual(injectionsOf(config), [["Authorization", "credentials.c"]]);
  assert.deepEqual(config.templates.get("credentials.c"), [
    { kind: "literal", text: "Basic " },
    { kind: "basic", user: "credentials.c.username", password: "credentials.c.password" },
  ]);
});

test("oauth2: the token endpoint is an endpoint of the gate's", () => {
  const config = one(
    'oauth2, client_id: i, client_secret: "${env:S}", refresh_token: "${env:R}", token_url: "https://auth.example.com/t?x=1", scopes: [a, b], client_auth: body',
  );
  const [token] = config.tokens;
  assert.deepEqual(token, {
    kind: "oauth2",
    id: "c",
    endpoint: {
      scheme: "https",
      destination: { kind: "name", host: "auth.example.com", port: 443 },
      target: "/t?x=1",
    },
    clientId: "credentials.c.client_id",
    clientSecret: "credentials.c.client_secret",
    refreshToken: "credentials.c.refresh_token",
    scopes: ["a", "b"],
    style: "body",
  });
  assert.deepEqual(config.policy.endpoints, [token?.endpoint.destination]);
  assert.deepEqual(config.templates.get("credentials.c")?.at(-1), { kind: "minted", credential: "c" });
});

test("oauth2: clear text to an address of loopback", () => {
  const config = one('oauth2, client_id: i, client_secret: "${env:S}", token_url: "http://127.0.0.1:81/"');
  assert.equal(config.policy.endpoints[0]?.kind, "address");
});

test("github_app: the API that gives the token out stays a destination", () => {
  const config = one(
    'github_app, app_id: 12, installation_id: "34", private_key: "${file:/k.pem}", permissions: { contents: read }, repositories: [r]',
  );
  const [token] = config.tokens;
  assert.ok(token?.kind === "github_app");
  assert.equal(token.endpoint.target, "/app/installations/34/access_tokens");
  assert.deepEqual([token.appId, token.permissions, token.repositories], ["12", { contents: "read" }, ["r"]]);
  assert.deepEqual(config.policy.endpoints, []);
  assert.deepEqual(config.templates.get("credentials.c.private_key"), [
    { kind: "file", path: "/k.pem", lines: true },
  ]);
  const own = one(
    'github_app, app_id: Iv1.a, installation_id: 3, private_key: "${env:K}", api_url: "https://git.example.com/api/v3/"',
  );
  assert.equal(own.tokens[0]?.endpoint.target, "/api/v3/app/installations/3/access_tokens");
});

test("gcp_service_account: scopes, or an audience", () => {
  const config = one('gcp_service_account, key: "${credential:gcp}", scopes: [s]');
  assert.equal(config.tokens[0]?.endpoint.target, "/token");
  const id = one(
    'gcp_service_account, key: "${env:K}", audience: a, token_url: "https://tokens.example.com/t"',
  );
  const [token] = id.tokens;
  assert.ok(token?.kind === "gcp_service_account");
  assert.equal(token.audience, "a");
});

test("environment_variable: its placeholder, and a variable that holds it", () => {
  const { policy, sandboxes } = configOf(
    'version: 1\nsandboxes: [ { id: s, source: [10.0.0.1], network: disabled, env: { T: { credential: c } } } ]\ncredentials: [ { id: c, type: environment_variable, value: "${env:V}", trusted_domains: ["*.example.com"], header_names: [X-Key, x-key] } ]\n',
  );
  assert.deepEqual(policy.placeholders, [
    {
      id: "c",
      placeholder: "__SALLYPORT_CRED_c__",
      secret: "credentials.c.value",
      domains: [{ kind: "wildcard", base: "example.com" }],
      locations: ["header"],
      headerNames: ["x-key"],
    },
  ]);
  assert.deepEqual(sandboxes[0]?.env, { T: "__SALLYPORT_CRED_c__" });
});

test("aws_sigv4: keys of secrets, region and service", () => {
  const { policy } = one(
    'aws_sigv4, access_key_id: "${env:A}", secret_access_key: "${env:B}", session_token: "${env:C}", region: eu-west-1, service: s3, unsigned_payload: true',
  );
  assert.ok(policy.network.kind === "allowlist");
  const [first, ...more] = policy.network.rules[0]?.injections ?? [];
  assert.deepEqual(
    more.map(({ field }) => field),
    ["X-Amz-Date", "X-Amz-Content-Sha256", "X-Amz-Security-Token"],
  );
  assert.deepEqual(first?.signing, {
    id: "c",
    accessKeyId: "credentials.c.access_key_id",
    secretAccessKey: "credentials.c.secret_access_key",
    sessionToken: "credentials.c.session_token",
    region: "eu-west-1",
    service: "s3",
    unsignedPayload: true,
  });
});

testProblems("checkSigned", "version: 1\n", [
  [
    "a field of the signature, and STS",
    'network: { allowlist: [ { domain: sts.amazonaws.com, credential: c, transform: { authorization: "x" } } ] }\ncredentials: [ { id: c, type: aws_sigv4, access_key_id: "${env:P}", secret_access_key: "${env:Q}", region: r, service: s3 } ]\n',
    "2:35 STS gives out other credentials, and a sandbox gets none",
    "2:69 `authorization` is part of the signature",
    "2:97 warning: The value of `authorization` is a secret written out; use `${env:NAME}` or `${file:PATH}`",
    "2:97 warning: The value of `authorization` is under 8 bytes, too short to be masked in answers and logs",
  ],
]);

testProblems("READERS", HEAD, [
  [
    "bearer_token: a field that cannot be set, a prefix that is none",
    'bearer_token, token: "${env:T}", header_name: Host, prefix: "${env:P}" }\n',
    "4:66 `Host` cannot carry a secret: it is where the request goes, which was decided",
    "4:80 `prefix` must be words of plain ASCII without `$`; one blank follows it",
  ],
  [
    "bearer_token: what is no text",
    "bearer_token, token: [], header_name: [], prefix: [] }\n",
    "4:41 `token` must be text, found a list",
  ],
  [
    "bearer_token: fields of the wrong form",
    'bearer_token, token: "${env:T}", header_name: [], prefix: [] }\n',
    "4:66 `header_name` must be text, found a list",
    "4:78 `prefix` must be text, found a list",
  ],
  [
    "basic: a colon in the user's name, a password written out",
    "basic, username: a:b, password: hunter2222 }\n",
    "4:27 `username` must not hold a colon (RFC 7617)",
    "4:52 warning: `password` is a secret written out; use `${env:NAME}` or `${file:PATH}`",
  ],
  [
    "basic: no text",
    "basic, username: [], password: [] }\n",
    "4:37 `username` must be text, found a list",
    "4:51 `password` must be text, found a list",
  ],
  [
    "oauth2: clear text, and nothing to ask with",
    'oauth2, client_id: i, token_url: "http://auth.example.com/", client_auth: x }\n',
    "4:5 A credential of type `oauth2` needs a `refresh_token`, or a `client_secret` to ask with",
    "4:53 `token_url` must begin with `https://`: a secret is sent there",
    "4:94 `client_auth` must be `basic` or `body`",
  ],
  [
    "oauth2: URLs that are none, quoted nowhere",
    'oauth2, client_id: i, client_secret: "${env:S}", token_url: "https://u:hunter22@auth.example.com/" }\n',
    "4:80 `token_url` must begin with `https://` and a host, without user, password or fragment",
  ],
  [
    "oauth2: a URL that is no text",
    'oauth2, client_id: i, client_secret: "${env:S}", token_url: [] }\n',
    "4:80 `token_url` must be text, found a list",
  ],
  [
    "github_app: ids, permissions and a key that are none",
    "github_app, app_id: a b, installation_id: [], private_key: [], permissions: [] }\n",
    "4:40 `app_id` must be a number or a client id",
    "4:62 `installation_id` must be a number or a client id",
    "4:79 `private_key` must be text, found a list",
    "4:96 `permissions` must be a map of permissions and levels",
  ],
  [
    "github_app: a level that is none",
    'github_app, app_id: 1, installation_id: 2, private_key: "${env:K}", permissions: { contents: all } }\n',
    "4:113 `contents` must be one of `read`, `write`, `admin`",
  ],
  [
    "gcp_service_account: neither scopes nor audience",
    "gcp_service_account, key: [] }\n",
    "4:5 A credential of type `gcp_service_account` needs either `scopes` or an `audience`",
    "4:46 `key` must be text, found a list",
  ],
  [
    "environment_variable: strangers, nowhere, fields that are none",
    'environment_variable, value: [], trusted_domains: ["*", a..b], injection_location: [], header_names: [Host] }\n',
    "4:49 `value` must be text, found a list",
    "4:53 Strangers can own names under a trusted domain",
    "4:76 This is not a hostname",
    "4:103 `injection_location` must name at least one place",
    "4:122 `Host` cannot carry a secret: it is where the request goes, which was decided",
  ],
  [
    "environment_variable: no domain, open places, no field",
    'environment_variable, value: "${env:V}", trusted_domains: [], injection_location: [query, cookie], header_names: [] }\n',
    "2:58 A placeholder is replaced for its `trusted_domains`; an entry needs no `credential` for it",
    "4:78 `trusted_domains` is empty, so nothing would ever be replaced",
    "4:102 warning: With `query` the sandbox may publish the secret: what a host stores or shows again, others can read",
    "4:110 `injection_location` must be one of `header`, `query`, `body`",
    "4:133 `header_names` must name at least one field, or be left out",
  ],
  [
    "aws_sigv4: STS, and a region that is none",
    'aws_sigv4, access_key_id: "${env:A}", secret_access_key: "${env:B}", region: "a/b", service: sts, unsigned_payload: true }\n',
    "4:89 `region` must be lower-case letters, digits and hyphens",
    "4:104 STS gives out other credentials, and a sandbox gets none",
    "4:118 `unsigned_payload` is for `service: s3` alone",
  ],
  [
    "aws_sigv4: no text",
    "aws_sigv4, access_key_id: [], secret_access_key: [], region: [], service: s3 }\n",
    "4:46 `access_key_id` must be text, found a list",
    "4:69 `secret_access_key` must be text, found a list",
    "4:81 `region` must be text, found a list",
  ],
]);
