/** Sections of other versions: their form is checked, then they are refused at their key. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references of the config look like those of JavaScript
import { testProblems } from "./support.ts";

const HEAD = "version: 1\nnetwork: { allowlist: [ { domain: a.example } ] }\n";
const NOT = "is not in this version";

testProblems("refuseCredentials", `${HEAD}credentials:`, [
  ["none at all is fine", " []\n"],
  ["an empty section is fine", "\n"],
  [
    "a whole bearer token",
    ' [ { id: forge, type: bearer_token, token: "${file:/run/secrets/forge}", header_name: X-Key, prefix: "" } ]\n',
    `3:1 \`credentials\` ${NOT}; write the field in \`transform\``,
  ],
  [
    "a whole placeholder",
    ' [ { id: s, type: environment_variable, value: "${env:S}", trusted_domains: ["*.example.com"], injection_location: [header, query], header_names: [X-Key] } ]\n',
    `3:1 \`credentials\` ${NOT}; write the field in \`transform\``,
  ],
  [
    "a whole OAuth client",
    ' [ { id: o, type: oauth2, client_id: c, client_secret: "${env:S}", token_url: "https://auth.example.com/t", refresh_token: "${env:R}", scopes: [a] } ]\n',
    `3:1 \`credentials\` ${NOT}; write the field in \`transform\``,
  ],
  [
    "what is missing is said",
    " [ { type: oauth2 } ]\n",
    `3:1 \`credentials\` ${NOT}; write the field in \`transform\``,
    "3:16 `id` is missing here",
    "3:16 A credential of type `oauth2` needs a `client_id`",
    "3:16 A credential of type `oauth2` needs a `client_secret`",
    "3:16 A credential of type `oauth2` needs a `token_url`",
  ],
  [
    "what is wrong is said",
    ' [ { id: o, type: bearer, token: "${x}", trusted_domains: [a..b], injection_location: cookie, token_url: "ftp://a.example/" } ]\n',
    `3:1 \`credentials\` ${NOT}; write the field in \`transform\``,
    "3:31 `type` must be one of `bearer_token`, `oauth2`, `environment_variable`",
    "3:46 `token` has a `${…}` that is neither `${env:NAME}` nor `${file:PATH}`; a literal `$` is written `$$`",
    "3:72 This is not a hostname",
    "3:99 `injection_location` must be one of `header`, `query`, `body`",
    "3:118 `token_url` must be a URL that begins with `http://` or `https://`",
  ],
  [
    "no list",
    " { id: a }\n",
    `3:1 \`credentials\` ${NOT}; write the field in \`transform\``,
    "3:14 `credentials` must be a list, found a map",
  ],
  [
    "an entry that is no map",
    " [a]\n",
    `3:1 \`credentials\` ${NOT}; write the field in \`transform\``,
    "3:15 A credential must be a map of keys and values, found text",
  ],
]);

testProblems("refuseCredential", "version: 1\nnetwork:\n  allowlist:\n", [
  [
    "of an entry",
    "    - { domain: a.example, credential: forge }\n",
    `4:28 \`credential\` ${NOT}; write the field in \`transform\``,
  ],
  [
    "of a wildcard that strangers share",
    '    - { domain: "*.github.io", credential: forge }\n',
    `4:32 \`credential\` ${NOT}; write the field in \`transform\``,
    "4:32 `*.github.io` cannot inject: strangers can own names under `github.io`; name the hosts, or write `outsiders: accept`",
  ],
  [
    "under never",
    "    - { domain: a.example, intercept: never, credential: forge }\n",
    `4:46 \`credential\` ${NOT}; write the field in \`transform\``,
    "4:46 `credential` needs the inside of TLS, and `intercept: never` keeps it shut",
  ],
]);

const URL_FORM = "must be a URL that begins with `http://` or `https://`";
testProblems("refuseParentProxy", `${HEAD}upstream:\n  proxy:`, [
  ["an empty one is fine", "\n"],
  ["a URL", ' "http://corp-proxy:3128"\n', `4:3 \`proxy\` ${NOT}`],
  ["a URL of an address", ' "http://10.0.0.1:3128"\n', `4:3 \`proxy\` ${NOT}`],
  ["a URL of an IPv6 address", ' "http://[fd00::1]:3128"\n', `4:3 \`proxy\` ${NOT}`],
  [
    "a whole one",
    ' { url: "http://corp-proxy:3128", auth: "${file:auth}", no_proxy: [a.example], resolve: local }\n',
    `4:3 \`proxy\` ${NOT}`,
  ],
  ["no URL", " corp-proxy:3128\n", `4:3 \`proxy\` ${NOT}`, `4:10 \`proxy\` ${URL_FORM}`],
  ["a URL that is none", ' "http://"\n', `4:3 \`proxy\` ${NOT}`, `4:10 \`proxy\` ${URL_FORM}`],
  ["a URL of a bad name", ' "http://a_-:1"\n', `4:3 \`proxy\` ${NOT}`, `4:10 \`proxy\` ${URL_FORM}`],
  [
    "a URL with a password, unquoted",
    ' "http://u:hunter22@corp-proxy:3128"\n',
    `4:3 \`proxy\` ${NOT}`,
    "4:10 `proxy` must not hold a user or password; a secret has its own key",
  ],
  [
    "no URL in the map",
    " { resolve: remote }\n",
    `4:3 \`proxy\` ${NOT}`,
    "4:10 `url` is missing here",
    "4:21 `resolve` must be `local` or `parent`",
  ],
  ["a list", " [x]\n", `4:3 \`proxy\` ${NOT}`, "4:10 `proxy` must be text, found a list"],
]);
