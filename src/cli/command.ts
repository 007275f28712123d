/** What a command is, and how it ends. */

export interface Command {
  readonly name: string;
  /** One line, for the list of commands. */
  readonly summary: string;
  /** After the command's name: `[--config FILE]`. */
  readonly usage: string;
  /** One line for each option. */
  readonly optionsHelp: readonly (readonly [option: string, meaning: string])[];
  readonly example: string;
  readonly options: Readonly<
    Record<string, { readonly type: "string" | "boolean"; readonly default?: string }>
  >;
  /** Resolves with the exit code. */
  run(values: OptionValues, positionals: readonly string[]): Promise<number>;
}

export type OptionValues = Readonly<Record<string, string | boolean | undefined>>;

export const EXIT = { fine: 0, broke: 1, usage: 2, denied: 3 } as const;

export const DEFAULT_CONFIG = "config/sallyport.yaml";

/** The call itself is wrong: exit code 2, and a word about `--help`. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

export function stringOf(values: OptionValues, name: string): string | undefined {
  const value = values[name];
  return typeof value === "string" ? value : undefined;
}

/** As many ids of a config as a message names. */
const NAMED = 8;

export function unknownSandbox(id: string, sandboxes: readonly { readonly id: string }[]): UsageError {
  const ids = sandboxes.slice(0, NAMED).map((sandbox) => sandbox.id);
  if (sandboxes.length > NAMED) ids.push("…");
  return new UsageError(
    `The config names no sandbox ${JSON.stringify(id)}; it names ${ids.length === 0 ? "none" : ids.join(", ")}`,
  );
}
