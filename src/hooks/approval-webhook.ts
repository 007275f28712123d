/** What a webhook is told of an exchange that waits for a word, how it is signed, and how its answer is read. Pure. */
import { createHmac } from "node:crypto";
import type { PendingApproval, Resolution } from "./approvals.ts";
import { isObject } from "./jcs.ts";
import { readScope } from "./resolution.ts";

/** `pending`: no word yet, and nothing wrong with that; `nonsense`: nothing that can be read as a word. */
export type WebhookAnswer =
  | { readonly kind: "word"; readonly resolution: Resolution }
  | { readonly kind: "pending" }
  | { readonly kind: "nonsense" };

const DECISIONS = new Map<unknown, boolean>([
  ["approve", true],
  ["deny", false],
]);

/** One JSON object: no query, no field and no secret of the exchange is in it. */
export function describePending(pending: PendingApproval): string {
  const { id, sandbox, rule, host, port, method, path, why, since, until, waits } = pending;
  return JSON.stringify({
    type: "approval_requested",
    id,
    sandbox: sandbox ?? null,
    rule: rule ?? null,
    method,
    host,
    port,
    path,
    why: why ?? null,
    since: new Date(since).toISOString(),
    until: new Date(until).toISOString(),
    waits,
  });
}

/** Proves who wrote the body, and when: HMAC-SHA-256 with the secret over the time, a dot and the body. */
export function signatureFields(
  body: string,
  secret: string,
  now: number,
): readonly (readonly [name: string, value: string])[] {
  const time = String(Math.floor(now / 1_000));
  const digest = createHmac("sha256", secret).update(`${time}.${body}`).digest("hex");
  return [
    ["X-Sallyport-Timestamp", time],
    ["X-Sallyport-Signature", `sha256=${digest}`],
  ];
}

/** A word that was not understood approves nothing. 202 and 204 say that it comes later, by way of the admin page. */
export function readWebhookAnswer(status: number, text: string): WebhookAnswer {
  if (status === 202 || status === 204) return { kind: "pending" };
  if (status < 200 || status > 299) return { kind: "nonsense" };
  return text.trim() === "" ? { kind: "pending" } : readWord(parse(text));
}

function readWord(value: unknown): WebhookAnswer {
  if (!isObject(value) || Object.keys(value).some((key) => !["decision", "by", "scope"].includes(key))) {
    return { kind: "nonsense" };
  }
  if (value["decision"] === "pending") return { kind: "pending" };
  const approve = DECISIONS.get(value["decision"]);
  const scope = readScope(value["scope"] ?? "once");
  const by = value["by"] ?? "webhook";
  const named = typeof by === "string" && /^[ -~]{1,100}$/.test(by);
  if (approve === undefined || scope === undefined || !named) return { kind: "nonsense" };
  return { kind: "word", resolution: { approve, by, scope } };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
