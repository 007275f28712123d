/** The forms that a secret takes in texts: as it stands, in JSON, in scripts, in URLs, in HTML, in UTF-16, and inside base64. Pure. */

/** Every form once, as bytes. None is shorter than the secret. */
export function secretForms(secret: string): readonly Buffer[] {
  const texts = new Set([secret, ...escapes(secret)]);
  const forms = new Map<string, Buffer>();
  for (const encoding of ["latin1", "utf8"] as const) {
    const plain = Buffer.from(secret, encoding);
    const others = [...base64Forms(plain), plain.toString("hex"), plain.toString("hex").toUpperCase()];
    for (const text of [...texts, ...percentForms(plain), ...others]) {
      const form = Buffer.from(text, encoding);
      forms.set(form.toString("latin1"), form);
    }
  }
  for (const text of [secret, JSON.stringify(secret).slice(1, -1)]) {
    const wide = Buffer.from(text, "utf16le");
    for (const form of [wide, Buffer.from(wide).swap16()]) forms.set(form.toString("latin1"), form);
  }
  return [...forms.values()];
}

/** As JSON, scripts, HTML and mail write it, with as much escaped as writers are known to escape. */
function escapes(secret: string): readonly string[] {
  const json = JSON.stringify(secret).slice(1, -1);
  return [
    json,
    json.replaceAll("/", "\\/"),
    ...JSON_SETS.flatMap((set) => coded(json, set, (code) => `\\u${code.padStart(4, "0")}`)),
    ...SCRIPT_SETS.flatMap((set) => [
      ...coded(secret, set, (code) => `\\u${code.padStart(4, "0")}`),
      ...coded(secret, set, (code) => `\\x${code.padStart(2, "0")}`),
    ]),
    JSON.stringify(json).slice(1, -1),
    ...HTML_SETS.flatMap((set) => html(secret, set)),
    ...[NOT_ALPHANUMERIC, EVERY].flatMap((set) => [
      ...coded(secret, set, (code) => `&#x${code};`),
      secret.replaceAll(set, (char) => `&#${char.charCodeAt(0)};`),
    ]),
    secret.replaceAll("=", "=3D"),
    // A name that HTTP/2 writes, and what shouts.
    secret.toLowerCase(),
    secret.toUpperCase(),
  ];
}

const NOT_ALPHANUMERIC = /[^A-Za-z0-9]/g;
const EVERY = /[\s\S]/g;
const JSON_SETS = [/[<>&'+=]/g, /[<>&]/g, /[^\x20-\x7e]/g];
/** Django's, Closure's and Google's, ESAPI's; and whoever writes nothing as it is. */
const SCRIPT_SETS = [/[\\'"<>&=;`-]/g, /[\\'"<>&=]/g, /[^A-Za-z0-9,._]/g, NOT_ALPHANUMERIC, EVERY];
/** Nearly everybody's; Go's and ASP.NET's, Go's outside quotes; Handlebars', Mustache's, underscore's. */
const HTML_SETS = [/[<>&'"]/g, /[<>&'"+]/g, /[<>&'"+=`]/g, /[<>&'"=`]/g, /[<>&'"/=`]/g, /[<>&'"/]/g];
const NAMES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

/** Names where there are any, and for the rest one kind of number; quotes have a name here and a number there. */
function html(secret: string, set: RegExp): readonly string[] {
  const written = (names: Readonly<Record<string, string>>, number: (code: number) => string): string =>
    secret.replaceAll(set, (char) => names[char] ?? number(char.charCodeAt(0)));
  return [NAMES, { ...NAMES, '"': "&#34;" }, {}].flatMap((quoted) => [
    written(quoted, (code) => `&#${code};`),
    written(quoted, (code) => `&#0${code};`),
    written(quoted, (code) => `&#x${hexOf(code, 2, false)};`),
    written(quoted, (code) => `&#x${hexOf(code, 2, true)};`),
    ...["&#39;", "&#039;", "&apos;"].map((apostrophe) =>
      written({ ...quoted, "'": apostrophe }, (code) => `&#x${hexOf(code, 2, true)};`),
    ),
  ]);
}

/** What is in the set as its code in hex, in digits of either case. */
function coded(text: string, set: RegExp, write: (code: string) => string): readonly string[] {
  return [false, true].map((upper) =>
    text.replaceAll(set, (char) => write(hexOf(char.charCodeAt(0), 1, upper))),
  );
}

/** Which bytes a URL keeps differs from one writer to the next, and so does the case of the digits. */
function percentForms(bytes: Buffer): readonly string[] {
  const kept = [/[A-Za-z0-9_.~-]/, /[A-Za-z0-9_.!~*'()-]/, /[A-Za-z0-9_.~/-]/, /[A-Za-z0-9_.*-]/];
  const uri = /[A-Za-z0-9_.!~*'();/?:@&=+$,#-]/;
  return [...kept, uri, /[^\s\S]/].flatMap((keeps) =>
    [true, false].flatMap((upper) => {
      const text = percent(bytes, keeps, upper);
      return text.includes("%20") ? [text, text.replaceAll("%20", "+")] : [text];
    }),
  );
}

function percent(bytes: Buffer, keeps: RegExp, upper: boolean): string {
  let text = "";
  for (const byte of bytes) {
    const char = String.fromCharCode(byte);
    text += keeps.test(char) ? char : `%${hexOf(byte, 2, upper)}`;
  }
  return text;
}

function hexOf(code: number, digits: number, upper: boolean): string {
  const text = code.toString(16).padStart(digits, "0");
  return upper ? text.toUpperCase() : text;
}

/**
 * The characters that stand for the bytes alone in base64 of something that has any number of bytes in front of them,
 * as in `user:secret` of Basic authentication; in both alphabets.
 */
function base64Forms(bytes: Buffer): readonly string[] {
  return [0, 1, 2].flatMap((before) => {
    const shifted = Buffer.concat([Buffer.alloc(before), bytes]);
    const skipped = Math.ceil((before * 8) / 6);
    const text = shifted.toString("base64").slice(skipped, Math.floor((shifted.length * 8) / 6));
    return [text, text.replaceAll("+", "-").replaceAll("/", "_")];
  });
}
