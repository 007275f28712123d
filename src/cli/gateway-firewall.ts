/** The gateway's firewall over one life of `serve`: in force before the start, kept up with reloads, closed at the end. */
import type { Config, GatewayEndpoint } from "../model/config.ts";
import type { Log } from "../record/log.ts";
import { applyFirewall, releaseFirewall } from "../sandbox/firewall.ts";
import { renderTables } from "../sandbox/nft.ts";

export interface GatewayFirewall {
  /** Rejects with `E_CONFIG` where the rules cannot be put in force; those before it then stay. */
  apply(config: Config): Promise<void>;
  /** New connections are redirected no more, and all else stays closed. Never rejects. */
  release(): Promise<void>;
}

interface Output {
  write(text: string): unknown;
}

/** `gateway`: the door as it was at the start; a changed one needs another start. */
export function createGatewayFirewall(
  gateway: GatewayEndpoint | undefined,
  log: Log,
  output: Output,
): GatewayFirewall {
  if (gateway === undefined || gateway.firewall === "none") return { apply: nothing, release: nothing };
  if (gateway.firewall === "print") {
    return { apply: onChange(gateway, async (_, text) => void output.write(text)), release: nothing };
  }
  let applied = false;
  return {
    apply: onChange(gateway, async (config) => {
      const { bridgeNames } = await applyFirewall(gateway, config);
      applied = true;
      if (bridgeNames) return;
      log.warn(
        "This kernel cannot tell bridges apart: on a shared bridge only sandboxes with an interface or a mac are kept apart",
      );
    }),
    release: async () => {
      if (!applied) return;
      try {
        await releaseFirewall();
      } catch (error) {
        log.error("The redirection stays; it leads nowhere", { problem: String(error) });
      }
    },
  };
}

/** Most reloads change no sandbox's address. */
function onChange(
  gateway: GatewayEndpoint,
  act: (config: Config, text: string) => Promise<void>,
): (config: Config) => Promise<void> {
  let inForce = "";
  return async (config) => {
    const text = renderTables(gateway, config, { bridgeNames: true });
    if (text === inForce) return;
    await act(config, text);
    inForce = text;
  };
}

async function nothing(): Promise<void> {}
