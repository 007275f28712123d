/** Files stay small enough to be read at one sitting. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { read, trackedFiles } from "./repository.ts";

const CODE = /^(src|test|bench|bin|scripts|\.ci)\/.*|^Dockerfile$/;
const DATA = /\.(json|yaml|yml|pem|txt|md)$/;

test("sizes: no file of code has more than 400 lines", () => {
  const long = trackedFiles()
    .filter((file) => CODE.test(file) && !DATA.test(file))
    .map((file) => ({ file, lines: linesOf(file) }))
    .filter(({ lines }) => lines > 400);
  assert.deepEqual(long, []);
});

test("sizes: the bootstrap has at most 100 lines", () => {
  assert.ok(linesOf("bin/bootstrap.mjs") <= 100);
});

function linesOf(file: string): number {
  return read(file).split("\n").length - 1;
}
