import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Dialable, HandedOver } from "../../src/model/decision.ts";
import {
  CONSENT,
  destinationTo,
  literal,
  type Parted,
  type PartedOptions,
  parted,
  routeTo,
} from "./parent-harness.ts";

const NEVER = new AbortController().signal;
const TARGET = { address: literal("11.0.0.1"), port: 443 } as Dialable;

test("createParent: wayTo is as its source says, but for names that have their answer here", async (context) => {
  const hosts = new Map([["here.example", [literal("11.0.0.2")]]]);
  const { parent } = await parted(context, { source: { resolve: "parent" }, hosts });
  assert.equal(parent.wayTo(destinationTo("here.example")), "vetted");
  assert.equal(parent.wayTo(destinationTo("a.example")), "named");
});

test("createParent: locate finds its name, refuses bad addresses, and tells where it was found", async (context) => {
  const destination = destinationTo("proxy.example", 3128);
  const options = { source: { destination }, addresses: ["127.0.0.9", "127.0.0.1"], refused: ["127.0.0.9"] };
  const { parent, resolved } = await parted(context, options);
  assert.deepEqual(parent.endpoints(), []);
  const located = await parent.locate(NEVER);
  assert.deepEqual(
    located.map(({ address }) => address.text),
    ["127.0.0.1"],
  );
  assert.deepEqual(resolved, ["proxy.example"]);
  const endpoints = parent.endpoints();
  assert.deepEqual(endpoints, ["127.0.0.9 3128", "127.0.0.1 3128"]);
  await parent.locate(NEVER);
  assert.equal(parent.endpoints(), endpoints, "the same array while nothing changes");
  const none = await parted(context, { refused: ["127.0.0.1"] });
  await assert.rejects(none.parent.locate(NEVER), { code: "E_CONNECT", fault: "operator" });
});

test("createParent: open asks for the target with credentials, over TLS where its URL says so", async (context) => {
  const made = await parted(context, { source: { scheme: "https" } });
  const opened = await open(context, made, [TARGET], "user:pässword");
  assert.ok(opened.kind === "ready");
  assert.equal(opened.upstream.peer, TARGET.address);
  assert.deepEqual(made.secured, [destinationTo("127.0.0.1", made.port)]);
  const credentials = Buffer.from("user:pässword", "latin1").toString("base64");
  assert.match(
    made.heard[0]?.text ?? "",
    new RegExp(`^CONNECT 11\\.0\\.0\\.1:443 .*Basic ${credentials}\r\n`, "s"),
  );
});

test("createParent: open hands a name over, and then knows no peer", async (context) => {
  const made = await parted(context);
  const opened = await open(context, made, [{ host: "a.example", port: 443 } as HandedOver]);
  assert.ok(opened.kind === "ready");
  assert.equal(opened.upstream.peer, undefined);
  assert.match(made.heard[0]?.text ?? "", /^CONNECT a\.example:443 HTTP/);
});

test("createParent: open tries one address after the other, IPv4 first, and four at most", async (context) => {
  const targets = ["2a0f::1", "11.0.0.1", "11.0.0.2", "11.0.0.3", "11.0.0.4"].map(
    (text) => ({ address: literal(text), port: 443 }) as Dialable,
  );
  const answer = (line: string) => (line.includes("11.0.0.2") ? CONSENT : "HTTP/1.1 503 No\r\n\r\n");
  const made = await parted(context, { answer });
  const opened = await open(context, made, targets);
  assert.ok(opened.kind === "ready");
  assert.equal(opened.upstream.peer?.text, "11.0.0.2");
  assert.equal(made.heard.length, 2);
  const refusing = await parted(context, { answer: () => "HTTP/1.1 503 No\r\n\r\n" });
  await assert.rejects(open(context, refusing, targets), { code: "E_CONNECT" });
  assert.equal(refusing.heard.length, 4);
});

test("createParent: open asks no second time where its credentials are refused", async (context) => {
  const made = await parted(context, { answer: () => "HTTP/1.1 407 Who\r\n\r\n" });
  const other = { address: literal("11.0.0.2"), port: 443 } as Dialable;
  await assert.rejects(open(context, made, [TARGET, other]), { code: "E_CONNECT", fault: "operator" });
  assert.equal(made.heard.length, 1);
});

test("createParent: open asks for nothing without its secret", async (context) => {
  const made = await parted(context);
  const route = routeTo("a.example", { parentAuth: () => ({ ok: false }) });
  const opened = await made.parent.open(await made.parent.locate(NEVER), [TARGET], route, NEVER);
  assert.ok(opened.kind === "refused");
  assert.deepEqual([opened.denial.reason, opened.denial.rule], ["secret-unavailable", "a"]);
  assert.equal(made.heard.length, 0);
});

test("createParent: open takes no bytes behind the consent but for tcp", async (context) => {
  const options: PartedOptions = { answer: () => `${CONSENT}220 hello` };
  const made = await parted(context, options);
  await assert.rejects(open(context, made, [TARGET]), { code: "E_UPSTREAM_PROTOCOL" });
  const located = await made.parent.locate(NEVER);
  const route = routeTo("a.example", { scheme: "tcp" });
  const opened = await made.parent.open(located, [TARGET], route, NEVER);
  assert.ok(opened.kind === "ready");
  context.after(() => opened.upstream.socket.destroy());
  assert.equal(opened.upstream.early.toString(), "220 hello");
  await assert.rejects(made.parent.open(located, [], route, NEVER), { code: "E_CONNECT" });
});

async function open(
  context: TestContext,
  { parent }: Parted,
  targets: readonly (Dialable | HandedOver)[],
  secret?: string,
) {
  const parentAuth = secret === undefined ? {} : { parentAuth: () => ({ ok: true, value: secret }) as const };
  const opened = await parent.open(
    await parent.locate(NEVER),
    targets,
    routeTo("a.example", parentAuth),
    NEVER,
  );
  if (opened.kind === "ready") context.after(() => opened.upstream.socket.destroy());
  return opened;
}
