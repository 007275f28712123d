import assert from "node:assert/strict";
import { Duplex } from "node:stream";
import { test } from "node:test";
import { Http1Inbound } from "../../src/accept/http1-inbound.ts";
import { Failure } from "../../src/model/failure.ts";
import { DEFAULT_LIMITS } from "../../src/model/limits.ts";
import { parseRequestHead } from "../../src/wire/request-head.ts";
import { head, hear } from "./harness.ts";

const GET = "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n";
const GET_10 = "GET / HTTP/1.0\r\n\r\n";
const LEFT = new Failure("E_BAD_REQUEST", "client", "The client went away");

test("respond frames a body of unknown length by what the client can read", async () => {
  const cases = [
    [GET, "chunked", "Transfer-Encoding: chunked", "4\r\nbody\r\n0\r\n\r\n", false],
    [GET, "close", "Transfer-Encoding: chunked", "4\r\nbody\r\n0\r\n\r\n", false],
    [GET_10, "chunked", "Connection: close", "body", true],
    [GET_10, "close", "Connection: close", "body", true],
  ] as const;
  for (const [request, kind, field, body, closes] of cases) {
    const { inbound, host } = make(request);
    inbound.respond(head(), { kind });
    assert.equal(inbound.write(Buffer.from("body")), true);
    inbound.end([]);
    assert.match(host.text, new RegExp(`^HTTP/1\\.1 200 OK\r\n.*${field}`, "is"));
    assert.ok(host.text.endsWith(`\r\n\r\n${body}`), host.text);
    assert.deepEqual(host.answers, [closes]);
    assert.equal(inbound.responded, 200);
  }
});

test("respond keeps the framing of an answer to HEAD, which has no body", () => {
  const { inbound, host } = make("HEAD / HTTP/1.1\r\nHost: a.example\r\n\r\n");
  inbound.respond(head(200, ["Content-Length", "9"]), { kind: "none" });
  inbound.end([]);
  assert.match(host.text, /Content-Length: 9\r\n\r\n$/i);
  assert.deepEqual(host.answers, [false]);
});

test("end sends trailers after chunks", () => {
  const { inbound, host } = make(GET);
  inbound.respond(head(), { kind: "chunked" });
  inbound.end([{ name: "X-Sum", key: "x-sum", value: "7" }]);
  assert.match(host.text, /0\r\nX-Sum: 7\r\n\r\n$/);
});

test("closeAfter, and a client that asks for it, make an answer the last", () => {
  for (const asked of [false, true]) {
    const { inbound, host } = make(asked ? GET.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n") : GET);
    if (!asked) inbound.closeAfter();
    inbound.respond(head(), { kind: "length", length: 0 });
    inbound.end([]);
    assert.match(host.text, /Connection: close\r\n/i);
    assert.deepEqual(host.answers, [true]);
  }
});

test("inform writes interim answers to a client that knows them", () => {
  const { inbound, host } = make(GET);
  inbound.inform({ ...head(103), phrase: "Early Hints" });
  assert.equal(host.text, "HTTP/1.1 103 Early Hints\r\n\r\n");
  assert.equal(inbound.responded, undefined);
  const old = make(GET_10);
  old.inbound.inform(head(103));
  assert.equal(old.host.text, "");
});

test("start lets the body flow; a client that left before is told of at once", () => {
  const { inbound, host } = make(GET);
  inbound.start(hear());
  inbound.pause();
  inbound.resume();
  assert.deepEqual(host.calls, ["startBody", "pauseBody", "resumeBody"]);
  const gone = make(GET);
  gone.inbound.lost(LEFT);
  const heard = hear();
  gone.inbound.start(heard);
  assert.equal(heard.lost(), LEFT);
  assert.deepEqual(gone.host.calls, []);
});

test("whenLost tells once, of what comes and of what came, until the exchange starts", () => {
  let told = 0;
  const tell = (): void => {
    told += 1;
  };
  const { inbound } = make(GET);
  inbound.whenLost(tell);
  inbound.lost(LEFT);
  inbound.lost(LEFT);
  assert.equal(told, 1);
  inbound.whenLost(tell);
  assert.equal(told, 2);
  const started = make(GET);
  started.inbound.whenLost(tell);
  const heard = hear();
  started.inbound.start(heard);
  started.inbound.lost(LEFT);
  assert.equal(told, 2);
  assert.equal(heard.lost(), LEFT);
});

test("broken tells whoever relays, who may still answer, for the last time", () => {
  const { inbound, host } = make(GET);
  const heard = hear();
  inbound.start(heard);
  inbound.broken(LEFT);
  assert.equal(heard.lost(), LEFT);
  inbound.respond(head(400), { kind: "length", length: 0 });
  inbound.end([]);
  assert.match(host.text, /^HTTP\/1\.1 400 /);
  assert.deepEqual(host.answers, [true]);
  inbound.broken(LEFT);
});

test("Http1Inbound does nothing any more once it is over, however it came to that", () => {
  const endings: ((inbound: Http1Inbound) => void)[] = [
    (inbound) => inbound.lost(LEFT),
    (inbound) => inbound.abort(),
    (inbound) => {
      inbound.respond(head(), { kind: "length", length: 0 });
      inbound.end([]);
    },
    (inbound) => void inbound.takeOver(head(101)),
  ];
  for (const finish of endings) {
    const { inbound, host } = make(GET);
    finish(inbound);
    const before = [host.text, [...host.calls], [...host.answers]];
    inbound.inform(head(103));
    inbound.respond(head(), { kind: "chunked" });
    assert.equal(inbound.write(Buffer.from("body")), true);
    inbound.end([]);
    inbound.pause();
    inbound.resume();
    inbound.abort();
    inbound.lost(LEFT);
    inbound.broken(LEFT);
    assert.deepEqual([host.text, host.calls, host.answers], before);
  }
});

test("Http1Inbound writes no body before its head", () => {
  const { inbound, host } = make(GET);
  assert.equal(inbound.write(Buffer.from("body")), true);
  inbound.end([]);
  assert.deepEqual([host.text, host.answers], ["", []]);
});

test("write says whether the client takes more", () => {
  const { inbound, host } = make(GET);
  inbound.respond(head(), { kind: "chunked" });
  host.takes = false;
  assert.equal(inbound.write(Buffer.alloc(100_000)), false);
});

test("takeOver answers, and hands over what the connection gives", () => {
  const { inbound, host } = make(GET);
  const raw = inbound.takeOver(head(101));
  assert.match(host.text, /^HTTP\/1\.1 101 OK\r\n\r\n$/);
  assert.equal(raw.early.toString(), "early");
  assert.equal(inbound.responded, 101);
});

function make(text: string) {
  const bytes = Buffer.from(text, "latin1");
  const calls: string[] = [];
  const answers: boolean[] = [];
  const host = {
    text: "",
    takes: true,
    calls,
    answers,
    write(written: Buffer) {
      host.text += written.toString("latin1");
      return host.takes;
    },
    startBody: () => void calls.push("startBody"),
    pauseBody: () => void calls.push("pauseBody"),
    resumeBody: () => void calls.push("resumeBody"),
    answered: (close: boolean) => void answers.push(close),
    abort: () => void calls.push("abort"),
    detach: () => ({ socket: new Duplex(), early: Buffer.from("early") }),
  };
  return {
    inbound: new Http1Inbound(parseRequestHead(bytes, bytes.length, DEFAULT_LIMITS), "/", host),
    host,
  };
}
