/** What a config becomes when it is taken up: a compiled policy and the secrets that it names. */
import { compilePolicy } from "./decide/policy.ts";
import type { Config } from "./model/config.ts";
import { createSecrets, type Secrets } from "./secrets/secrets.ts";
import type { SupplyDesk } from "./secrets/supply-desk.ts";
import type { InForce } from "./world.ts";

export interface TakeUpParts {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly supplies: SupplyDesk;
  /** Milliseconds, by a clock that does not go back. */
  readonly now: () => number;
}

/** `previous`: of the config whose place this one takes; what exchanges under way may still use stays redacted. Throws `E_CONFIG`. */
export function takeUp(
  { policy, templates, ...suppliers }: Config,
  previous: Secrets | undefined,
  { env, supplies, now }: TakeUpParts,
): InForce {
  const supply = supplies.supply(suppliers);
  const compiled = compilePolicy(policy);
  const secrets = createSecrets(templates, { env, now, previous, supply });
  supplies.adopt(secrets, templates);
  return {
    policy: compiled,
    digest: policy.digest.slice(0, 12),
    sandboxes: policy.sandboxes,
    hooks: policy.hooks,
    hookOptions: policy.hookOptions,
    placeholders: policy.placeholders,
    approvals: policy.approvals,
    secrets,
  };
}
