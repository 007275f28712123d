/** The `approvals` section: who may give their word for an exchange, and how long it waits for one. Pure. */
import type { ApprovalOptions, ApprovalWebhook, NetworkSource } from "../model/policy.ts";
import { present, readFlag, readMap } from "./expect.ts";
import { isOverheard, readHttpEndpoint } from "./http-endpoint.ts";
import { APPROVAL_KEYS, WEBHOOK_KEYS } from "./keys.ts";
import type { Report } from "./report.ts";
import type { Scope } from "./scope.ts";
import { readTemplate } from "./template.ts";
import type { Position, TreeNode } from "./tree.ts";
import { readDuration } from "./units.ts";

const TIMEOUT = { min: 1_000, max: 86_400_000 };
const DEFAULT_TIMEOUT = 300_000;
/** Long enough for one that answers once a person has. */
const WEBHOOK_TIMEOUT = { min: 100, max: 3_600_000 };
const DEFAULT_WEBHOOK_TIMEOUT = 10_000;
const SECRET_KEY = "approvals.webhook.secret";

/** `admin`: whether the admin listener has a token. */
export function readApprovals(scope: Scope, node: TreeNode | undefined, admin: boolean): ApprovalOptions {
  const { report } = scope;
  const fields = node && readMap(report, node, "`approvals`", APPROVAL_KEYS);
  const timeoutNode = fields?.get("timeout");
  const waitNode = fields?.get("wait");
  const webhookNode = present(fields?.get("webhook"));
  const timeout = timeoutNode && readDuration(report, timeoutNode, "`timeout`", TIMEOUT);
  const wait = waitNode && readFlag(report, waitNode, "`wait`");
  const webhook = webhookNode && readWebhook(scope, webhookNode);
  return {
    possible: admin || webhook !== undefined,
    timeout: timeout ?? DEFAULT_TIMEOUT,
    wait: wait ?? true,
    ...(webhook === undefined ? {} : { webhook }),
  };
}

/** An entry that waits for a word that nobody can give refuses. `at` is where the approvals stand. */
export function checkApprovers(
  report: Report,
  at: Position,
  networks: readonly NetworkSource[],
  { possible }: ApprovalOptions,
): void {
  const rules = networks.flatMap((network) => (network.kind === "disabled" ? [] : network.rules));
  if (possible || !rules.some(({ approve }) => approve)) return;
  report.warn(
    at,
    "Entries have `approve: true`, and nobody can: `listen.admin` has no `token`, and there is no webhook",
  );
}

function readWebhook(scope: Scope, node: TreeNode): ApprovalWebhook | undefined {
  const { report } = scope;
  const fields = readMap(report, node, "`webhook`", WEBHOOK_KEYS);
  if (fields === undefined) return undefined;
  const url = fields.get("url");
  if (url === undefined) report.error(fields.at, "`url` is missing here");
  const endpoint = url && readHttpEndpoint(report, url);
  if (url !== undefined && endpoint !== undefined && isOverheard(endpoint)) {
    // A hook can only narrow; whoever answers here opens what is shut.
    report.error(url.at, "A webhook gives approval, so off this machine its `url` must be `https://`");
  }
  const secretNode = fields.get("secret");
  const secret =
    secretNode && readTemplate(scope, secretNode, { what: "`secret`", key: SECRET_KEY, secret: true });
  const timeoutNode = fields.get("timeout");
  const timeout = timeoutNode && readDuration(report, timeoutNode, "`timeout`", WEBHOOK_TIMEOUT);
  if (endpoint === undefined) return undefined;
  return { endpoint, secret: secret && SECRET_KEY, timeout: timeout ?? DEFAULT_WEBHOOK_TIMEOUT };
}
