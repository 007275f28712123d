/** Programs of the system, found where PATH may not look. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { findProgram, toolPath } from "../../src/sandbox/tools.ts";

test("findProgram, toolPath: by absolute path, in the system's folders alone", () => {
  assert.match(toolPath("sh"), /^\/(?:usr\/)?bin\/sh$/);
  assert.equal(findProgram("no-such-program"), undefined);
  assert.throws(() => toolPath("no-such-program" as "sh"), {
    code: "E_CONFIG",
    message: /no-such-program is needed/,
  });
});
