/** TLS contexts of leaves, kept for each sandbox apart: no sandbox can evict, exhaust or resume another's. */
import { constants, createHmac } from "node:crypto";
import { createSecureContext, type SecureContext } from "node:tls";
import type { Limits } from "../model/limits.ts";
import type { Ca } from "./ca.ts";
import { createLeafKey, type LeafKey, leafExpiry, mintLeaf } from "./leaf.ts";

export interface LeafCache {
  /** `name`: canonical hostname or address text. Undefined: the sandbox has used up its minting budget. */
  contextFor(sandbox: string | undefined, name: string): SecureContext | undefined;
  /** Contexts held at this moment, of all sandboxes. */
  readonly entries: number;
  /** Forgets everything. */
  close(): void;
}

export interface LeafCacheOptions {
  readonly ca: Ca;
  /** Read at each use, so its properties may change. */
  readonly limits: Pick<Limits, "leaf_cache" | "leaf_mints_per_minute">;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** 32 random bytes, the same in all workers, so that a client may resume at any of them. Secret. */
  readonly ticketSecret: Uint8Array;
  readonly onEvent: (source: "minted" | "cached" | "refused") => void;
}

/** What one sandbox holds. */
interface Share {
  /** The least recently used first. */
  readonly leaves: Map<string, Leaf>;
  /** Leaves that it may still have minted; a fraction while it refills. */
  budget: number;
  refilledAt: number;
  usedAt: number;
}

interface Leaf {
  readonly context: SecureContext;
  readonly mintedAt: number;
  readonly renewAt: number;
}

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
/** A share that nobody used for so long belongs to a sandbox that is gone. */
const SHARE_IDLE = 60 * MINUTE;
/** 16 bytes of name, 16 of HMAC key, 16 of AES key: what `ticketKeys` asks for. */
const TICKET_KEYS_BYTES = 48;

export function createLeafCache(options: LeafCacheOptions): LeafCache {
  const { limits, now, onEvent } = options;
  const shares = new Map<string, Share>();
  const key = createLeafKey();
  return {
    contextFor(sandbox, name) {
      const at = now();
      const share = shareOf(shares, sandbox, { at, budget: limits.leaf_mints_per_minute });
      const kept = share.leaves.get(name);
      if (kept !== undefined && isFresh(kept, at)) {
        touch(share.leaves, name, kept);
        onEvent("cached");
        return kept.context;
      }
      if (!spend(share, at, limits.leaf_mints_per_minute)) {
        onEvent("refused");
        return undefined;
      }
      const leaf = mint(options, key, { sandbox, name, at });
      touch(share.leaves, name, leaf);
      evict(share.leaves, limits.leaf_cache);
      onEvent("minted");
      return leaf.context;
    },
    get entries() {
      let sum = 0;
      for (const share of shares.values()) sum += share.leaves.size;
      return sum;
    },
    close: () => shares.clear(),
  };
}

function mint(
  { ca, ticketSecret }: LeafCacheOptions,
  key: LeafKey,
  { sandbox, name, at }: { sandbox: string | undefined; name: string; at: number },
): Leaf {
  const context = createSecureContext({
    // The leaf alone: whoever trusts the authority has it (RFC 8446 section 4.4.2), and others must not verify.
    cert: mintLeaf(ca, name, new Date(at), key),
    key: key.privatePem,
    minVersion: "TLSv1.2",
    // A client may not ask for another name in the middle of a connection (CVE-2026-123872).
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    ticketKeys: deriveTicketKeys(ticketSecret, ca, sandbox, name),
  });
  const half = (leafExpiry(ca, at) - at) / 2;
  return { context, mintedAt: at, renewAt: at + Math.max(half, MINUTE) };
}

/** A ticket opens only where sandbox, name and authority are those that it was issued for. */
function deriveTicketKeys(secret: Uint8Array, ca: Ca, sandbox: string | undefined, name: string): Buffer {
  const scope = JSON.stringify(["ticket", ca.fingerprint, sandbox ?? null, name]);
  return createHmac("sha512", secret).update(scope).digest().subarray(0, TICKET_KEYS_BYTES);
}

/** A clock that was set back makes a leaf's start lie ahead. */
function isFresh(leaf: Leaf, at: number): boolean {
  return at < leaf.renewAt && at > leaf.mintedAt - DAY;
}

/** A bucket that holds a minute's worth and refills steadily. */
function spend(share: Share, at: number, perMinute: number): boolean {
  const elapsed = Math.max(0, at - share.refilledAt);
  share.budget = Math.min(perMinute, share.budget + (elapsed * perMinute) / MINUTE);
  share.refilledAt = at;
  if (share.budget < 1) return false;
  share.budget -= 1;
  return true;
}

function touch(leaves: Map<string, Leaf>, name: string, leaf: Leaf): void {
  leaves.delete(name);
  leaves.set(name, leaf);
}

function evict(leaves: Map<string, Leaf>, limit: number): void {
  for (const name of leaves.keys()) {
    if (leaves.size <= limit) return;
    leaves.delete(name);
  }
}

function shareOf(
  shares: Map<string, Share>,
  sandbox: string | undefined,
  start: { at: number; budget: number },
): Share {
  // No configured id is empty, so the top-level network has that key for itself.
  const id = sandbox ?? "";
  let share = shares.get(id);
  if (share === undefined) {
    for (const [other, { usedAt }] of shares) if (start.at - usedAt > SHARE_IDLE) shares.delete(other);
    share = { leaves: new Map(), budget: start.budget, refilledAt: start.at, usedAt: start.at };
    shares.set(id, share);
  }
  share.usedAt = start.at;
  return share;
}
