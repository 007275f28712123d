/** Sections of other versions: their form is checked, then they are refused at their key. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references of the config look like those of JavaScript
import { testProblems } from "./support.ts";

const HEAD = "version: 1\nnetwork: { allowlist: [ { domain: a.example } ] }\n";
const NOT = "is not in this version";

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
