/** The ranges of a sandbox as nft takes them. Pure. */
import { formatRange, rangesOverlap } from "../base/ip.ts";
import type { AddressRange, SandboxSource } from "../model/policy.ts";

/** The addresses that everybody has, or has before it has any (RFC 4861 section 4.3). */
export const OWN_LINK = ["fe80::/10", "::"];

/** Without those that lie within another: the kernel wants each address once. */
export function rangesOf({ source }: SandboxSource, family: 4 | 6): readonly string[] {
  const ranges = source.filter(({ base }) => base.family === family);
  const outer = ranges.filter(
    (range, at) => !ranges.some((other, place) => place !== at && holds(other, range, place < at)),
  );
  return outer.map(formatRange);
}

/** Of two that are the same, the first holds the second. */
function holds(outer: AddressRange, inner: AddressRange, first: boolean): boolean {
  const wider = outer.prefixBits < inner.prefixBits || (first && outer.prefixBits === inner.prefixBits);
  return wider && rangesOverlap(outer, inner);
}
