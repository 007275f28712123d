import assert from "node:assert/strict";
import { test } from "node:test";
import type { Config, Template } from "../src/model/config.ts";
import { createSecrets, type Secrets } from "../src/secrets/secrets.ts";
import { openSupplies } from "../src/supplies.ts";
import { ask } from "./decide/build.ts";
import { createWorld, type TestWorld } from "./support/world.ts";

const TOKENS: Config["tokens"] = [
  {
    kind: "oauth2",
    id: "o",
    endpoint: { scheme: "http", destination: ask("http://tokens.example/").destination, target: "/token" },
    clientId: "id",
    clientSecret: undefined,
    refreshToken: undefined,
    scopes: [],
    style: "body",
  },
];

test("openSupplies runs programs with the environment given, within the limits", async (context) => {
  const { secrets } = open(createWorld(context, {}), "/bin/sh", "-c", 'echo "it is $WHAT"');
  assert.equal(await had(secrets, "exec"), "it is printed-by-a-program");
});

test("openSupplies tells of a program that fails, and has nothing of it", async (context) => {
  const { secrets, failures } = open(createWorld(context, {}), "/bin/false");
  assert.equal(await had(secrets, "exec"), undefined);
  assert.equal(failures.length, 1);
});

test("openSupplies asks for tokens over the way out that is in force when they are needed", async (context) => {
  const made = createWorld(context, {});
  const { secrets } = open(made, "/bin/true");
  const having = had(secrets, "token");
  const peer = await made.origin(0);
  await peer.until("grant_type");
  assert.match(peer.text, /^POST \/token HTTP\/1\.1\r\nHost: tokens\.example\r\n/);
  const grant = JSON.stringify({ access_token: "token-of-the-test", expires_in: 100 });
  peer.send(`HTTP/1.1 200 OK\r\nContent-Length: ${grant.length}\r\n\r\n${grant}`);
  assert.equal(await having, "token-of-the-test");
});

function open({ world, limits }: TestWorld, file: string, ...args: readonly string[]) {
  const failures: string[] = [];
  const env = { WHAT: "printed-by-a-program" };
  const supplies = openSupplies({
    env,
    limits,
    around: () => ({ force: world.inForce(), world }),
    failed: (what, problem) => failures.push(`${what}: ${problem}`),
    now: () => performance.now(),
  });
  const templates = new Map<string, Template>([
    ["exec", [{ kind: "exec", command: [file, ...args] }]],
    ["id", [{ kind: "literal", text: "client" }]],
    ["token", [{ kind: "minted", credential: "o" }]],
  ]);
  const supply = supplies.supply({ tokens: TOKENS, vault: undefined });
  const secrets = createSecrets(templates, { env, now: () => performance.now(), supply });
  supplies.adopt(secrets, templates);
  return { secrets, failures };
}

async function had(secrets: Secrets, key: string): Promise<string | undefined> {
  const rendering = secrets.render(key);
  if (!rendering.ok) await rendering.whenKnown?.();
  const known = secrets.render(key);
  return known.ok ? known.value : undefined;
}
