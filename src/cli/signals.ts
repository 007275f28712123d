/** Signals that end the program: the first one is answered, a second one ends it at once. */
import { EXIT } from "./command.ts";

/** Resolves with the first of these signals; a second one ends the process at once. */
export function signalled(signals: readonly NodeJS.Signals[]): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let seen = false;
    for (const signal of signals) {
      process.on(signal, () => {
        if (seen) process.exit(EXIT.broke);
        seen = true;
        resolve(signal);
      });
    }
  });
}
