/** The process's environment: read here alone, and made safe for a program that holds everybody's keys. */
import { Failure } from "../model/failure.ts";
import type { Log } from "../record/log.ts";

/** Ways in which Node.js could be told from outside to weaken TLS, show keys, or open a debugger. */
const IGNORED = ["NODE_EXTRA_CA_CERTS", "SSLKEYLOGFILE", "HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"];

/** Throws `E_CONFIG` where a variable would switch off what the gate is for. */
export function environment(): Readonly<Record<string, string | undefined>> {
  // biome-ignore lint/style/noProcessEnv: the one place where it is read
  const env = { ...process.env };
  if (env["NODE_TLS_REJECT_UNAUTHORIZED"] === "0") {
    throw refused("NODE_TLS_REJECT_UNAUTHORIZED=0 would switch off the verification of upstreams; unset it");
  }
  if (/--(?:tls-keylog|inspect)/.test(env["NODE_OPTIONS"] ?? "")) {
    throw refused("NODE_OPTIONS would show TLS keys or open a debugger; unset it");
  }
  return env;
}

/** Names of variables that are set and have no effect here. */
export function ignoredVariables(env: Readonly<Record<string, string | undefined>>): readonly string[] {
  return IGNORED.filter((name) => env[name] !== undefined || env[name.toLowerCase()] !== undefined);
}

/** A bug ends the process, so that whoever supervises it starts a sound one; nothing is forwarded meanwhile. */
export function hardenProcess(log: Log): void {
  // Node.js opens a debugger on this signal unless somebody listens.
  process.on("SIGUSR1", () => {});
  process.report.excludeEnv = true;
  for (const event of ["uncaughtException", "unhandledRejection"] as const) {
    process.on(event, (error: unknown) => {
      log.error("Something broke that nothing expected", { event, stack: stackOf(error) });
      log.flush();
      process.exit(1);
    });
  }
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : "no stack";
}

function refused(message: string): Failure {
  return new Failure("E_CONFIG", "operator", message);
}
