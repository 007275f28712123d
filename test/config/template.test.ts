/** Values with references: what they become, and what is refused without being quoted. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references of the config look like those of JavaScript
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parseTemplate } from "../../src/config/template.ts";
import { testProblems } from "./support.ts";

const TAKEN: readonly (readonly [string, readonly object[]])[] = [
  ["plain", [{ kind: "literal", text: "plain" }]],
  ["${env:A}", [{ kind: "env", name: "A" }]],
  [
    "Bearer ${env:A_1}",
    [
      { kind: "literal", text: "Bearer " },
      { kind: "env", name: "A_1" },
    ],
  ],
  [
    "${env:A}${env:B}",
    [
      { kind: "env", name: "A" },
      { kind: "env", name: "B" },
    ],
  ],
  [
    "${file:/run/s}.x",
    [
      { kind: "file", path: "/run/s" },
      { kind: "literal", text: ".x" },
    ],
  ],
  ["${file:s/t}", [{ kind: "file", path: "/etc/sallyport/s/t" }]],
  ["${file:../t}", [{ kind: "file", path: "/etc/t" }]],
  ["${file:/a:b c}", [{ kind: "file", path: "/a:b c" }]],
  ["a$$b", [{ kind: "literal", text: "a$b" }]],
  ["$${env:A}", [{ kind: "literal", text: "${env:A}" }]],
  ["$$$${env:A}", [{ kind: "literal", text: "$${env:A}" }]],
  [
    "$$${env:A}",
    [
      { kind: "literal", text: "$" },
      { kind: "env", name: "A" },
    ],
  ],
  ["a$b $ c$", [{ kind: "literal", text: "a$b $ c$" }]],
  ["{a} }", [{ kind: "literal", text: "{a} }" }]],
  ["caf\u00e9", [{ kind: "literal", text: "caf\u00e9" }]],
];

for (const [text, template] of TAKEN) {
  test(`parseTemplate: ${text} is taken apart`, () => {
    assert.deepEqual(parseTemplate(text, "/etc/sallyport"), { ok: true, template });
  });
}

const NO_VAULT =
  "has a `${vault:MOUNT/PATH#FIELD}` whose parts are not of letters, digits, dots, hyphens and underscores";
const NEITHER =
  "has a `${…}` that is neither `${env:NAME}` nor `${file:PATH}`; a literal `$` is written `$$`";
const REFUSED: readonly (readonly [string, string])[] = [
  ["${env:A", "has a `${` without its `}`; a literal `$` is written `$$`"],
  ["a ${", "has a `${` without its `}`; a literal `$` is written `$$`"],
  ["${}", NEITHER],
  ["${A}", NEITHER],
  ["${vault:x}", NO_VAULT],
  ["${vault:a/b}", NO_VAULT],
  ["${vault:a/../b#c}", NO_VAULT],
  ["${vault:a/./b#c}", NO_VAULT],
  ["${vault:../b#c}", NO_VAULT],
  ["${vault:a//b#c}", NO_VAULT],
  ["${vault:a/b?version=1#c}", NO_VAULT],
  ["${vault:a/b%2fc#d}", NO_VAULT],
  ["${ENV:A}", NEITHER],
  ["${env:}", "has an `${env:NAME}` whose name is not one of letters, digits and underscores"],
  ["${env:A-B}", "has an `${env:NAME}` whose name is not one of letters, digits and underscores"],
  ["${env:1A}", "has an `${env:NAME}` whose name is not one of letters, digits and underscores"],
  ["${file:}", "has a `${file:PATH}` without a usable path"],
  ["${file:a\0b}", "has a `${file:PATH}` without a usable path"],
  ["", "is empty"],
  ["a\r\nX: b", "holds a line break, NUL or another control character"],
  ["a\0b", "holds a line break, NUL or another control character"],
  ["a\tb", "holds a line break, NUL or another control character"],
  ["a\x7fb", "holds a line break, NUL or another control character"],
  ["Bearer \u010a${env:A}", "holds a character that cannot stand in a header"],
  ["a\u20ac", "holds a character that cannot stand in a header"],
  [" a", "starts or ends with a blank or line break"],
  ["a ", "starts or ends with a blank or line break"],
  ["a\n", "starts or ends with a blank or line break"],
  [" ${env:A}", "starts or ends with a blank"],
  ["${env:A} ", "starts or ends with a blank"],
  ["a\n${env:A}", "holds a line break, NUL or another control character"],
  ["x".repeat(16_385), "is longer than 16 KiB"],
  [`${"x".repeat(16_384)}\${env:A}`, "is longer than 16 KiB"],
];

for (const [text, problem] of REFUSED) {
  test(`parseTemplate: ${JSON.stringify(text).slice(0, 30)} is refused`, () => {
    assert.deepEqual(parseTemplate(text, "/etc/sallyport"), { ok: false, problem });
  });
}

test("parseTemplate: any text is taken or refused, and a refusal holds none of it", () => {
  const piece = fc.constantFrom("$", "{", "}", "$$", "${env:A}", "${file:x}", "env:", ":", "zq7", " ");
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      const parsed = parseTemplate(pieces.join(""), "/f");
      if (!parsed.ok) assert.doesNotMatch(parsed.problem, /zq7/);
    }),
  );
});

const HEAD = "version: 1\nnetwork:\n  allowlist:\n    - domain: a.example.com\n      transform:\n";
testProblems("readTemplate", HEAD, [
  [
    "a secret written out gets a warning",
    "        Authorization: Bearer abcdefgh\n",
    "6:24 warning: The value of `Authorization` is a secret written out; use `${env:NAME}` or `${file:PATH}`",
  ],
  ["a plain value gets none", "        X-Client: abcdefgh\n"],
  [
    "a shell variable gets a warning",
    "        X-Client: $TOKEN\n",
    "6:19 warning: The value of `X-Client` has a `$NAME` in it, which stays as it is; write `${env:NAME}`",
  ],
  ["an escaped dollar gets none", "        X-Client: $$TOKEN\n"],
  [
    "a list is no value",
    "        X-Client: [a]\n",
    "6:19 The value of `X-Client` must be text, found a list",
  ],
  [
    "a number needs quotes",
    "        X-Client: 12\n",
    "6:19 The value of `X-Client` must be text, found a number; put it in quotes",
  ],
  [
    "a bad reference is an error at the value",
    '        X-Client: "${x}"\n',
    `6:19 The value of \`X-Client\` ${NEITHER}`,
  ],
]);
