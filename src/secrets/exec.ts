/** Runs a program for the secret that it prints: no shell, bounded in time and output, its group killed at the end. */
import { runBounded } from "../hooks/bounded-process.ts";
import type { Limits } from "../model/limits.ts";
import { valueProblem } from "./field-value.ts";
import type { Fetched } from "./refresher.ts";

const MAX_OUTPUT = 65_536;

/** Rejects with an error that names what is wrong and quotes nothing of what the program wrote. */
export async function runForSecret(
  command: readonly [file: string, ...args: readonly string[]],
  env: Readonly<Record<string, string | undefined>>,
  limits: Pick<Limits, "secret_timeout" | "secret_ttl">,
): Promise<Fetched> {
  const timeoutMs = limits.secret_timeout;
  const end = await runBounded({ command, env, input: "", timeoutMs, maxOutputBytes: MAX_OUTPUT });
  if (end.kind === "failed") throw new Error(`Program \`${command[0]}\` ${end.problem}`);
  if (end.code !== 0) throw new Error(`Program \`${command[0]}\` ended with status ${end.code}`);
  const value = end.stdout.replace(/\r?\n$/, "");
  const wrong = valueProblem(value);
  if (wrong !== undefined) throw new Error(`What program \`${command[0]}\` printed ${wrong}`);
  return { value, lifetime: limits.secret_ttl };
}
