/** Reads secrets of Vault's KV engine, version 2: one call for all fields of a secret that are wanted at once. */
import type { TemplatePart } from "../model/config.ts";
import type { ServiceEndpoint, VaultSource } from "../model/credential.ts";
import { valueProblem } from "./field-value.ts";
import type { TokenAnswer } from "./token-answer.ts";

export type VaultPart = Extract<TemplatePart, { kind: "vault" }>;

/** One GET to the vault of the config. */
export interface VaultOrder {
  readonly endpoint: ServiceEndpoint;
  readonly fields: readonly (readonly [name: string, value: string])[];
}

export interface VaultReading {
  /** Over the guarded way of everything that leaves. Rejects with a Failure. */
  get(order: VaultOrder): Promise<TokenAnswer>;
  /** The value of a template; throws where it cannot be had. */
  secret(key: string): string;
}

export interface VaultReader {
  /** Rejects with an error that quotes nothing of the answer. */
  read(vault: VaultSource, part: VaultPart): Promise<string>;
}

export function createVaultReader(reading: VaultReading): VaultReader {
  /** Two halves of one secret must not be of different versions. */
  const underWay = new Map<string, Promise<TokenAnswer>>();

  function answerOf(vault: VaultSource, part: VaultPart): Promise<TokenAnswer> {
    const order = orderOf(vault, part, reading.secret(vault.token));
    const name = JSON.stringify(order);
    const asked = underWay.get(name) ?? reading.get(order).finally(() => underWay.delete(name));
    underWay.set(name, asked);
    return asked;
  }

  return {
    read: async (vault, part) => valueIn(await answerOf(vault, part), part),
  };
}

function orderOf(
  { endpoint, namespace }: VaultSource,
  { mount, path }: VaultPart,
  token: string,
): VaultOrder {
  return {
    endpoint: { ...endpoint, target: `${endpoint.target}/v1/${mount}/data/${path}` },
    fields: [
      ["X-Vault-Token", token],
      // Agents and proxies of a vault may demand it, against forged requests.
      ["X-Vault-Request", "true"],
      ...(namespace === undefined ? [] : [["X-Vault-Namespace", namespace] as const]),
    ],
  };
}

function valueIn({ status, text }: TokenAnswer, part: VaultPart): string {
  if (status === 404) throw new Error("The vault has no such secret, or its version was deleted");
  if (status !== 200) throw new Error(`The vault answered with ${status}`);
  const fields = fieldsOf(text);
  if (fields === undefined) throw new Error("The vault's answer is not one of KV version 2");
  const value = Object.hasOwn(fields, part.field) ? fields[part.field] : undefined;
  if (typeof value !== "string") throw new Error(`The secret has no text in its field \`${part.field}\``);
  // As with files: whoever writes a key with a tool writes a line break after it.
  const cut = value.replace(/\r?\n$/, "");
  const problem = valueProblem(cut, part.lines);
  if (problem !== undefined) throw new Error(`The secret's field \`${part.field}\` ${problem}`);
  return cut;
}

/** `data.data`; undefined where the answer has no such thing. */
function fieldsOf(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const data: unknown = JSON.parse(text)?.data?.data;
    return typeof data === "object" && data !== null ? { ...data } : undefined;
  } catch {
    return undefined;
  }
}
