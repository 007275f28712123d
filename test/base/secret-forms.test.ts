import assert from "node:assert/strict";
import { test } from "node:test";
import { secretForms } from "../../src/base/secret-forms.ts";

const SECRET = `k+/="<&>' ünd\\%~`;
const FORMS = secretForms(SECRET).map((form) => form.toString("latin1"));

/** One form of the secret is in the text. */
function assertFound(text: string, why: string): void {
  assert.ok(
    FORMS.some((form) => text.includes(form)),
    why,
  );
}

test("secretForms has the secret as it stands, in both encodings of text", () => {
  assertFound(`a${SECRET}b`, "latin1");
  assertFound(Buffer.from(`a${SECRET}b`, "utf8").toString("latin1"), "UTF-8");
});

test("secretForms has what writers of URLs, forms and JSON make of it", () => {
  const params = new URLSearchParams({ a: SECRET }).toString();
  for (const text of [encodeURIComponent(SECRET), encodeURI(SECRET), params]) {
    assertFound(text, text);
    assertFound(
      text.replaceAll(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()),
      `lower case: ${text}`,
    );
  }
  const json = JSON.stringify({ a: SECRET });
  assertFound(json, json);
  assertFound(json.replaceAll("/", "\\/"), "slashes escaped");
  assertFound(JSON.stringify(json), "JSON inside JSON");
  assertFound(
    json.replaceAll(/[<>&]/g, (char) => `\\u00${char.charCodeAt(0).toString(16)}`),
    "as Go writes it",
  );
});

test("secretForms has what HTML makes of it", () => {
  assertFound("k+/=&quot;&lt;&amp;&gt;&#39; ünd\\%~", "HTML");
  assertFound("k+/=&#34;&lt;&amp;&gt;&#039; ünd\\%~", "HTML with numbers");
});

test("secretForms has base64 at every alignment and of both alphabets, and hex", () => {
  for (const before of ["", "u", "us", "use"]) {
    const bytes = Buffer.from(`${before}${SECRET}!!`, "latin1");
    assertFound(bytes.toString("base64"), `base64 after ${before.length}`);
    assertFound(bytes.toString("base64url"), `base64url after ${before.length}`);
    assertFound(bytes.toString("hex"), "hex");
    assertFound(bytes.toString("hex").toUpperCase(), "HEX");
  }
});

test("secretForms has what templates make of a token of base64", () => {
  const token = "tok+A/b=01234-5_6`&<x>'\"Zz";
  const forms = secretForms(token).map((form) => form.toString("latin1"));
  const written = (names: Readonly<Record<string, string>>): string =>
    token.replaceAll(/[^A-Za-z0-9]/g, (char) => names[char] ?? char);
  const named = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
  for (const [why, names] of [
    ["Go", { ...named, '"': "&#34;", "'": "&#39;", "+": "&#43;" }],
    ["ASP.NET", { ...named, "'": "&#x27;", "+": "&#x2B;" }],
    ["Handlebars", { ...named, "'": "&#x27;", "`": "&#x60;", "=": "&#x3D;" }],
    ["Mustache", { ...named, "'": "&#39;", "/": "&#x2F;", "`": "&#x60;", "=": "&#x3D;" }],
    ["XML", { ...named, "'": "&apos;" }],
  ] as const) {
    assert.ok(forms.includes(written(names)), why);
  }
  const hex = (char: string): string => char.charCodeAt(0).toString(16);
  const punctuation = /[^A-Za-z0-9]/g;
  for (const text of [
    token.replaceAll(punctuation, (char) => `&#x${hex(char)};`),
    token.replaceAll(/[<>&'"+]/g, (char) => `&#${char.charCodeAt(0)};`),
    token.replaceAll(punctuation, (char) => `\\x${hex(char)}`),
    token.replaceAll(/[\s\S]/g, (char) => `&#${char.charCodeAt(0)};`),
    token.replaceAll(/[\s\S]/g, (char) => `\\u00${hex(char)}`),
    token.replaceAll(/[\\'"<>&=;`-]/g, (char) => `\\u00${hex(char).toUpperCase()}`),
    token.replaceAll("=", "=3D"),
    token.toLowerCase(),
    token.toUpperCase(),
  ]) {
    assert.ok(forms.includes(text), text);
  }
});

test("secretForms has UTF-16 of either order", () => {
  const wide = Buffer.from(JSON.stringify({ a: SECRET }), "utf16le");
  assertFound(wide.toString("latin1"), "little-endian");
  assertFound(wide.swap16().toString("latin1"), "big-endian");
});
