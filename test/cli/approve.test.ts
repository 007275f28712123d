import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { approve } from "../../src/cli/approve.ts";

const ID = "0123456789ab";

interface Page {
  readonly config: string;
  readonly asked: string[];
}

async function page(
  context: TestContext,
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  token = "the-token-of-tests",
): Promise<Page> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (bytes) => {
      body += bytes;
    });
    request.on("end", () => {
      asked.push(`${request.method} ${request.url} ${request.headers.authorization} ${body}`);
      answer(request, response);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const directory = mkdtempSync(join(tmpdir(), "sallyport-approve-"));
  context.after(() => {
    server.close();
    server.closeAllConnections();
    rmSync(directory, { recursive: true, force: true });
  });
  const config = join(directory, "sallyport.yaml");
  const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const admin = token === "" ? address : { address, token };
  const listen = { proxy: "127.0.0.1:0", admin };
  writeFileSync(config, JSON.stringify({ version: 1, network: { allowlist: [] }, listen }));
  return { config, asked };
}

async function run(
  context: TestContext,
  values: Readonly<Record<string, string | boolean>>,
  ...positionals: readonly string[]
): Promise<{ readonly code: number; readonly out: string }> {
  let out = "";
  const { write: through } = process.stdout;
  // The test runner's own reports, which are bytes, go on.
  const write = context.mock.method(process.stdout, "write", (text: string | Uint8Array) => {
    if (typeof text !== "string") return through.call(process.stdout, text);
    out += text;
    return true;
  });
  try {
    return { code: await approve.run(values, positionals), out };
  } finally {
    write.mock.restore();
  }
}

test("approve: lists what waits, each in one printable line", async (context) => {
  const waiting = { id: ID, method: "GET", host: "a.example", port: 443, path: "/\u001b[31m", why: "w" };
  const { config, asked } = await page(context, (_request, response) =>
    response.end(JSON.stringify({ approvals: [waiting] })),
  );
  const { code, out } = await run(context, { config });
  assert.deepEqual([code, out], [0, `${ID}  -  GET a.example:443/?[31m  (w)\n`]);
  assert.deepEqual(asked, ["GET /approvals Bearer the-token-of-tests "]);
  const json = await run(context, { config, json: true });
  assert.deepEqual(JSON.parse(json.out), { approvals: [waiting] });
});

test("approve: gives a word, with who and for how long", async (context) => {
  const { config, asked } = await page(context, (_request, response) => response.end("{}"));
  assert.equal((await run(context, { config, by: "ada", for: "30m" }, ID)).out, `${ID}: approved\n`);
  assert.equal((await run(context, { config, by: "ada", reject: true }, ID)).out, `${ID}: rejected\n`);
  const post = `POST /approvals/${ID} Bearer the-token-of-tests`;
  assert.deepEqual(asked, [
    `${post} {"outcome":"approve","by":"ada","for":"30m"}`,
    `${post} {"outcome":"reject","by":"ada","for":"once"}`,
  ]);
});

test("approve: what cannot be is a usage error, and asks nobody", async (context) => {
  const { config, asked } = await page(context, (_request, response) => response.end("{}"));
  await assert.rejects(approve.run({ config }, ["x"]), { name: "UsageError" });
  await assert.rejects(approve.run({ config }, [ID, ID]), { name: "UsageError" });
  await assert.rejects(approve.run({ config, for: "ever" }, [ID]), { name: "UsageError" });
  assert.equal(await approve.run({ config: `${config}.none` }, []), 2);
  assert.deepEqual(asked, []);
});

test("approve: an unknown id, another answer, a gate that is not there and one without a token fail in words", async (context) => {
  const statuses = [404, 500];
  const { config } = await page(context, (_request, response) =>
    response.writeHead(statuses.shift() ?? 0).end(),
  );
  await assert.rejects(approve.run({ config }, [ID]), /Nothing of this id/);
  await assert.rejects(approve.run({ config }, [ID]), /status 500/);
  const cut = await page(context, (_request, response) => void response.destroy());
  await assert.rejects(approve.run({ config: cut.config }, [ID]), { code: "E_CONNECT" });
  const open = await page(context, () => undefined, "");
  await assert.rejects(approve.run({ config: open.config }, [ID]), { code: "E_CONFIG" });
});
