import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Framing } from "../../src/model/exchange.ts";
import { Failure } from "../../src/model/failure.ts";
import { DEFAULT_LIMITS } from "../../src/model/limits.ts";
import { parseAuthority } from "../../src/wire/authority.ts";
import { BodyReader } from "../../src/wire/body-reader.ts";
import { findHeadEnd } from "../../src/wire/find-head.ts";
import { BodyWriter, renderRequestHead, renderResponseHead } from "../../src/wire/message-writer.ts";
import { parseRequestHead } from "../../src/wire/request-head.ts";
import { parseAbsoluteForm, parseAuthorityForm } from "../../src/wire/request-target.ts";
import { parseResponseHead } from "../../src/wire/response-head.ts";
import { cut, damaged, pieceSizes, validRequest, validResponse } from "./wire-messages.ts";
import { type Message, receive } from "./wire-receiver.ts";

const CHUNKED: Framing = { kind: "chunked" };

/** What comes of it: messages, or the failure's code and status. */
function outcome(side: "client" | "upstream", pieces: readonly Buffer[]): unknown {
  try {
    return receive(side, pieces);
  } catch (error) {
    if (error instanceof Failure) {
      return { code: error.code, status: error.status };
    }
    assert.equal(String(error), "Error: Head cut short");
    return "cut short";
  }
}

function bytesOf(text: string): Buffer {
  return Buffer.from(text, "latin1");
}

function onlyFailures(act: () => unknown): void {
  try {
    act();
  } catch (error) {
    assert.ok(error instanceof Failure, String(error));
    assert.notEqual(error.code, "E_INTERNAL");
  }
}

function renderRequest(message: Message): string {
  const [method, target] = message.start;
  return renderRequestHead({ method, target, minor: 1, fields: message.fields }, message.framing);
}

function renderResponse(message: Message): string {
  const [status, phrase] = message.start;
  const head = { status: Number(status), phrase, minor: 1, fields: message.fields } as const;
  return renderResponseHead(head, message.framing, { close: false, minor: 1 });
}

/** The message as it would leave: framed anew, its data in the pieces given. */
function rewritten(message: Message, head: string, sizes: readonly number[]): Buffer {
  const written: Buffer[] = [];
  const writer = new BodyWriter(message.framing, { write: (bytes) => written.push(Buffer.from(bytes)) > 0 });
  writer.head(head);
  for (const piece of cut(bytesOf(message.body), sizes)) {
    writer.write(piece);
  }
  writer.end(message.trailers);
  return Buffer.concat(written);
}

for (const [side, valid] of [
  ["client", validRequest],
  ["upstream", validResponse],
] as const) {
  test(`receive() reads every valid message of the ${side}, whatever the pieces`, () => {
    fc.assert(
      fc.property(valid, pieceSizes, (text, sizes) => {
        const whole = receive(side, [bytesOf(text)]);
        assert.equal(whole.length, 1);
        assert.deepEqual(receive(side, cut(bytesOf(text), sizes)), whole);
      }),
    );
  });

  test(`receive() comes to the same end for damaged messages of the ${side}, whatever the pieces`, () => {
    fc.assert(
      fc.property(damaged(valid), pieceSizes, (text, sizes) => {
        assert.deepEqual(outcome(side, cut(bytesOf(text), sizes)), outcome(side, [bytesOf(text)]));
      }),
      { numRuns: 500 },
    );
  });
}

test("E18 receive() splits pipelined requests alike, whatever the pieces", () => {
  fc.assert(
    fc.property(fc.array(validRequest, { minLength: 2, maxLength: 4 }), pieceSizes, (texts, sizes) => {
      const apart = texts.flatMap((text) => receive("client", [bytesOf(text)]));
      assert.deepEqual(receive("client", cut(bytesOf(texts.join("")), sizes)), apart);
    }),
  );
});

for (const [side, valid, render] of [
  ["client", validRequest, renderRequest],
  ["upstream", validResponse, renderResponse],
] as const) {
  test(`render(parse()) of the ${side}'s head is a fixpoint`, () => {
    fc.assert(
      fc.property(valid, (text) => {
        const message = receive(side, [bytesOf(text)])[0];
        assert.ok(message !== undefined);
        const once = render(message);
        const again = side === "client" ? reparseRequest(once) : reparseResponse(once);
        assert.equal(render({ ...message, ...again }), once);
      }),
    );
  });

  test(`E12 whatever the ${side} gets accepted leaves as one message with the same parts`, () => {
    fc.assert(
      fc.property(fc.oneof(valid, damaged(valid)), pieceSizes, (text, sizes) => {
        for (const message of accepted(side, text)) {
          const [again, ...more] = receive(side, [rewritten(message, render(message), sizes)]);
          assert.deepEqual(more, []);
          assert.deepEqual(
            [again?.start, again?.body, again?.trailers],
            [message.start, message.body, message.trailers],
          );
          assert.deepEqual(endToEnd(again), endToEnd(message));
        }
      }),
      { numRuns: 500 },
    );
  });
}

test("BodyReader gives back what BodyWriter was given, whatever the pieces on both sides", () => {
  const framing = fc.constantFrom<Framing["kind"]>("length", "chunked", "close");
  const pieces = fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 12 });
  const answers = fc.array(fc.boolean(), { maxLength: 12 });
  fc.assert(
    fc.property(framing, pieces, answers, pieceSizes, (kind, given, said, sizes) => {
      const data = given.map((piece) => Buffer.from(piece));
      const length = data.reduce((sum, piece) => sum + piece.length, 0);
      const hop: Framing = kind === "length" ? { kind, length } : { kind };
      const written: Buffer[] = [];
      const writer = new BodyWriter(hop, {
        write: (bytes) => {
          written.push(bytes);
          return said.shift() ?? true;
        },
      });
      for (const piece of data) {
        writer.write(piece);
      }
      writer.end([]);
      const reader = new BodyReader(hop, DEFAULT_LIMITS, "upstream");
      const got: Buffer[] = [];
      for (const piece of cut(Buffer.concat(written), sizes)) {
        assert.equal(
          reader.read(piece, 0, (bytes) => got.push(bytes)),
          piece.length,
        );
      }
      reader.eof();
      assert.deepEqual(Buffer.concat(got), Buffer.concat(data));
    }),
  );
});

test("random bytes make the codec throw nothing but a failure of the peer", () => {
  const noise = fc.oneof(
    fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
    fc
      .array(
        fc.constantFrom(
          "GET",
          "HTTP/1.1",
          "HTTP/1.1 200",
          " ",
          "/",
          "\r\n",
          "\r",
          "\n",
          ":",
          "a",
          "0",
          "\0",
          ";",
          "\xff",
        ),
      )
      .map((parts) => bytesOf(parts.join(""))),
  );
  fc.assert(
    fc.property(noise, (bytes) => {
      const text = bytes.toString("latin1");
      const end = findHeadEnd(bytes, 0);
      assert.ok(end === -1 || (end > 0 && end <= bytes.length));
      onlyFailures(() => parseRequestHead(bytes, bytes.length, DEFAULT_LIMITS));
      onlyFailures(() => parseResponseHead(bytes, bytes.length, "GET", DEFAULT_LIMITS));
      onlyFailures(() => new BodyReader(CHUNKED, DEFAULT_LIMITS, "client").read(bytes, 0, () => {}));
      onlyFailures(() => parseAuthority(text, 443));
      onlyFailures(() => parseAuthorityForm(text));
      onlyFailures(() => parseAbsoluteForm(text));
      onlyFailures(() => parseAbsoluteForm(`http://${text}`));
    }),
    { numRuns: 1_000 },
  );
});

test("a head whose end was found early is always refused", () => {
  fc.assert(
    fc.property(damaged(validRequest), (text) => {
      const bytes = bytesOf(text);
      const end = findHeadEnd(bytes, 0);
      if (end > 0 && bytes.toString("latin1", end - 4, end) !== "\r\n\r\n") {
        assert.throws(() => parseRequestHead(bytes, end, DEFAULT_LIMITS), Failure);
      }
    }),
  );
});

function reparseRequest(text: string): Pick<Message, "start" | "fields" | "framing"> {
  const { method, rawTarget, fields, framing } = parseRequestHead(bytesOf(text), text.length, DEFAULT_LIMITS);
  return { start: [method, rawTarget], fields, framing };
}

function reparseResponse(text: string): Pick<Message, "start" | "fields" | "framing"> {
  const { status, phrase, fields, framing } = parseResponseHead(
    bytesOf(text),
    text.length,
    "GET",
    DEFAULT_LIMITS,
  );
  return { start: [String(status), phrase], fields, framing };
}

/** No message where one of them fails. */
function accepted(side: "client" | "upstream", text: string): Message[] {
  const read = outcome(side, [bytesOf(text)]);
  return Array.isArray(read) ? read : [];
}

function endToEnd(message: Message | undefined): string[] {
  const ofTheHop = ["connection", "keep-alive", "te", "transfer-encoding", "content-length"];
  return (message?.fields ?? [])
    .filter(({ key }) => !ofTheHop.includes(key))
    .map(({ name, value }) => `${name}: ${value}`);
}
