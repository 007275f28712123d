/** Generators of HTTP/1 messages, good and nearly good, for the fuzz tests of the codec. */
import fc from "fast-check";

const METHODS = ["GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD", "PATCH"];
const TARGETS = [
  "/",
  "/a?b=c",
  "//evil.example/x",
  "/%2e%2e/a\\b;c",
  "/a#b",
  '/"<>^`{|}',
  "http://a.example/x",
];
const FIELDS = [
  "Accept: */*",
  "X-Empty:",
  "X-Blank: \t a b \t",
  "x-latin: caf\xe9\xa0",
  "__proto__: a",
  "Cookie: a=b; c=d",
  "Cookie: e=f",
  "Connection: close",
  "Connection: keep-alive, x-empty",
  "Keep-Alive: timeout=5",
  "TE: trailers",
  "Authorization: Bearer a",
  "X-Forwarded-Host: evil.example",
  `X-Long: ${"l".repeat(300)}`,
];
const EXTENSIONS = ["", ";a", ";a=b;c", ';q="x;\\"y"'];
const TRAILERS = ["X-Sum: a\r\n", "grpc-status: 0\r\n", "Content-Length: 5\r\n", "Host: b\r\n"];
/** What smugglers put where it does not belong. */
const STRAY = [
  "\r",
  "\n",
  "\r\n",
  "\0",
  "\t",
  " ",
  ":",
  ",",
  "\x0b",
  "\x7f",
  "\x80",
  "\xff",
  "0",
  "5",
  "chunked",
  "HTTP/1.1",
];
const STRAY_LINES = [
  "Content-Length: 5\r\n",
  "Content-Length: 0\r\n",
  "Content-Length: 1, 1\r\n",
  "Content-Length: +5\r\n",
  "Transfer-Encoding: chunked\r\n",
  "Transfer-Encoding: identity\r\n",
  "Transfer-Encoding : chunked\r\n",
  "Transfer-Encoding: xchunked\r\n",
  " folded: yes\r\n",
  "Host: b.example\r\n",
  "Connection: content-length\r\n",
  "Expect: 100-continue\r\n",
];

const fields = fc.array(fc.constantFrom(...FIELDS), { maxLength: 6 });
const data = fc.string({
  unit: fc.constantFrom("a", "\r", "\n", "0", "\xff", "\0", "GET / HTTP/1.1\r\n"),
  maxLength: 40,
});

const chunk = fc.tuple(data, fc.constantFrom(...EXTENSIONS), fc.boolean()).map(([text, extension, upper]) => {
  const size = text.length.toString(16);
  return text === "" ? "" : `${upper ? size.toUpperCase() : size}${extension}\r\n${text}\r\n`;
});

const chunkedBody = fc
  .tuple(fc.array(chunk, { maxLength: 4 }), fc.subarray(TRAILERS))
  .map(([chunks, trailers]) => `${chunks.join("")}0\r\n${trailers.join("")}\r\n`);

/** The framing line and the body that it announces. */
const framed = fc.oneof(
  fc.constant(["", ""] as const),
  data.map((text) => [`Content-Length: ${text.length}`, text] as const),
  chunkedBody.map((text) => ["transfer-encoding: Chunked", text] as const),
);

/** One valid request, head and body, in latin1. */
export const validRequest: fc.Arbitrary<string> = fc
  .tuple(fc.constantFrom(...METHODS), fc.constantFrom(...TARGETS), fields, framed)
  .map(([method, target, lines, [framing, body]]) => {
    const all = [`${method} ${target} HTTP/1.1`, "Host: a.example", ...lines, framing].filter(
      (line) => line !== "",
    );
    return `${all.join("\r\n")}\r\n\r\n${body}`;
  });

/** One valid final response to GET, head and body; its end may be the connection's. */
export const validResponse: fc.Arbitrary<string> = fc
  .tuple(fc.constantFrom("200 OK", "404 Not Found", "500 ", "201 \xc9t\xe9", "299 a:b"), fields, framed)
  .map(([status, lines, [framing, body]]) => {
    const all = [`HTTP/1.1 ${status}`, ...lines, framing].filter((line) => line !== "");
    return `${all.join("\r\n")}\r\n\r\n${body}`;
  });

/** A message with some bytes added, dropped or doubled, or a line slipped in. */
export function damaged(message: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const place = fc.double({ min: 0, max: 1, noNaN: true });
  const edit = fc.oneof(
    fc.tuple(fc.constant("insert" as const), place, fc.constantFrom(...STRAY)),
    fc.tuple(fc.constant("drop" as const), place, fc.constant("")),
    fc.tuple(fc.constant("line" as const), place, fc.constantFrom(...STRAY_LINES)),
  );
  return fc
    .tuple(message, fc.array(edit, { minLength: 1, maxLength: 2 }))
    .map(([text, edits]) => edits.reduce(apply, text));
}

/** Lengths of the pieces in which bytes arrive. */
export const pieceSizes: fc.Arbitrary<number[]> = fc.array(fc.integer({ min: 1, max: 40 }), {
  minLength: 1,
  maxLength: 30,
});

/** `bytes` in pieces of these sizes, used over and over. */
export function cut(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const pieces: Buffer[] = [];
  for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
    const size = sizes[turn % sizes.length] ?? 1;
    pieces.push(bytes.subarray(at, at + size));
    at += size;
  }
  return pieces;
}

function apply(
  text: string,
  [kind, place, what]: readonly ["insert" | "drop" | "line", number, string],
): string {
  const at = Math.floor(place * text.length);
  switch (kind) {
    case "insert":
      return text.slice(0, at) + what + text.slice(at);
    case "drop":
      return text.slice(0, at) + text.slice(at + 1);
    case "line": {
      const start = text.indexOf("\r\n", at) + 2;
      return text.slice(0, start) + what + text.slice(start);
    }
  }
}
