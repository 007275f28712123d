/** `hook`: runs the agent's own hooks inside the sandbox, or checks them against the policy outside it. */
import { checkHooks, type Forecast, type HookFinding } from "../hooks/check-hooks.ts";
import { findHooksFile, readHooksFile } from "../hooks/hooks-file.ts";
import { runHook } from "../hooks/run-hook.ts";
import { EVENT_NAMES } from "../hooks/tool-event.ts";
import { type Command, DEFAULT_CONFIG, EXIT, type OptionValues, stringOf, UsageError } from "./command.ts";
import { environment } from "./environment.ts";
import { type Asked, askedOf, explainOne } from "./explain.ts";

export const hook: Command = {
  name: "hook",
  summary: "run the agent's hooks for one event, or check them against the policy",
  usage: `EVENT [--hooks FILE]
       sallyport hook check [--hooks FILE] [--config FILE] [--sandbox ID] [--json]

EVENT is one of ${EVENT_NAMES.join(", ")}:
the event's JSON on stdin, the decision's JSON on stdout, failures on stderr.`,
  optionsHelp: [
    ["--hooks FILE", "default .agents/hooks.json, else /.agents/hooks.json"],
    ["--config FILE", `of check: default ${DEFAULT_CONFIG}`],
    ["--sandbox ID", "of check: the sandbox that the hooks run in"],
    ["--json", "of check: print one JSON object: ok, findings"],
  ],
  example: "sallyport hook pre_tool_execution --hooks .agents/hooks.json < event.json",
  options: {
    hooks: { type: "string" },
    config: { type: "string" },
    sandbox: { type: "string" },
    json: { type: "boolean" },
  },
  run: runHookCommand,
};

/** Sandboxes that a hint names. */
const NAMED = 10;
/** Of the event on stdin. */
const MAX_EVENT_BYTES = 67_108_864;

async function runHookCommand(values: OptionValues, positionals: readonly string[]): Promise<number> {
  const [what] = positionals;
  if (what === undefined || positionals.length > 1) throw new UsageError("Give one event, or check");
  const hooksFile = stringOf(values, "hooks") ?? findHooksFile();
  if (what === "check") return check(hooksFile, values);
  for (const name of ["config", "sandbox", "json"]) {
    if (values[name] !== undefined) throw new UsageError(`--${name} belongs to hook check`);
  }
  return run(what, hooksFile);
}

/** A denial is an answer, not a failure: what runs us would read any other status as a hook that broke. */
async function run(event: string, hooksFile: string | undefined): Promise<number> {
  const controller = new AbortController();
  let status: number | undefined;
  for (const [signal, number] of [["SIGTERM", 15] as const, ["SIGINT", 2] as const, ["SIGHUP", 1] as const]) {
    process.on(signal, () => {
      status = 128 + number;
      controller.abort();
    });
  }
  const env = environment();
  const end = await runHook({
    event,
    payload: await readStdin(),
    hooksFile,
    way: { env },
    report: (line) => process.stderr.write(`sallyport hook: ${line}\n`),
    signal: controller.signal,
  });
  if (status !== undefined) return status;
  if (!end.ok) throw new UsageError(end.problem);
  process.stdout.write(`${end.answer}\n`);
  return EXIT.fine;
}

async function readStdin(): Promise<string> {
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const bytes of process.stdin) {
    pieces.push(bytes as Buffer);
    length += (bytes as Buffer).length;
    if (length > MAX_EVENT_BYTES) throw new UsageError("The event on stdin is larger than 64 MiB");
  }
  return Buffer.concat(pieces).toString("utf8");
}

function check(hooksFile: string | undefined, values: OptionValues): number {
  if (hooksFile === undefined) throw new UsageError("There is no .agents/hooks.json; name one with --hooks");
  const asked = askedOf({ ...values, method: "POST" });
  if (asked === undefined) return EXIT.usage;
  const found = checkHooks(readHooksFile(hooksFile), (url) => forecast(url, asked));
  const findings = [...hintOf(asked), ...found];
  if (values["json"] === true) {
    process.stdout.write(`${JSON.stringify({ ok: findings.length === 0, findings })}\n`);
  } else {
    for (const finding of findings) process.stdout.write(render(hooksFile, finding));
    if (findings.length === 0) process.stdout.write(`${hooksFile}: ok\n`);
  }
  return findings.some(({ severity }) => severity === "refused") ? EXIT.denied : EXIT.fine;
}

/** By policy alone, so that a machine without the gate's secrets can check too. */
function forecast(url: string, asked: Asked): Forecast {
  const secretMissing = explainOne(url, { ...asked, asGate: true }).reason === "secret-unavailable";
  return { ...explainOne(url, { ...asked, asGate: false }), secretMissing };
}

/** Hooks that nobody in particular runs are refused, and each finding would say so without saying why. */
function hintOf({ config, sandbox }: Asked): readonly HookFinding[] {
  const ids = config.policy.sandboxes.map(({ id }) => id);
  if (ids.length === 0 || sandbox !== undefined) return [];
  const named = ids.slice(0, NAMED).join(", ") + (ids.length > NAMED ? ", ..." : "");
  const message = `Each sandbox has a policy of its own: say with --sandbox ID which one runs these hooks (${named})`;
  return [{ severity: "warning", where: "", message }];
}

function render(file: string, { severity, where, message }: HookFinding): string {
  const place = where === "" ? file : `${file}: ${where}`;
  return `${place}: ${severity}: ${message}\n`.replace(/[^\x20-\x7e\n]+/g, " ");
}
