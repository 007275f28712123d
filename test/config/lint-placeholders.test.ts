/** Warnings of placeholders that are never replaced, and none where they are. */
import { testProblems } from "./support.ts";

const HEAD = `version: 1
credentials:
  - { id: one, type: environment_variable, value: "\${env:ONE}", trusted_domains: [api.example.com, "*.example.org", 11.0.0.1] }
network:
  allowlist:
`;

function never(at: string): string {
  return `${at} warning: \`intercept: never\` keeps TLS shut, so the placeholder of the credential \`one\` is not replaced here`;
}

function tcp(at: string): string {
  return `${at} warning: \`protocol: tcp\` passes unseen, so the placeholder of the credential \`one\` is not replaced here`;
}

testProblems("lintPlaceholders", HEAD, [
  ["an entry that is looked into", "    - { domain: api.example.com }\n"],
  ["a trusted name that stays shut", "    - { domain: api.example.com, intercept: never }\n", never("6:9")],
  [
    "the same by default of the network",
    "    - { domain: api.example.com }\n  intercept: never\n",
    never("6:9"),
  ],
  ["a name below a trusted wildcard", "    - { domain: a.example.org, intercept: never }\n", never("6:9")],
  ["a trusted wildcard", '    - { domain: "*.a.example.org", intercept: never }\n', never("6:9")],
  ["a wider pattern that decides", '    - { domain: "*.example.com", intercept: never }\n', never("6:9")],
  ["every name, which decides", '    - { domain: "*", intercept: never }\n', never("6:9")],
  ["an address", "    - { domain: 11.0.0.1, intercept: never }\n", never("6:9")],
  ["another address", "    - { domain: 11.0.0.2, intercept: never }\n"],
  ["a name that is not trusted", "    - { domain: a.example.com, intercept: never }\n"],
  [
    "a wider pattern beside entries that decide",
    '    - { domain: "*.example.com", intercept: never }\n    - { domain: api.example.com }\n    - { domain: "*.example.org" }\n',
  ],
  ["raw bytes", "    - { domain: api.example.com, ports: [443], protocol: tcp }\n", tcp("6:9")],
  [
    "raw bytes beside requests of the same name",
    "    - { domain: api.example.com }\n    - { domain: api.example.com, ports: [5432], protocol: tcp }\n",
  ],
]);
