/** What `serve` warns its operator of, for nobody else would say so. */
import type { Config } from "../model/config.ts";
import type { Log } from "../record/log.ts";
import type { Secrets } from "../secrets/secrets.ts";
import { ignoredVariables } from "./environment.ts";

/** In the config's own words, what is of a start until the next one. */
const YAML_KEYS = {
  listen: "listen",
  caDir: "ca.dir",
  workers: "workers",
  recordsFile: "records.file",
} as const;

/** Variables of the environment that are set in vain. */
export function warnOfVariables(log: Log, env: Readonly<Record<string, string | undefined>>): void {
  for (const name of ignoredVariables(env)) {
    const instead = name === "NODE_EXTRA_CA_CERTS" ? "upstream.ca_file" : undefined;
    log.warn("A variable has no effect here", { name, instead });
  }
}

/** Missing secrets refuse, and the program starts without them. */
export function warnOfSecrets(log: Log, secrets: Secrets): void {
  for (const { key, problem } of secrets.unavailable()) {
    log.warn("A secret cannot be had; what needs it is refused", { key, problem });
  }
  for (const key of secrets.short()) {
    log.warn("A secret is under 8 bytes, too short to be masked in answers and logs", { key });
  }
}

/** `started`: what the listeners, the CA, the workers and the records file are of. */
export function warnOfRestart(log: Log, started: Config, next: Config): void {
  for (const key of ["listen", "caDir", "workers", "recordsFile"] as const) {
    if (JSON.stringify(next[key]) === JSON.stringify(started[key])) continue;
    log.warn("A change needs a restart to take effect", { key: YAML_KEYS[key] });
  }
}
