/** Tells the operator's webhook of an exchange that waits for a word, and takes its word where it gives one. */
import { postJson } from "./errand.ts";
import { describePending, readWebhookAnswer, signatureFields } from "./hooks/approval-webhook.ts";
import type { PendingApproval } from "./hooks/approvals.ts";
import { asFailure } from "./model/failure.ts";
import type { ApprovalWebhook } from "./model/policy.ts";
import type { InForce, World } from "./world.ts";

/**
 * Never rejects. Whatever goes wrong is told to the operator and leaves the exchange waiting, for another way to give
 * a word or for its timeout. `over` is aborted once it no longer waits.
 */
export async function tellWebhook(
  pending: PendingApproval,
  over: AbortSignal,
  { force, world }: { readonly force: InForce; readonly world: World },
): Promise<void> {
  const { webhook } = force.approvals;
  if (webhook === undefined) return;
  const body = describePending(pending);
  const fields = fieldsFor(webhook, body, force);
  if (fields === undefined) {
    world.webhookFailed("Its secret cannot be had, so it was not asked");
    return;
  }
  const late = AbortSignal.timeout(webhook.timeout);
  const signal = AbortSignal.any([over, late]);
  try {
    const { status, text } = await postJson({ endpoint: webhook.endpoint, body, fields }, signal, {
      force,
      world,
    });
    const answer = readWebhookAnswer(status, text);
    if (answer.kind === "word") world.approvals.hear(pending.id, answer.resolution);
    if (answer.kind === "nonsense")
      world.webhookFailed(`It gave no word that can be read (status ${status})`);
  } catch (error) {
    // Somebody else gave the word, or nobody waits: nothing failed.
    if (over.aborted) return;
    world.webhookFailed(late.aborted ? "It did not answer in time" : asFailure(error).message);
  }
}

/** Undefined where the request cannot be signed as the config wants it. */
function fieldsFor(
  { secret }: ApprovalWebhook,
  body: string,
  { secrets }: InForce,
): ReturnType<typeof signatureFields> | undefined {
  if (secret === undefined) return [];
  const rendered = secrets.render(secret);
  return rendered.ok ? signatureFields(body, rendered.value, Date.now()) : undefined;
}
