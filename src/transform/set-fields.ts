/** Sets or drops fields of a head that is ready to leave, as an operator's hook said. Pure. */
import type { Field, FieldLines, RequestHead } from "../model/exchange.ts";

export interface Setting {
  readonly field: string;
  /** Lower case. */
  readonly key: string;
  /** Undefined: the field is dropped. */
  readonly value: string | undefined;
}

/** The client's own lines of each field go, under either spelling; the value, where there is one, comes last. */
export function setFields(head: RequestHead, settings: readonly Setting[]): RequestHead {
  if (settings.length === 0) return head;
  const fields: Field[] = [...dropFields(head.fields, settings)];
  for (const { field, key, value } of settings) {
    if (value !== undefined) fields.push({ name: field, key, value });
  }
  return { ...head, fields };
}

/** The lines, which may be trailers, without any of those fields. */
export function dropFields(lines: FieldLines, settings: readonly Setting[]): FieldLines {
  if (settings.length === 0 || lines.length === 0) return lines;
  const keys = new Set(settings.map(({ key }) => plain(key)));
  return lines.filter(({ key }) => !keys.has(plain(key)));
}

/** CGI-like origins read `X_Trace` as `X-Trace`, so the alias counts as the field. */
function plain(key: string): string {
  return key.replaceAll("_", "-");
}
