/** What `explain` knows of the secrets that an allowance needs: which are missing, as this process sees them, and never a value. */
import { wayTo } from "../base/bypass.ts";
import { findPlaceholders } from "../decide/find-placeholders.ts";
import type { Policy } from "../decide/policy.ts";
import type { Config, TemplatePart } from "../model/config.ts";
import type { Injection, Permit } from "../model/decision.ts";
import { readIdentity } from "../secrets/client-identity.ts";
import { createSecrets, type Secrets } from "../secrets/secrets.ts";

export interface SecretView {
  /** Why the gate would refuse with `secret-unavailable`; empty: it would not. Each names a variable or a file. */
  missing(permit: Permit): readonly string[];
  /** Sentences on what is allowed all the same. */
  notes(permit: Permit, inspected: boolean): readonly string[];
}

/** Reads variables and files; runs no command and asks nobody. */
export function viewSecrets(
  config: Config,
  policy: Policy,
  env: Readonly<Record<string, string | undefined>>,
): SecretView {
  const { templates } = config;
  const secrets = createSecrets(templates, { env, now: () => performance.now() });
  return {
    missing(permit) {
      const keys = new Set([...keysOf(permit, config), ...parentKeys(permit, config, policy)]);
      const problems = [...keys].flatMap((key) => problemOf(key, secrets));
      if (problems.length > 0 || permit.certificate === undefined) return [...new Set(problems)];
      return misfits(permit.certificate, config, secrets);
    },
    notes(permit, inspected) {
      const untried = keysOf(permit, config).some((key) => isUntried(key, secrets));
      const placeholders = inspected ? findPlaceholders(permit.destination, policy) : [];
      return [
        ...(untried ? ["What commands, vaults and token endpoints give is not asked for here"] : []),
        ...placeholders.flatMap(({ placeholder, secret }) =>
          behind([secret], config).flatMap((key) =>
            problemOf(key, secrets).map((why) => `${placeholder} cannot be replaced: ${why}`),
          ),
        ),
      ];
    },
  };
}

function keysOf({ injections, certificate }: Permit, config: Config): readonly string[] {
  const shown =
    certificate === undefined ? [] : keysUnder(`upstream.client_certificates.${certificate}.`, config);
  return [...behind(injections.flatMap(keysOfInjection), config), ...shown];
}

function keysOfInjection({ secret, signing }: Injection): readonly string[] {
  if (signing === undefined) return [secret];
  const { accessKeyId, secretAccessKey, sessionToken } = signing;
  return [accessKeyId, secretAccessKey, ...(sessionToken === undefined ? [] : [sessionToken])];
}

/** With what tokens, and the vault, are asked for by. */
function behind(keys: readonly string[], config: Config): readonly string[] {
  const parts = keys.flatMap((key) => config.templates.get(key) ?? []);
  return [...keys, ...parts.flatMap((part) => askedWith(part, config))];
}

function askedWith(part: TemplatePart, config: Config): readonly string[] {
  if (part.kind === "minted") return keysUnder(`credentials.${part.credential}.`, config);
  return part.kind === "vault" && config.vault !== undefined ? [config.vault.token] : [];
}

function keysUnder(prefix: string, { templates }: Config): readonly string[] {
  return [...templates.keys()].filter((key) => key.startsWith(prefix));
}

/** The parent proxy's password, where what is permitted leaves by it. */
function parentKeys(permit: Permit, { upstream }: Config, { parent }: Policy): readonly string[] {
  if (parent?.auth === undefined) return [];
  return wayTo(parent, upstream.dnsHosts, permit.destination) === "direct" ? [] : [parent.auth];
}

/** A pair that is there and cannot be used. What has yet to be asked for is not judged. */
function misfits(certificate: string, config: Config, secrets: Secrets): readonly string[] {
  const untried = keysUnder(`upstream.client_certificates.${certificate}.`, config).some((key) =>
    isUntried(key, secrets),
  );
  if (untried || readIdentity(certificate, secrets).ok) return [];
  return [`Certificate and key of client certificate \`${certificate}\` are no pair that can be used`];
}

function problemOf(key: string, secrets: Secrets): readonly string[] {
  const rendered = secrets.render(key);
  return rendered.ok || rendered.untried === true ? [] : [rendered.problem];
}

function isUntried(key: string, secrets: Secrets): boolean {
  const rendered = secrets.render(key);
  return !rendered.ok && rendered.untried === true;
}
