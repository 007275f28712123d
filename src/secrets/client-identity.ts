/** Client certificates as their files hold them now: a pair that belongs together, or none. */
import { createPrivateKey, X509Certificate } from "node:crypto";
import type { ClientIdentity } from "../model/leg.ts";
import type { Secrets } from "./secrets.ts";

export type IdentityReading =
  /** `generation` rises whenever the certificate or the key has changed. */
  | { readonly ok: true; readonly identity: ClientIdentity; readonly generation: string }
  | { readonly ok: false; readonly wait?: () => Promise<void> };

interface Kept {
  readonly generation: string;
  readonly reading: IdentityReading;
}

const KEPT = new WeakMap<Secrets, Map<string, Kept>>();

/** The same identity for as long as its secrets are. Never throws. */
export function readIdentity(id: string, secrets: Secrets): IdentityReading {
  const parts = [];
  let generation = "";
  for (const name of ["cert", "key", "passphrase"] as const) {
    const rendered = secrets.render(`upstream.client_certificates.${id}.${name}`);
    if (rendered.ok) {
      parts.push(rendered.value);
      generation += `.${rendered.generation}`;
    } else if (rendered.whenKnown !== undefined) {
      return { ok: false, wait: rendered.whenKnown };
    } else if (name !== "passphrase" || secrets.has(`upstream.client_certificates.${id}.passphrase`)) {
      return { ok: false };
    }
  }
  const kept = KEPT.get(secrets) ?? new Map<string, Kept>();
  KEPT.set(secrets, kept);
  const known = kept.get(id);
  if (known?.generation === generation) return known.reading;
  const [cert = "", key = "", passphrase] = parts;
  const reading = checked({ cert, key, passphrase }, generation);
  kept.set(id, { generation, reading });
  return reading;
}

function checked(identity: ClientIdentity, generation: string): IdentityReading {
  try {
    const { cert, key, passphrase } = identity;
    const secret = createPrivateKey({ key, ...(passphrase === undefined ? {} : { passphrase }) });
    if (!new X509Certificate(cert).checkPrivateKey(secret)) return { ok: false };
    return { ok: true, identity, generation };
  } catch {
    return { ok: false };
  }
}
