/** The `limits` section: each limit's unit and bounds. Pure. */
import { DEFAULT_LIMITS, type Limits } from "../model/limits.ts";
import { type Bounds, readInteger, readMap } from "./expect.ts";
import { LIMIT_KEYS } from "./keys.ts";
import type { Report } from "./report.ts";
import type { TreeNode } from "./tree.ts";
import { readDuration, readSize } from "./units.ts";

export interface LimitRule extends Bounds {
  readonly unit: "time" | "size" | "count";
}

const SECOND = 1_000;
const HOUR = 3_600_000;
const DAY = 86_400_000;
const KIB = 1_024;
const MIB = 1_048_576;

/** Times in milliseconds, sizes in bytes. The bounds keep typing errors out; they are no advice. */
export const LIMIT_RULES: Readonly<Record<keyof Limits, LimitRule>> = {
  head_bytes: { unit: "size", min: KIB, max: MIB },
  head_fields: { unit: "count", min: 16, max: 10_000 },
  target_bytes: { unit: "size", min: 256, max: MIB },
  chunk_extension_bytes: { unit: "size", min: 0, max: MIB },
  trailer_bytes: { unit: "size", min: 0, max: MIB },
  hello_bytes: { unit: "size", min: 2 * KIB, max: MIB },
  interim_responses: { unit: "count", min: 0, max: 1_000 },
  head_timeout: { unit: "time", min: 10, max: HOUR },
  handshake_timeout: { unit: "time", min: 10, max: HOUR },
  connect_timeout: { unit: "time", min: 10, max: HOUR },
  response_timeout: { unit: "time", min: 10, max: DAY },
  progress_timeout: { unit: "time", min: 10, max: DAY },
  idle_timeout: { unit: "time", min: 10, max: DAY },
  pool_idle_timeout: { unit: "time", min: 10, max: DAY },
  tunnel_idle_timeout: { unit: "time", min: 10, max: 7 * DAY },
  tunnel_lifetime: { unit: "time", min: 0, max: 365 * DAY },
  drain_timeout: { unit: "time", min: 0, max: DAY },
  connections: { unit: "count", min: 1, max: 1_000_000 },
  connections_per_sandbox: { unit: "count", min: 1, max: 1_000_000 },
  pool_connections: { unit: "count", min: 0, max: 10_000 },
  pool_connections_per_sandbox: { unit: "count", min: 1, max: 1_000_000 },
  pool_connections_total: { unit: "count", min: 1, max: 1_000_000 },
  leaf_cache: { unit: "count", min: 1, max: 100_000 },
  leaf_mints_per_minute: { unit: "count", min: 1, max: 1_000_000 },
  h2_streams: { unit: "count", min: 1, max: 10_000 },
  h2_streams_per_sandbox: { unit: "count", min: 1, max: 1_000_000 },
  h2_resets_per_minute: { unit: "count", min: 1, max: 1_000_000 },
  h2_control_frames_per_minute: { unit: "count", min: 10, max: 10_000_000 },
  h2_bad_frames: { unit: "count", min: 1, max: 1_000_000 },
  h2_client_window: { unit: "size", min: 65_535, max: 64 * MIB },
  h2_upstream_window: { unit: "size", min: 65_535, max: 64 * MIB },
  h2_session_bytes: { unit: "size", min: MIB, max: 1_024 * MIB },
  alpn_timeout: { unit: "time", min: 10, max: HOUR },
  alpn_ttl: { unit: "time", min: 0, max: DAY },
  secret_timeout: { unit: "time", min: 10, max: HOUR },
  signed_body_bytes: { unit: "size", min: 0, max: 1_024 * MIB },
  signed_bytes_per_sandbox: { unit: "size", min: 0, max: 65_536 * MIB },
  decoding_bytes_per_sandbox: { unit: "size", min: 0, max: 65_536 * MIB },
  secret_ttl: { unit: "time", min: 1_000, max: DAY },
  dns_min_ttl: { unit: "time", min: 0, max: HOUR },
  dns_max_ttl: { unit: "time", min: SECOND, max: DAY },
  dns_addresses: { unit: "count", min: 1, max: 1_000 },
  dns_queries_per_second: { unit: "count", min: 1, max: 1_000_000 },
  dns_names: { unit: "count", min: 16, max: 130_816 },
  record_buffer_bytes: { unit: "size", min: KIB, max: 1_024 * MIB },
};

export function readLimits(report: Report, node: TreeNode | undefined): Limits {
  const fields = node === undefined ? undefined : readMap(report, node, "`limits`", LIMIT_KEYS);
  if (fields === undefined) return DEFAULT_LIMITS;
  const limits: { -readonly [K in keyof Limits]: Limits[K] } = { ...DEFAULT_LIMITS };
  for (const key of LIMIT_KEYS) {
    const value = fields.get(key);
    if (value !== undefined) limits[key] = readLimit(report, value, key) ?? limits[key];
  }
  if (limits.dns_min_ttl > limits.dns_max_ttl) {
    const key = fields.has("dns_min_ttl") ? "dns_min_ttl" : "dns_max_ttl";
    report.error(fields.keyAt(key), "`dns_min_ttl` is greater than `dns_max_ttl`");
  }
  if (limits.connections_per_sandbox > limits.connections && fields.has("connections_per_sandbox")) {
    report.warn(
      fields.keyAt("connections_per_sandbox"),
      "`connections_per_sandbox` is greater than `connections`",
    );
  }
  return limits;
}

function readLimit(report: Report, node: TreeNode, key: keyof Limits): number | undefined {
  const rule = LIMIT_RULES[key];
  switch (rule.unit) {
    case "time":
      return readDuration(report, node, `\`${key}\``, rule);
    case "size":
      return readSize(report, node, `\`${key}\``, rule);
    case "count":
      return readInteger(report, node, `\`${key}\``, rule);
  }
}
