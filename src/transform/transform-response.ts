/** Rewrites a response's head on its way back. Pure: a head in, a new head out. */

import { isConnectionSpecific, nominatedKeys } from "../base/hop-by-hop.ts";
import type { Field, FieldLines, ResponseHead } from "../model/exchange.ts";

/**
 * Drops the fields of the upstream's hop and those it nominates, and `Alt-Svc`, which would lead the
 * client past the gate. On a 101 the upgrade itself stays. Order, case and repetition are kept.
 */
export function transformResponse(head: ResponseHead): ResponseHead {
  const nominated = nominatedKeys(head.fields);
  const switches = head.status === 101;
  const fields: Field[] = [];
  for (const field of head.fields) {
    if (switches && field.key === "upgrade") fields.push(field);
    else if (!isDropped(field.key, nominated)) fields.push(field);
  }
  const { status, phrase, sensitive } = head;
  const rewritten = { status, phrase, minor: 1, fields } as const;
  return sensitive === undefined ? rewritten : { ...rewritten, sensitive };
}

export function transformResponseTrailers(trailers: FieldLines): FieldLines {
  return trailers.length === 0 ? trailers : trailers.filter(({ key }) => !isDropped(key, undefined));
}

function isDropped(key: string, nominated: ReadonlySet<string> | undefined): boolean {
  return isConnectionSpecific(key) || key === "alt-svc" || (nominated?.has(key) ?? false);
}
