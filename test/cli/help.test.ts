import assert from "node:assert/strict";
import { test } from "node:test";
import type { Command } from "../../src/cli/command.ts";
import { renderCommandHelp, renderHelp } from "../../src/cli/help.ts";

const COMMAND: Command = {
  name: "weigh",
  summary: "say how heavy a thing is",
  usage: "THING [--in UNIT]",
  optionsHelp: [["--in UNIT", "grams or pounds"]],
  example: "sallyport weigh feather",
  options: { in: { type: "string" } },
  run: async () => 0,
};

test("renderHelp lists commands in their order, with summaries in one column", () => {
  const text = renderHelp([COMMAND, { ...COMMAND, name: "x" }]);
  assert.match(
    text,
    /^Commands:\n {2}weigh {2}say how heavy a thing is\n {2}x {6}say how heavy a thing is\n/m,
  );
  assert.match(text, /^Exit codes: 0 fine, 1 it broke, 2 usage or config, 3 denied$/m);
});

test("renderCommandHelp shows usage, each option and --help in one column, and the example", () => {
  const text = renderCommandHelp(COMMAND);
  assert.match(text, /^Usage: sallyport weigh THING \[--in UNIT\]$/m);
  assert.match(text, /^ {2}--in UNIT {2}grams or pounds\n {2}--help {5}this text$/m);
  assert.match(text, /^Example: sallyport weigh feather\n$/m);
});

test("renderCommandHelp of a command without options has --help alone", () => {
  assert.match(renderCommandHelp({ ...COMMAND, optionsHelp: [] }), /^Options:\n {2}--help {2}this text\n\n/m);
});
