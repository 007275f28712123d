/** What git carries to others holds no key and nothing of the machine that it was written on. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { read, trackedFiles } from "./repository.ts";

interface Ban {
  readonly what: string;
  readonly pattern: RegExp;
}

/** Spelled in pieces, so that this file passes its own test. */
const BANS: readonly Ban[] = [
  {
    what: "a private key",
    pattern: new RegExp(`-{5}BEGIN [A-Z ]*PRIVATE ${"KEY"}-{5}\\s+[A-Za-z0-9+/=]{16}`),
  },
  {
    what: "a token of a well-known kind",
    pattern: /\b(ghp_|github_pat_|sk-ant-|xox[abp]-|AKIA)[A-Za-z0-9_-]{16,}/,
  },
  {
    what: "a path of one machine",
    pattern: new RegExp(`(?<![\\w./-])/(${["work", "root", "home"].join("|")})/[\\w.-]+`),
  },
  {
    what: "a registry's host",
    pattern: new RegExp(
      ["registry[.]npm", "npmjs[.]org", "deb[.]debian", "j[f]rog", "artifac[t]ory"].join("|"),
      "i",
    ),
  },
  { what: "a resolved address in the lock file", pattern: new RegExp(`"resol${"ved"}":`) },
];

test("tracked files: none holds a private key, a token, a machine's path or a registry's host", () => {
  const found = trackedFiles().flatMap((file) =>
    BANS.filter(({ pattern }) => pattern.test(read(file))).map(({ what }) => `${file}: ${what}`),
  );
  assert.deepEqual(found, []);
});

test("tracked files: nothing of certs/ but its page and its ignore list", () => {
  const certs = trackedFiles().filter((file) => file.startsWith("certs/"));
  assert.deepEqual(certs.sort(), ["certs/.gitignore", "certs/README.md"]);
});

test("tracked files: the bans catch what they name", () => {
  const dashes = "-".repeat(5);
  const samples = [
    `${dashes}BEGIN EC PRIVATE KEY${dashes}\nMHcCAQEEIIGmV5PUbEsp9r7Uuv\n`,
    `ghp_${"a1".repeat(18)}`,
    `cd ${"/ro"}ot/project`,
    `https://registry.${"npmjs"}.org/re2`,
    `"resol${"ved"}": "x"`,
  ];
  for (const [index, sample] of samples.entries())
    assert.ok(BANS[index]?.pattern.test(sample), BANS[index]?.what);
});
