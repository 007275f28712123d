/** Finds any of many needles in bytes, skipping most of them: Wu and Manber's search with blocks of two. Pure. */

/** Shorter ones are found in innocent words, and are no secrets worth the name. */
const MIN_NEEDLE = 8;

export interface Needles {
  /** Tells of each place in `bytes` where a needle stands whole, the longest that does, from left to right. */
  each(bytes: Uint8Array, found: (start: number, end: number) => void): void;
  /** Where the first needle begins that may go on after `bytes`; their length where none does. */
  unfinished(bytes: Uint8Array): number;
  /** How many bytes of the beginning of a part go on with a needle that began before it. */
  leading(part: Buffer): number;
  /** From where at the end of a part a needle begins that goes on after it; its length where none does. */
  trailing(part: Buffer): number;
  /** Of the longest needle. */
  readonly longest: number;
}

/** `needles` of `MIN_NEEDLE` bytes at least; others are left out. Undefined where none is left. */
export function compileNeedles(needles: readonly Buffer[]): Needles | undefined {
  const long = needles.filter(({ length }) => length >= MIN_NEEDLE).toSorted((a, b) => b.length - a.length);
  const [first] = long;
  if (first === undefined) return undefined;
  const shifts = shiftTable(long);
  const byEnd = groupBy(long, (needle) => blockAt(needle, MIN_NEEDLE - 2));
  const byStart = groupBy(long, (needle) => needle[0] as number);
  const starts = new Uint8Array(256);
  for (const byte of byStart.keys()) starts[byte] = 1;
  const longest = first.length;

  return {
    each(bytes, found) {
      for (let at = MIN_NEEDLE - 2; at + 1 < bytes.length; ) {
        const block = ((bytes[at] as number) << 8) | (bytes[at + 1] as number);
        const shift = shifts[block] as number;
        if (shift > 0) {
          at += shift;
          continue;
        }
        const start = at - MIN_NEEDLE + 2;
        const needle = byEnd
          .get(block)
          ?.find((candidate) => standsAt(candidate, bytes, start, candidate.length));
        if (needle !== undefined) found(start, start + needle.length);
        at += 1;
      }
    },
    unfinished(bytes) {
      for (let start = Math.max(0, bytes.length - longest + 1); start < bytes.length; start++) {
        const byte = bytes[start] as number;
        if (starts[byte] === 0) continue;
        const left = bytes.length - start;
        const begun = byStart
          .get(byte)
          ?.some((needle) => needle.length > left && standsAt(needle, bytes, start, left));
        if (begun === true) return start;
      }
      return bytes.length;
    },
    leading: (part) => Math.max(...long.map((needle) => goesOn(needle, part))),
    trailing: (part) => Math.min(...long.map((needle) => breaksOff(needle, part))),
    longest,
  };
}

/** How much of a needle tells it from a word where no more of it is there. */
function telling({ length }: Buffer): number {
  return Math.min(MIN_NEEDLE, Math.max(3, Math.ceil(length / 4)));
}

function goesOn(needle: Buffer, part: Buffer): number {
  const least = telling(needle);
  if (part.length < least) return 0;
  const begin = part.subarray(0, least);
  for (let at = needle.indexOf(begin, 1); at !== -1; at = needle.indexOf(begin, at + 1)) {
    const length = Math.min(needle.length - at, part.length);
    if (needle.compare(part, 0, length, at, at + length) === 0) return length;
  }
  return 0;
}

function breaksOff(needle: Buffer, part: Buffer): number {
  const begin = needle.subarray(0, telling(needle));
  const from = Math.max(0, part.length - needle.length + 1);
  for (let at = part.indexOf(begin, from); at !== -1; at = part.indexOf(begin, at + 1)) {
    if (needle.compare(part, at, part.length, 0, part.length - at) === 0) return at;
  }
  return part.length;
}

/** How far the window may move, by the two bytes at its end: 0 where a needle may end its first eight bytes there. */
function shiftTable(needles: readonly Buffer[]): Uint8Array {
  const shifts = new Uint8Array(65_536).fill(MIN_NEEDLE - 1);
  for (const needle of needles) {
    for (let at = 0; at <= MIN_NEEDLE - 2; at++) {
      const block = blockAt(needle, at);
      shifts[block] = Math.min(shifts[block] as number, MIN_NEEDLE - 2 - at);
    }
  }
  return shifts;
}

function blockAt(bytes: Uint8Array, at: number): number {
  return ((bytes[at] as number) << 8) | (bytes[at + 1] as number);
}

function groupBy(needles: readonly Buffer[], key: (needle: Buffer) => number): Map<number, Buffer[]> {
  return Map.groupBy(needles, key);
}

function standsAt(needle: Buffer, bytes: Uint8Array, start: number, length: number): boolean {
  if (start + length > bytes.length) return false;
  for (let index = 0; index < length; index++) {
    if (needle[index] !== bytes[start + index]) return false;
  }
  return true;
}
