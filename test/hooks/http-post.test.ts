import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { after, before, test } from "node:test";
import { type PostOrder, postJson } from "../../src/hooks/http-post.ts";
import { createHookServer, HOOK_HOST, type HookServer, type Taken } from "../support/hook-server.ts";

let server: HookServer;
before(async () => {
  server = await createHookServer(answer);
});
after(() => server.close());

function answer({ path }: Taken, response: ServerResponse): void {
  if (path === "/ok") response.end('{"decision":"deny"}');
  else if (path === "/created") response.writeHead(201).end("made");
  else if (path === "/moved") response.writeHead(302, { location: "/ok" }).end();
  else if (path === "/refused") response.writeHead(403, { "x-sallyport-reason": "no-rule-matched" }).end();
  else if (path === "/big") response.end("x".repeat(5_000));
  else if (path === "/cut") {
    response.writeHead(200, { "content-length": 100 });
    response.write("half", () => response.socket?.destroy());
  }
}

function post(path: string, more: Partial<PostOrder> = {}): ReturnType<typeof postJson> {
  const order = {
    headers: [["X-Source", "here"]],
    body: '{"a":1}',
    timeoutMs: 10_000,
    maxBytes: 1_000,
  } as const;
  const url = new URL(path, `https://${HOOK_HOST}`);
  return postJson({ ...order, url, ...more }, { env: server.env, ca: server.ca });
}

test("postJson: JSON and the fields arrive, through the proxy that the environment names", async () => {
  assert.deepEqual(await post("/ok"), { kind: "answered", text: '{"decision":"deny"}' });
  const taken = server.taken.at(-1);
  assert.deepEqual([taken?.method, taken?.path, taken?.body], ["POST", "/ok", '{"a":1}']);
  assert.equal(taken?.headers["content-type"], "application/json");
  assert.equal(taken?.headers["x-source"], "here");
  assert.equal(server.connects.at(-1), `${HOOK_HOST}:443`);
});

test("postJson: every 2xx is an answer", async () => {
  assert.deepEqual(await post("/created"), { kind: "answered", text: "made" });
});

test("postJson: a redirect is a failure and is not followed", async () => {
  const before = server.taken.length;
  assert.deepEqual(await post("/moved"), { kind: "failed", problem: "answered with status 302" });
  assert.equal(server.taken.length, before + 1);
});

test("postJson: a refusal of the gate's own is told with its reason", async () => {
  const end = await post("/refused");
  assert.deepEqual(end, { kind: "failed", problem: "answered with status 403, no-rule-matched" });
});

test("postJson: an answer is bounded in size and in time, and must be whole", async () => {
  assert.deepEqual(await post("/big"), { kind: "failed", problem: "answered with more than 1000 bytes" });
  assert.deepEqual(await post("/never", { timeoutMs: 200 }), {
    kind: "failed",
    problem: "did not answer within 0.2 s",
  });
  const cut = await post("/cut");
  assert.equal(cut.kind, "failed");
});

test("postJson: what cannot be reached, or is not trusted, fails by its code", async () => {
  const order = { headers: [], body: "", timeoutMs: 5_000, maxBytes: 10 } as const;
  const url = new URL(`https://${HOOK_HOST}/ok`);
  const untrusted = await postJson({ ...order, url }, { env: server.env });
  assert.ok(untrusted.kind === "failed");
  assert.match(untrusted.problem, /^could not be reached \([A-Z_]+\)$/);
  const elsewhere = new URL("https://other.example.com/");
  assert.equal((await postJson({ ...order, url: elsewhere }, { env: server.env })).kind, "failed");
});

test("postJson: an abort ends it, also one that came before", async () => {
  const controller = new AbortController();
  const running = post("/never", { signal: controller.signal });
  controller.abort();
  assert.deepEqual(await running, { kind: "failed", problem: "was not waited for" });
  assert.equal((await post("/ok", { signal: controller.signal })).kind, "failed");
});
