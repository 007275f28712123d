/** The operator's pages over all that `serve` runs. */
import { cannotListen } from "../accept/listener.ts";
import { type Admin, createAdmin, type Readiness } from "../admin/server.ts";
import type { Config } from "../model/config.ts";
import { METRICS_CONTENT_TYPE, type Metrics, sumMetrics } from "../record/metrics.ts";
import type { Secrets } from "../secrets/secrets.ts";
import type { Fleet } from "./fleet.ts";
import { VERSION } from "./version.ts";

export interface PagesParts {
  readonly config: () => Config;
  readonly secrets: () => Secrets;
  /** This process's own; the fleet has its own too. */
  readonly metrics: Metrics;
  readonly fleet: Pick<Fleet, "approvals" | "resolveApproval" | "metrics" | "state">;
  readonly state: () => Pick<Readiness, "listening" | "draining" | "config">;
}

/** Undefined where the config asks for none. */
export function createPages({ config, secrets, metrics, fleet, state }: PagesParts): Admin | undefined {
  const { admin } = config().listen;
  if (admin === undefined) return undefined;
  return createAdmin({
    host: admin.host,
    port: admin.port,
    version: VERSION,
    token: () => tokenOf(config(), secrets()),
    approvals: {
      pending: () => fleet.approvals(),
      resolve: (id, resolution) => fleet.resolveApproval(id, resolution),
    },
    metrics: async () => {
      const own = await metrics.json();
      const text = await sumMetrics([own, ...(await fleet.metrics())]);
      return { type: METRICS_CONTENT_TYPE, text };
    },
    ready: () => {
      const { mode, digest } = config().policy;
      const { listening, draining, config: loaded } = state();
      return { listening, draining, mode, policy: digest.slice(0, 12), config: loaded, ...fleet.state() };
    },
  });
}

/** Throws `E_CONFIG` where the address cannot be had. */
export async function listenPages(admin: Admin, { listen }: Config): Promise<void> {
  try {
    await admin.listen();
  } catch (error) {
    const { host = "", port } = listen.admin ?? {};
    const where = `${host.includes(":") ? `[${host}]` : host}:${port}`;
    throw cannotListen(where, "listen.admin", error as NodeJS.ErrnoException);
  }
}

function tokenOf({ listen }: Config, secrets: Secrets): string | undefined {
  const key = listen.admin?.token;
  if (key === undefined) return undefined;
  const rendered = secrets.render(key);
  // A token that cannot be had opens nothing, rather than everything.
  return rendered.ok ? rendered.value : "";
}
