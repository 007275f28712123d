/** Programs that print a secret, and those that do not: what is wrong is said without what they printed. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { runForSecret } from "../../src/secrets/exec.ts";

const LIMITS = { secret_timeout: 5_000, secret_ttl: 60_000 };

function run(script: string, limits = LIMITS) {
  return runForSecret(["/bin/sh", "-c", script], { PATH: "/usr/bin:/bin" }, limits);
}

test("runForSecret: one trailing newline is cut, and it is good for the time to live", async () => {
  assert.deepEqual(await run("echo printed"), { value: "printed", lifetime: 60_000 });
});

test("runForSecret: a status, two lines, nothing, too much, too long, no program", async () => {
  await assert.rejects(run("echo s3cr3t; exit 3"), /^Error: Program `\/bin\/sh` ended with status 3$/);
  await assert.rejects(run("echo s3cr3t; echo s3cr3t"), /printed holds a line break[^3]*$/);
  await assert.rejects(run("true"), /printed is empty$/);
  await assert.rejects(run("yes"), /printed more than 65536 bytes/);
  await assert.rejects(
    run("trap '' TERM; sleep 60", { ...LIMITS, secret_timeout: 100 }),
    /did not answer within/,
  );
  await assert.rejects(runForSecret(["/does/not/exist"], {}, LIMITS), /Program `\/does\/not\/exist`/);
});
