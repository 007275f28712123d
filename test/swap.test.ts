import assert from "node:assert/strict";
import { test } from "node:test";
import { runConnection } from "../src/connection.ts";
import { createPair, listenTo } from "./support/loopback.ts";
import { createWorld } from "./support/world.ts";

test("swapPlaceholders puts no secret into clear text, and says why", async (context) => {
  const placeholder = {
    id: "a",
    placeholder: "__SALLYPORT_CRED_a__",
    secret: "credentials.a.value",
    domains: [{ kind: "exact", host: "a.example" }],
    locations: ["header"],
    headerNames: ["authorization"],
  } as const;
  const settings = { network: { allowlist: [{ domain: "*" }] }, placeholders: [placeholder] };
  const made = createWorld(context, settings, { secrets: { "credentials.a.value": "a-secret-value" } });
  const { near, far } = await createPair(context);
  const client = listenTo(far);
  runConnection(near, "explicit", made.world);
  client.send(
    "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nAuthorization: Bearer __SALLYPORT_CRED_a__\r\n\r\n",
  );
  await client.until("plaintext-secret");
  assert.equal(made.origins.length, 0);
  assert.equal((await made.record(0)).reason, "plaintext-secret");
});
