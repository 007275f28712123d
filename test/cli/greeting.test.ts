import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { greeting } from "../../src/cli/greeting.ts";
import { loadConfigText } from "../../src/config/load.ts";

test("greeting tells policy, doors, CA and a line to try, with paths as short as they go", () => {
  const text = greet(
    'listen: { proxy: "127.0.0.1:8080", admin: "[::1]:9464" }',
    join(process.cwd(), "c.yaml"),
  );
  assert.match(text, /^sallyport \S+: enforcing policy [0-9a-f]{12} of c\.yaml$/m);
  assert.match(text, /^proxy {3}http:\/\/127\.0\.0\.1:8080$/m);
  assert.match(text, /^admin {3}http:\/\/\[::1\]:9464\/metrics \/healthz \/readyz$/m);
  assert.match(text, /^CA {6}certs\/ca\.pem$/m);
  assert.match(text, /^try {5}curl -i -x http:\/\/127\.0\.0\.1:8080 http:\/\/not-listed\.example\/$/m);
});

test("greeting gives an address that can be dialled where every address is listened on", () => {
  assert.match(greet('listen: { proxy: "0.0.0.0:1" }'), /-x http:\/\/127\.0\.0\.1:1 /);
  assert.match(greet('listen: { proxy: "[::]:1" }'), /-x http:\/\/\[::1\]:1 /);
});

test("greeting says what is not there, and has then nothing to try", () => {
  const text = greet('listen: { reverse: "127.0.0.1:8081" }');
  assert.match(text, /^reverse http:\/\/127\.0\.0\.1:8081\/HOST\/PATH$/m);
  assert.match(text, /^proxy {3}none$/m);
  assert.doesNotMatch(text, /^try/m);
  assert.match(greet('listen: { proxy: "127.0.0.1:1" }'), /^admin {3}none$/m);
});

test("greeting never passes evaluate_only for enforcement", () => {
  assert.match(greet("mode: evaluate_only"), /EVALUATING ONLY/);
  assert.doesNotMatch(greet("mode: evaluate_only"), /enforcing/);
});

test("greeting shows where a sandbox's token goes, and not the token", () => {
  const text = greet(
    'listen: { proxy: "127.0.0.1:1" }\nsandboxes: [ { id: ci, token: s3cr3t-token, network: disabled } ]',
  );
  assert.match(text, /--proxy-user 'ci:TOKEN' /);
  assert.doesNotMatch(text, /s3cr3t/);
});

function greet(yaml: string, file = "/elsewhere/c.yaml"): string {
  const loaded = loadConfigText(`version: 1\nca: { dir: certs }\n${yaml}\n`, file, 1);
  return loaded.ok ? greeting(loaded.config) : assert.fail(JSON.stringify(loaded.problems));
}
