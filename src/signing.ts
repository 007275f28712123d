/** Signs an exchange that is ready to leave: its body held where it is signed, its head as it will be on the wire. */
import { type Held, holdBody } from "./accept/held-body.ts";
import { type Denial, deny, type Permit } from "./model/decision.ts";
import type { RequestHead } from "./model/exchange.ts";
import type { Inbound } from "./model/inbound.ts";
import type { Limits } from "./model/limits.ts";
import type { SigningSource } from "./model/signing.ts";
import type { Secrets } from "./secrets/secrets.ts";
import type { SigningKeys } from "./secrets/sigv4.ts";
import { claimedHash, MINTING, signableOf, TRAILING, withSignature } from "./transform/signable.ts";

const UNSIGNED = "UNSIGNED-PAYLOAD";
/** A pair of a form that asks for credentials, each letter of it percent-encoded or not: one pass over the body. */
const MINTS = new RegExp(`(?:^|&)${escapable("Action")}=(?:${MINTING.map(escapable).join("|")})`);

export function signingOf({ injections }: Permit): SigningSource | undefined {
  return injections.find(({ signing }) => signing !== undefined)?.signing;
}

/** Whether the body is part of what is signed, and still on its way. */
export function needsBody(signing: SigningSource, { framing }: Inbound, held: Buffer | undefined): boolean {
  return held === undefined && !signing.unsignedPayload && framing.kind !== "none";
}

/** `take`: whether so many bytes more may be kept. */
export async function hold(
  inbound: Inbound,
  expectContinue: boolean,
  limits: Limits,
  take: (bytes: number) => boolean,
): Promise<Held> {
  const { signed_body_bytes: max, progress_timeout: timeout } = limits;
  if (inbound.framing.kind === "length" && inbound.framing.length > max) return { kind: "over" };
  return holdBody(inbound, { max, take, timeout, expectContinue });
}

/** The head with its signature, or why there is none. */
export async function sign(
  head: RequestHead,
  {
    permit,
    signing,
    body,
  }: { readonly permit: Permit; readonly signing: SigningSource; readonly body: Buffer | undefined },
  secrets: Secrets,
): Promise<RequestHead | Denial> {
  const signable = signableOf(head, signing);
  if (signable.problem !== undefined) return refused(permit, signable.problem);
  const keys = keysOf(signing, secrets);
  if (keys === undefined) return deny("secret-unavailable", permit.rule);
  const { payloadHash, signSigV4 } = await import("./secrets/sigv4.ts");
  const trailing = claimedHash(head) === TRAILING;
  const unsigned = trailing ? TRAILING : UNSIGNED;
  const hash = signing.unsignedPayload ? unsigned : payloadHash(body ?? Buffer.alloc(0));
  return withSignature(head, await signSigV4({ ...signable.parts, payloadHash: hash }, keys, signing));
}

/** A form can ask for a session as a query can. */
export function refuseBody(permit: Permit, body: Buffer): Denial | undefined {
  const asks = MINTS.test(body.toString("latin1"));
  return asks ? refused(permit, "Credentials cannot be used to get others") : undefined;
}

/** The pattern of a word of ASCII letters, however its letters are written. */
function escapable(word: string): string {
  return word.replace(/[A-Za-z]/g, (letter) => {
    const [high = "", low = ""] = letter.charCodeAt(0).toString(16);
    return `(?:${letter}|%${high}[${low}${low.toUpperCase()}])`;
  });
}

function refused({ rule }: Permit, detail: string): Denial {
  return { ...deny("rule-denies", rule), detail };
}

function keysOf(signing: SigningSource, secrets: Secrets): SigningKeys | undefined {
  const id = secrets.render(signing.accessKeyId);
  const secret = secrets.render(signing.secretAccessKey);
  const session = signing.sessionToken === undefined ? undefined : secrets.render(signing.sessionToken);
  if (!id.ok || !secret.ok || session?.ok === false) return undefined;
  return { accessKeyId: id.value, secretAccessKey: secret.value, sessionToken: session?.value };
}
