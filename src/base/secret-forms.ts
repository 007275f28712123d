/** The forms that a secret takes in texts: as it stands, in JSON, in URLs, in HTML, and inside base64. Pure. */

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
  return [...forms.values()];
}

/** As JSON and HTML write it, with as much escaped as writers are known to escape. */
function escapes(secret: string): readonly string[] {
  const json = JSON.stringify(secret).slice(1, -1);
  const codes = (pattern: RegExp, upper: boolean): string =>
    json.replaceAll(pattern, (char) => `\\u${hexOf(char.charCodeAt(0), 4, upper)}`);
  return [
    json,
    json.replaceAll("/", "\\/"),
    ...[/[<>&'+=]/g, /[<>&]/g, /[^\x20-\x7e]/g].flatMap((pattern) => [
      codes(pattern, false),
      codes(pattern, true),
    ]),
    JSON.stringify(json).slice(1, -1),
    html(secret, "&#39;", "&quot;"),
    html(secret, "&#x27;", "&quot;"),
    html(secret, "&#039;", "&#34;"),
  ];
}

function html(secret: string, apostrophe: string, quote: string): string {
  const names: Readonly<Record<string, string>> = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    "'": apostrophe,
    '"': quote,
  };
  return secret.replaceAll(/[&<>'"]/g, (char) => names[char] ?? char);
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
