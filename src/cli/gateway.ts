/** `gateway`: the firewall of the gateway's door, as it would be applied; or away with it. */
import { loadConfig } from "../config/load.ts";
import type { Config } from "../model/config.ts";
import { Failure } from "../model/failure.ts";
import { removeFirewall } from "../sandbox/firewall.ts";
import { renderTables } from "../sandbox/nft.ts";
import { problemsOf, renderProblem } from "./check.ts";
import { type Command, DEFAULT_CONFIG, EXIT, type OptionValues, stringOf, UsageError } from "./command.ts";

export const gateway: Command = {
  name: "gateway",
  summary: "print the gateway's nft tables, or take them away",
  usage: "(show [--config FILE] | remove)",
  optionsHelp: [["--config FILE", `show: default ${DEFAULT_CONFIG}`]],
  example: "sallyport gateway show --config /etc/sallyport/sallyport.yaml | nft -c -f -",
  options: { config: { type: "string" } },
  run: runGateway,
};

async function runGateway(values: OptionValues, [action, ...rest]: readonly string[]): Promise<number> {
  if (rest.length > 0 || (action !== "show" && action !== "remove")) {
    throw new UsageError("Say one of: gateway show, gateway remove");
  }
  if (action === "remove") {
    await removeFirewall();
    process.stderr.write(
      "The gateway's tables are gone: its sandboxes are as any other neighbour of this host\n",
    );
    return EXIT.fine;
  }
  return show(stringOf(values, "config") ?? DEFAULT_CONFIG);
}

function show(file: string): number {
  const loaded = loadConfig(file, 1);
  for (const problem of problemsOf(loaded)) process.stderr.write(`${renderProblem(problem)}\n`);
  if (!loaded.ok) return EXIT.usage;
  process.stdout.write(tablesOf(loaded.config));
  return EXIT.fine;
}

function tablesOf(config: Config): string {
  const door = config.listen.gateway;
  if (door === undefined) {
    throw new Failure(
      "E_CONFIG",
      "operator",
      "The config has no `listen.gateway`, so there is no table to show",
    );
  }
  return renderTables(door, config, { bridgeNames: true });
}
