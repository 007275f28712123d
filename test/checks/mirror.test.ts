/** Every source file with behaviour has its own test, at the same place. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import ts from "typescript";
import { filesIn, ROOT, some, syntaxOf } from "./repository.ts";

/** Folders of `test/` that mirror no folder of `src/`. */
const OTHER = /^test\/(path|cases|fuzz|checks|support|slow)\//;

test("mirror: every file of src/ with behaviour has its test", () => {
  const missing = filesIn("src", ".ts")
    .filter((file) => !file.endsWith(".d.ts") && hasBehaviour(file))
    .map(testOf)
    .filter((file) => !existsSync(join(ROOT, file)));
  assert.deepEqual(missing, []);
});

test("mirror: every unit test belongs to a file of src/", () => {
  const strays = filesIn("test", ".test.ts")
    .filter((file) => !OTHER.test(file))
    .filter((file) => !existsSync(join(ROOT, sourceOf(file))));
  assert.deepEqual(strays, []);
});

test("mirror: the parts of a test's name after the first dot say which side of the file it is about", () => {
  assert.equal(sourceOf("test/wire/framing.test.ts"), "src/wire/framing.ts");
  assert.equal(sourceOf("test/wire/framing.smuggling.test.ts"), "src/wire/framing.ts");
});

/** Types and plain data have none; a function with a body is behaviour. */
function hasBehaviour(file: string): boolean {
  return some(syntaxOf(file), (node) => ts.isFunctionLike(node) && "body" in node && node.body !== undefined);
}

function testOf(file: string): string {
  return file.replace(/^src\//, "test/").replace(/\.ts$/, ".test.ts");
}

/** `test/a/b.test.ts` and `test/a/b.something.test.ts` both belong to `src/a/b.ts`. */
function sourceOf(file: string): string {
  return file.replace(/^test\//, "src/").replace(/([^/.]+)(?:\.[^/]+)?\.test\.ts$/, "$1.ts");
}
