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
