/** The command line: finds the command, parses its options, turns every way of failing into an exit code. */
import { parseArgs } from "node:util";
import { Failure } from "../model/failure.ts";
import { type Command, EXIT, UsageError } from "./command.ts";
import { renderCommandHelp, renderHelp } from "./help.ts";
import { VERSION } from "./version.ts";

/** Each is loaded when it is called for: an agent starts `hook` at every step, and that needs a part of it all. */
const LOADERS: ReadonlyMap<string, () => Promise<Command>> = new Map([
  ["serve", async () => (await import("./serve.ts")).serve],
  ["run", async () => (await import("./run.ts")).run],
  ["attach", async () => (await import("./attach.ts")).attach],
  ["check", async () => (await import("./check.ts")).check],
  ["explain", async () => (await import("./explain.ts")).explainUrl],
  ["gateway", async () => (await import("./gateway.ts")).gateway],
  ["ca", async () => (await import("./ca.ts")).ca],
  ["hook", async () => (await import("./hook.ts")).hook],
  ["approve", async () => (await import("./approve.ts")).approve],
]);

export function allCommands(): Promise<readonly Command[]> {
  return Promise.all([...LOADERS.values()].map((load) => load()));
}

/** Resolves with the exit code: 0 fine, 1 it broke, 2 usage or config, 3 denied. Never rejects. */
export async function runCommandLine(argv: readonly string[]): Promise<number> {
  process.stdout.on("error", onLostOutput);
  const [name, ...rest] = argv;
  if (name === undefined || name === "--help" || name === "-h" || name === "help") {
    process.stdout.write(renderHelp(await allCommands()));
    return name === undefined ? EXIT.usage : EXIT.fine;
  }
  if (name === "--version") {
    process.stdout.write(`sallyport ${VERSION} (Node.js ${process.versions.node})\n`);
    return EXIT.fine;
  }
  let command: Command | undefined;
  try {
    command = await LOADERS.get(name)?.();
    if (command === undefined) throw new UsageError(`There is no command ${JSON.stringify(name)}`);
    return await runCommand(command, rest);
  } catch (error) {
    return report(error, command);
  }
}

async function runCommand(command: Command, argv: readonly string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: { ...command.options, help: { type: "boolean", short: "h" } },
  });
  if (values["help"] === true) {
    process.stdout.write(renderCommandHelp(command));
    return EXIT.fine;
  }
  return command.run(values, positionals);
}

/** `ca bundle | head`: whoever has read enough is no trouble, and the command ends as it would have. */
function onLostOutput({ code }: NodeJS.ErrnoException): void {
  if (code === "EPIPE") return;
  process.stderr.write(`sallyport: The output cannot be written (${code})\n`);
  process.once("exit", () => {
    process.exitCode = EXIT.broke;
  });
}

function report(error: unknown, command: Command | undefined): number {
  const usage = error instanceof UsageError || isParseArgsError(error);
  const message = error instanceof Error ? error.message : "Something broke";
  process.stderr.write(`sallyport: ${message}\n`);
  if (usage) {
    process.stderr.write(`Try: sallyport ${command === undefined ? "" : `${command.name} `}--help\n`);
    return EXIT.usage;
  }
  return error instanceof Failure && error.code === "E_CONFIG" ? EXIT.usage : EXIT.broke;
}

function isParseArgsError(error: unknown): boolean {
  return error instanceof TypeError && "code" in error && `${error.code}`.startsWith("ERR_PARSE_ARGS");
}
