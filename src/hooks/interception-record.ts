/** What is kept of one emission: who said what, and of which context, without anything that stood in it (AGENT-HOOKS-0.1 section 10.3). Pure. */
import type { Composed, Composition, Emission } from "./emission.ts";
import type { Json, JsonObject } from "./jcs.ts";
import { projectVerdict } from "./verdict.ts";

export function emissionRecord(
  { context, mode, composition, interceptors }: Emission,
  { verdict, decidedBy, said, resolvedBy }: Composed,
  inputIdentity: string | null,
  enforcedIdentity: string | null,
): JsonObject {
  const { timestamp } = context;
  return {
    interception_point: text(context["interception_point"]),
    mode,
    verdict: projectVerdict(verdict),
    input_identity: inputIdentity,
    enforced_identity: enforcedIdentity,
    identity_provider: "jcs-sha256",
    session_id: text(member(context["session"], "id")),
    sequence: typeof context["sequence"] === "number" ? context["sequence"] : -1,
    ...(typeof timestamp === "string" ? { timestamp } : {}),
    decided_by: decidedBy,
    composition: resolved(composition),
    verdicts: said.map((one, index) => {
      const { decision, reason } = one;
      const name = interceptors[index]?.name ?? "";
      return { index, decision, ...(reason === undefined ? {} : { reason }), name };
    }),
    fold_truncated: said.length < interceptors.length,
    ...(resolvedBy === undefined ? {} : { resolved_by: resolvedBy }),
    interceptors_registered: interceptors.length,
  };
}

/** The knobs that the profile consults, and no others. */
function resolved({ profile, onApproval, onTransformConflict, onDisagreement }: Composition): JsonObject {
  switch (profile) {
    case "sequential/first_deny":
      return { profile, on_approval: onApproval };
    case "sequential/run_all":
      return { profile };
    case "parallel/strictest":
      return { profile, on_transform_conflict: onTransformConflict };
    case "parallel/unanimous":
      return { profile, on_disagreement: onDisagreement };
  }
}

function member(value: Json | undefined, key: string): Json | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as JsonObject)[key]
    : undefined;
}

function text(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}
