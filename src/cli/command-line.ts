/** The command line: finds the command, parses its options, turns every way of failing into an exit code. */
import { parseArgs } from "node:util";
import { Failure } from "../model/failure.ts";
import { approve } from "./approve.ts";
import { attach } from "./attach.ts";
import { ca } from "./ca.ts";
import { check } from "./check.ts";
import { type Command, EXIT, UsageError } from "./command.ts";
import { explainUrl } from "./explain.ts";
import { gateway } from "./gateway.ts";
import { renderCommandHelp, renderHelp } from "./help.ts";
import { hook } from "./hook.ts";
import { run } from "./run.ts";
import { serve } from "./serve.ts";
import { VERSION } from "./version.ts";

export const COMMANDS: readonly Command[] = [
  serve,
  run,
  attach,
  check,
  explainUrl,
  gateway,
  ca,
  hook,
  approve,
];

/** Resolves with the exit code: 0 fine, 1 it broke, 2 usage or config, 3 denied. Never rejects. */
export async function runCommandLine(argv: readonly string[]): Promise<number> {
  process.stdout.on("error", onLostOutput);
  const [name, ...rest] = argv;
  if (name === undefined || name === "--help" || name === "-h" || name === "help") {
    process.stdout.write(renderHelp(COMMANDS));
    return name === undefined ? EXIT.usage : EXIT.fine;
  }
  if (name === "--version") {
    process.stdout.write(`sallyport ${VERSION} (Node.js ${process.versions.node})\n`);
    return EXIT.fine;
  }
  const command = COMMANDS.find((candidate) => candidate.name === name);
  try {
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
