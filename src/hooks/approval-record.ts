/** One line of records for each word that a person gave: what it was for, by whom, and for how long. Pure. */
import type { PendingApproval, Resolution } from "./approvals.ts";

/** One line of JSON, its end included: ASCII, whatever a client or a person wrote. `time` in milliseconds since the epoch. */
export function renderApproval(pending: PendingApproval, resolution: Resolution, time: number): string {
  const { id, sandbox, rule, host, port, method, path, why } = pending;
  const { approve, by, scope } = resolution;
  const line = {
    time: new Date(time).toISOString(),
    approval: approve ? "approved" : "rejected",
    id,
    by,
    scope: scope.kind === "time" ? `${scope.ms / 60_000}m` : scope.kind,
    sandbox: sandbox ?? null,
    rule: rule ?? null,
    host,
    port,
    method,
    path: path?.slice(0, 1_024) ?? null,
    why: why?.slice(0, 1_024) ?? null,
  };
  return `${JSON.stringify(line).replace(/[\x7f-\uffff]/g, escapeUnit)}\n`;
}

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
