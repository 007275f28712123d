/** `serve`: every listener of one config, its reload, its drain and the operator's pages. */
import cluster from "node:cluster";
import { loadConfig } from "../config/load.ts";
import { createLog } from "../record/log.ts";
import { problemsOf, renderProblem } from "./check.ts";
import { type Command, DEFAULT_CONFIG, EXIT, type OptionValues, stringOf, UsageError } from "./command.ts";
import { environment, hardenProcess } from "./environment.ts";
import { runService } from "./service.ts";
import { runWorker } from "./worker.ts";

export const serve: Command = {
  name: "serve",
  summary: "run every listener of a config until SIGTERM",
  usage: "[--config FILE]",
  optionsHelp: [["--config FILE", `default ${DEFAULT_CONFIG}; reloaded when it changes and on SIGHUP`]],
  example: "sallyport serve --config /etc/sallyport/sallyport.yaml",
  options: { config: { type: "string" } },
  run: runServe,
};

async function runServe(values: OptionValues, positionals: readonly string[]): Promise<number> {
  if (positionals.length > 0) throw new UsageError("serve takes no arguments; name the file with --config");
  const env = environment();
  if (cluster.isWorker) {
    hardenProcess(createLog(process.stderr, (text) => text));
    await runWorker(env);
    return EXIT.fine;
  }
  const loaded = loadConfig(stringOf(values, "config") ?? DEFAULT_CONFIG, 1);
  for (const problem of problemsOf(loaded)) process.stderr.write(`${renderProblem(problem)}\n`);
  if (!loaded.ok) return EXIT.usage;
  return runService(loaded.config, env);
}
