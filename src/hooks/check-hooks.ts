/** Reads the hooks and the policy together: a hook that fails open behind a gate that fails closed allows in silence. Pure. */
import { namesSecret } from "../secrets/secret-field.ts";
import type { HookEntry, HooksFile, HttpHandler } from "./hooks-file.ts";

export interface HookFinding {
  readonly severity: "refused" | "warning";
  /** `security-gate.pre_tool_execution[0].hooks[0]`; empty: the whole file. */
  readonly where: string;
  readonly message: string;
}

/** What the gate would do with the POST to one URL. */
export interface Forecast {
  readonly verdict: "allow" | "deny";
  readonly reason: string;
  /** Names of the fields that the gate adds. */
  readonly injected: readonly string[];
  /** Present: policy allows it, and a secret that it needs cannot be had, as seen from here. */
  readonly secretMissing?: boolean;
}

const BARE = /^(?:bearer|basic|token)\s/i;

export function checkHooks(file: HooksFile, forecast: (url: string) => Forecast): readonly HookFinding[] {
  const problems = file.problems.map(({ where, problem }) => warning(where, problem));
  const handlers = file.entries.flatMap((entry) => entry.handlers.map((handler) => ({ entry, handler })));
  const findings = handlers.flatMap(({ entry, handler }) =>
    handler.type === "http" ? checkHttp(entry, handler, forecast) : [],
  );
  return [...problems, ...findings];
}

function checkHttp(
  entry: HookEntry,
  handler: HttpHandler,
  forecast: (url: string) => Forecast,
): readonly HookFinding[] {
  const { where, url, headers } = handler;
  const { verdict, reason, injected, secretMissing } = forecast(url.href);
  const refused: HookFinding = {
    severity: "refused",
    where,
    message: `The policy refuses POST to ${url.host} (${reason}): ${consequence(entry, handler)}`,
  };
  const fields = headers
    .filter(([name, value]) => namesSecret(name) || BARE.test(value))
    .map(([name]) => warning(where, bareSecret(`the header ${name}`, injected.includes(name))));
  const parameters = [...new Set(url.searchParams.keys())]
    .filter(namesSecret)
    .map((name) => warning(where, bareSecret(`the query's ${JSON.stringify(name.slice(0, 60))}`, false)));
  const missing = `A secret for ${url.host} cannot be had here (\`sallyport explain\` says which); where the gate has none either, ${consequence(entry, handler)}`;
  return [
    ...(verdict === "deny" ? [refused] : []),
    ...(secretMissing === true ? [warning(where, missing)] : []),
    ...fields,
    ...parameters,
  ];
}

function consequence({ event }: HookEntry, { onFailure }: HttpHandler): string {
  if (event === "post_tool_execution") return "its events would be lost";
  return onFailure === "block"
    ? "every call that it matches would be denied"
    : "every call that it matches would be allowed without being asked about";
}

function bareSecret(what: string, replaced: boolean): string {
  const advice = replaced
    ? "the gate replaces it, so leave it out"
    : "take it out, and let the policy's `transform` add it behind the sandbox";
  return `A secret seems to ride on ${what}, where everything in the sandbox can read it; ${advice}`;
}

function warning(where: string, message: string): HookFinding {
  return { severity: "warning", where, message };
}
