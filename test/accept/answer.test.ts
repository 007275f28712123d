import assert from "node:assert/strict";
import { test } from "node:test";
import { answerBytes, answerInbound, CONNECTED } from "../../src/accept/answer.ts";
import { refusalOf } from "../../src/accept/refusal.ts";
import { readMessage, statusOf, valuesOf } from "../support/message-reader.ts";
import { serve } from "./harness.ts";

const ANSWER = refusalOf(
  { verdict: "deny", reason: "no-rule-matched", rule: undefined },
  { host: "a.example", port: 80, connect: false },
);

test("answerInbound writes the whole answer and ends the connection after it", async (context) => {
  const served = await serve(context, { onRequest: (inbound) => answerInbound(inbound, ANSWER) });
  served.peer.send("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n");
  assert.equal(await served.peer.ended, "end");
  assertWhole(served.peer.text);
});

test("answerInbound sends no body to HEAD, and the fields as for GET", async (context) => {
  const served = await serve(context, { onRequest: (inbound) => answerInbound(inbound, ANSWER) });
  served.peer.send("HEAD http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n");
  assert.equal(await served.peer.ended, "end");
  assert.match(served.peer.text, /^HTTP\/1\.1 403 Forbidden\r\n.*\r\n\r\n$/s);
  assert.match(served.peer.text, new RegExp(`content-length: ${ANSWER.body.length}\r\n`, "i"));
});

test("answerInbound writes an answer without a body", async (context) => {
  const empty = { ...ANSWER, body: Buffer.alloc(0) };
  const served = await serve(context, { onRequest: (inbound) => answerInbound(inbound, empty) });
  served.peer.send("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n");
  assert.equal(await served.peer.ended, "end");
  assert.match(served.peer.text, /content-length: 0\r\n.*\r\n\r\n$/is);
});

test("answerBytes is the same where no request could be read", () => {
  assertWhole(answerBytes(ANSWER).toString("latin1"));
});

test("CONNECTED has no field that could frame a body", () => {
  assert.deepEqual(CONNECTED, { status: 200, phrase: "Connection Established", minor: 1, fields: [] });
});

function assertWhole(text: string): void {
  const read = readMessage(text, { role: "response" });
  assert.ok(read !== undefined);
  assert.equal(read.size, text.length);
  assert.equal(statusOf(read.message), 403);
  assert.equal(read.message.body, ANSWER.body.toString("latin1"));
  assert.deepEqual(valuesOf(read.message, "connection"), ["close"]);
  assert.deepEqual(valuesOf(read.message, "content-length"), [`${ANSWER.body.length}`]);
  assert.deepEqual(valuesOf(read.message, "x-sallyport-reason"), ["no-rule-matched"]);
}
