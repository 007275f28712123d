/** The plan of a jail: what is emptied, masked and guarded on this machine. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { helperCommand, type JailRequest, OWN_FOLDER, planJail } from "../../src/sandbox/plan.ts";

let folder: string;
before(() => {
  folder = mkdtempSync(join(tmpdir(), "sallyport-plan-"));
  writeFileSync(join(folder, "key"), "");
  symlinkSync(join(folder, "key"), join(folder, "link"));
  writeFileSync(join(folder, "config"), "");
  mkdirSync(join(folder, "runtime"));
});
after(() => rmSync(folder, { recursive: true, force: true }));

function request(changes: Partial<JailRequest>): JailRequest {
  return {
    argv: ["true"],
    uid: 1000,
    gid: 1000,
    secretFiles: [],
    readOnlyFiles: [],
    env: {},
    files: new Map(),
    roots: undefined,
    ...changes,
  };
}

test("planJail: a link is masked where it leads, what is not there is left out, and a mask beats a guard", () => {
  const { plan } = planJail(
    request({
      secretFiles: [join(folder, "link"), join(folder, "gone")],
      readOnlyFiles: [join(folder, "key"), join(folder, "config"), join(folder, "none")],
    }),
  );
  assert.ok(plan.masked.includes(join(folder, "key")));
  assert.ok(!plan.masked.some((path) => path.endsWith("gone") || path.endsWith("link")));
  assert.deepEqual(
    plan.readOnly.map(({ path }) => path),
    [join(folder, "config")],
  );
});

test("planJail: /run is empty, and XDG_RUNTIME_DIR is, wherever it is", () => {
  const apart = planJail(request({ env: { XDG_RUNTIME_DIR: join(folder, "runtime") } })).plan;
  assert.deepEqual(
    [apart.emptied.includes("/run"), apart.emptied.includes(join(folder, "runtime"))],
    [true, true],
  );
  assert.deepEqual(apart.made, []);
  const inside = planJail(request({ env: { XDG_RUNTIME_DIR: "/run/lock" } })).plan;
  assert.ok(!inside.emptied.includes("/run/lock"));
  assert.equal(inside.made.length, 1);
  const root = planJail(request({ env: { XDG_RUNTIME_DIR: "/" } })).plan;
  assert.ok(!root.emptied.includes("/"));
});

test("planJail: files are written into the jail's own folder, a resolv.conf among them", () => {
  const { files } = planJail(request({ files: new Map([["x.pem", Buffer.from("x")]]) }));
  const texts = new Map(files.map(({ path, base64 }) => [path, Buffer.from(base64, "base64").toString()]));
  assert.equal(texts.get(`${OWN_FOLDER}/x.pem`), "x");
  assert.match(texts.get(`${OWN_FOLDER}/resolv.conf`) ?? "", /^nameserver 198\.18\.0\.1\n/);
});

test("planJail: the roots are shown where this machine keeps its own, each place once", () => {
  const { shown } = planJail(request({ roots: "x.pem" })).plan;
  const places = shown.filter(({ from }) => from === `${OWN_FOLDER}/x.pem`).map(({ at }) => at);
  assert.ok(places.length > 0);
  assert.equal(new Set(places).size, places.length);
  for (const place of places) assert.match(readFileSync(place, "latin1"), /BEGIN CERTIFICATE/);
});

test("helperCommand: our own runtime, which need not parse the helper anew each time", () => {
  const [env, cache, runtime] = helperCommand();
  assert.match(env ?? "", /\/env$/);
  assert.match(cache ?? "", /^NODE_COMPILE_CACHE=\/.*\/\.runtime\/compile-cache$/);
  assert.equal(runtime, process.execPath);
});
