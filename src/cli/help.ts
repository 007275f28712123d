/** What `--help` prints. Pure. */
import type { Command } from "./command.ts";

export function renderHelp(commands: readonly Command[]): string {
  const width = Math.max(...commands.map(({ name }) => name.length)) + 2;
  const lines = commands.map(({ name, summary }) => `  ${name.padEnd(width)}${summary}`);
  return `sallyport: the egress gate of an AI-agent sandbox

Usage: sallyport COMMAND [OPTIONS]

Commands:
${lines.join("\n")}

  sallyport COMMAND --help   one command, with an example
  sallyport --version

Exit codes: 0 fine, 1 it broke, 2 usage or config, 3 denied

Example: sallyport serve --config config/sallyport.yaml
`;
}

export function renderCommandHelp(command: Command): string {
  const width = Math.max(...command.optionsHelp.map(([option]) => option.length), 6) + 2;
  const options = [...command.optionsHelp, ["--help", "this text"] as const];
  const lines = options.map(([option, meaning]) => `  ${option.padEnd(width)}${meaning}`);
  return `sallyport ${command.name}: ${command.summary}

Usage: sallyport ${command.name} ${command.usage}

Options:
${lines.join("\n")}

Example: ${command.example}
`;
}
