/** Takes secrets, and their usual encodings, out of texts that are about to be printed. Pure. */

import { MIN_SECRET } from "./secret-field.ts";

export interface Redactor {
  /** What `owner` holds now; undefined: nothing. What it held before is remembered for ten minutes. */
  hold(owner: string, secret: string | undefined): void;
  /** Lets go of what no owner of this list holds. */
  keepOnly(owners: ReadonlySet<string>): void;
  redact(text: string): string;
  /** What these owners hold, and held in the last ten minutes. */
  recall(owners: ReadonlySet<string>): readonly string[];
}

const MEMORY = 600_000;
const MARK = "[redacted]";

/** Needles by their first characters. */
interface Index {
  readonly byStart: ReadonlyMap<string, readonly string[]>;
  /** Whether some needle begins with these two characters, by their low bytes. */
  readonly pairs: Uint8Array;
}

/** `now`: milliseconds, by any clock that does not go back. */
export function createRedactor(now: () => number): Redactor {
  const held = new Map<string, string>();
  const recent = new Map<string, { readonly until: number; readonly owners: Set<string> }>();
  let index: Index | undefined;

  function hold(owner: string, secret: string | undefined): void {
    const before = held.get(owner);
    if (before === secret) return;
    if (before !== undefined) {
      const owners = (recent.get(before)?.owners ?? new Set()).add(owner);
      recent.set(before, { until: now() + MEMORY, owners });
    }
    if (secret === undefined) held.delete(owner);
    else held.set(owner, secret);
    index = undefined;
  }

  function currentIndex(): Index {
    const time = now();
    for (const [secret, { until }] of recent) {
      if (until > time) continue;
      recent.delete(secret);
      index = undefined;
    }
    index ??= buildIndex(new Set([...held.values(), ...recent.keys()]));
    return index;
  }

  return {
    hold,
    keepOnly(owners) {
      for (const owner of [...held.keys()]) if (!owners.has(owner)) hold(owner, undefined);
    },
    recall(owners) {
      currentIndex();
      const secrets = new Set<string>();
      for (const [owner, secret] of held) if (owners.has(owner)) secrets.add(secret);
      for (const [secret, past] of recent) {
        if ([...past.owners].some((owner) => owners.has(owner))) secrets.add(secret);
      }
      return [...secrets];
    },
    redact: (text) => replaceAll(text, currentIndex()),
  };
}

function buildIndex(secrets: ReadonlySet<string>): Index {
  const byStart = new Map<string, string[]>();
  const pairs = new Uint8Array(65_536);
  const needles = new Set([...secrets].filter((secret) => secret.length >= MIN_SECRET).flatMap(encodings));
  // Longest first, so that the whole of what is found goes.
  for (const needle of [...needles].toSorted((a, b) => b.length - a.length)) {
    const start = needle.slice(0, MIN_SECRET);
    const bucket = byStart.get(start);
    if (bucket === undefined) byStart.set(start, [needle]);
    else bucket.push(needle);
    pairs[pairAt(needle, 0)] = 1;
  }
  return { byStart, pairs };
}

/** The secret as it stands, in JSON, in a URL, and inside base64 of either alphabet. */
function encodings(secret: string): readonly string[] {
  const base64 = [0, 1, 2].map((before) => base64Core(secret, before));
  const urlSafe = base64.map((text) => text.replaceAll("+", "-").replaceAll("/", "_"));
  return [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret), ...base64, ...urlSafe];
}

/**
 * The characters that stand for the secret alone in base64 of a text that has `before` bytes (modulo 3) in front of
 * it, as in `user:secret` of Basic authentication.
 */
function base64Core(secret: string, before: number): string {
  const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(secret, "latin1")]);
  const skipped = Math.ceil((before * 8) / 6);
  return bytes.toString("base64").slice(skipped, Math.floor((bytes.length * 8) / 6));
}

/** Time linear in the text however many secrets there are. */
function replaceAll(text: string, { byStart, pairs }: Index): string {
  if (byStart.size === 0) return text;
  let output = "";
  let copied = 0;
  let end = 0;
  for (let at = 0; at + MIN_SECRET <= text.length; at++) {
    if (pairs[pairAt(text, at)] === 0) continue;
    const needle = byStart
      .get(text.slice(at, at + MIN_SECRET))
      ?.find((candidate) => text.startsWith(candidate, at));
    if (needle === undefined) continue;
    // Two that overlap go as one.
    if (at >= end) output += text.slice(copied, at) + MARK;
    end = Math.max(end, at + needle.length);
    copied = end;
  }
  return copied === 0 ? text : output + text.slice(copied);
}

function pairAt(text: string, at: number): number {
  return ((text.charCodeAt(at) & 0xff) << 8) | (text.charCodeAt(at + 1) & 0xff);
}
