/** The docs name every command and option of the command line, and no other. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allCommands } from "../../src/cli/command-line.ts";
import { differences, read, trackedFiles } from "./repository.ts";

const COMMANDS = await allCommands();

/** One `sallyport COMMAND …` as a page spells it, up to the end of the line or of the quotation. */
interface Call {
  readonly page: string;
  readonly command: string;
  readonly options: readonly string[];
}

const PAGES = trackedFiles().filter(
  (file) => file === "README.md" || file === "CONTRIBUTING.md" || /^docs\/.*\.md$/.test(file),
);
const CALLS: readonly Call[] = PAGES.flatMap(callsIn);

test("docs: every command that a page calls exists, with the options that it is given", () => {
  const unknown = CALLS.flatMap(({ page, command, options }) => {
    const known = COMMANDS.find(({ name }) => name === command);
    if (known === undefined) return [`${page}: ${command}`];
    return options
      .filter((option) => !optionsOf(known).includes(option))
      .map((option) => `${page}: ${command} ${option}`);
  });
  assert.deepEqual(unknown, []);
});

test("docs: every command and every option of it is shown on some page", () => {
  const shown = new Set(
    CALLS.flatMap(({ command, options }) => [command, ...options.map((option) => `${command} ${option}`)]),
  );
  const real = COMMANDS.flatMap(({ name, options }) => [
    name,
    ...Object.keys(options).map((option) => `${name} --${option}`),
  ]);
  assert.deepEqual(
    real.filter((call) => !shown.has(call)),
    [],
  );
});

test("help: each option of a command has its line there", () => {
  for (const { name, options, optionsHelp } of COMMANDS) {
    const explained = optionsHelp.map(([option]) => /--([a-z-]+)/.exec(option)?.[1] ?? "");
    assert.deepEqual(differences(Object.keys(options), explained), [], name);
  }
});

function optionsOf(command: (typeof COMMANDS)[number]): readonly string[] {
  return ["--help", ...Object.keys(command.options).map((option) => `--${option}`)];
}

/** A command of the page is a word after `sallyport`; `--` ends our options. */
function callsIn(page: string): readonly Call[] {
  const calls = read(page).matchAll(/(?:^|[\s`]|bin\/)sallyport (?<command>[a-z]+)\b(?<rest>[^\n`|]*)/g);
  return [...calls].map(({ groups }) => ({
    page,
    command: groups?.["command"] ?? "",
    options: [
      ...(groups?.["rest"] ?? "").replace(/\s--\s.*$/, "").matchAll(/(?<=[\s[(])--[a-z][a-z-]*/g),
    ].map(([option]) => option),
  }));
}
