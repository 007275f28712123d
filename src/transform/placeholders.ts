/** Finds placeholders of credentials in a request, and puts the secret where it may stand. Pure: texts in, texts out. */
import type { PlaceholderLocation } from "../model/credential.ts";
import type { Reason } from "../model/decision.ts";
import type { Field, RequestHead } from "../model/exchange.ts";

/** What a placeholder becomes in one place, or why the request is refused. */
export type SwapValue =
  | { readonly ok: true; readonly value: string }
  | { readonly ok: false; readonly reason: Reason };

export interface Swaps {
  /** Every placeholder that there is, whoever may send it. */
  readonly needles: readonly string[];
  /** `field` in lower case, where the place is a header. */
  value(needle: string, location: PlaceholderLocation, field?: string): SwapValue;
}

export type SwappedHead =
  | {
      readonly ok: true;
      readonly head: RequestHead;
      /** Names of the fields that hold a secret now, as received. */
      readonly fields: readonly string[];
    }
  | { readonly ok: false; readonly reason: Reason };

/** How a body writes a text: it decides how the secret is written in it. */
export type BodyForm = "raw" | "json" | "form";

class Refusal extends Error {
  readonly reason: Reason;

  constructor(reason: Reason) {
    super(reason);
    this.reason = reason;
  }
}

/** `skipped`: keys of fields that do not leave, because the gate sets them itself. */
export function swapHead(head: RequestHead, swaps: Swaps, skipped: ReadonlySet<string>): SwappedHead {
  try {
    return swapped(head, swaps, skipped);
  } catch (error) {
    if (error instanceof Refusal) return { ok: false, reason: error.reason };
    throw error;
  }
}

function swapped(head: RequestHead, swaps: Swaps, skipped: ReadonlySet<string>): SwappedHead {
  const pattern = patternOf(swaps.needles);
  const touched: Field[] = [];
  const fields = head.fields.map((field) => {
    if (skipped.has(field.key)) return field;
    if (holds(field.name, swaps.needles)) throw new Refusal("placeholder-misplaced");
    const value = swapField(field, swaps, pattern);
    if (value === field.value) return field;
    touched.push(field);
    return { ...field, value };
  });
  const target = swapTarget(head.target, swaps, pattern);
  if (holds(head.method, swaps.needles)) throw new Refusal("placeholder-misplaced");
  if (touched.length === 0 && target === head.target) return { ok: true, head, fields: [] };
  const keys = touched.map(({ key }) => key);
  const marked = target === head.target ? keys : [...keys, ":path"];
  const { sensitive } = head;
  const marks = sensitive === undefined ? {} : { sensitive: [...sensitive, ...marked] };
  return { ok: true, head: { ...head, target, fields, ...marks }, fields: touched.map(({ name }) => name) };
}

function swapField({ key, value }: Field, swaps: Swaps, pattern: RegExp): string {
  const plain = replace(value, pattern, (needle) => swaps.value(needle, "header", key));
  // RFC 7617: a user and a password, and one of them may be a placeholder.
  const basic = /^(basic +)([A-Za-z0-9+/]+=*) *$/i.exec(plain);
  const inside = basic === null ? "" : Buffer.from(basic[2] as string, "base64").toString("latin1");
  const after = replace(inside, pattern, (needle) => swaps.value(needle, "header", key));
  if (after !== inside) return `${basic?.[1]}${Buffer.from(after, "latin1").toString("base64")}`;
  if (plain === value && escapedHolds(value, swaps.needles)) throw new Refusal("placeholder-misplaced");
  return plain;
}

/** Percent-encoded in the query; in the path a placeholder never stands right, nor where it is escaped itself. */
function swapTarget(target: string, swaps: Swaps, pattern: RegExp): string {
  const mark = target.indexOf("?");
  const path = mark === -1 ? target : target.slice(0, mark);
  const query = mark === -1 ? "" : target.slice(mark);
  if (holds(path, swaps.needles) || escapedHolds(path, swaps.needles)) {
    throw new Refusal("placeholder-misplaced");
  }
  const rest = query.split(pattern).join("");
  if (escapedHolds(rest, swaps.needles)) throw new Refusal("placeholder-misplaced");
  return path + replace(query, pattern, (needle) => encoded(swaps.value(needle, "query")));
}

/** Whether one of them stands in the text, in any case of letters: HTTP/2 has lower case alone. */
export function holds(text: string, needles: readonly string[]): boolean {
  const lower = text.toLowerCase();
  return needles.some((needle) => lower.includes(needle.toLowerCase()));
}

function escapedHolds(text: string, needles: readonly string[]): boolean {
  if (!text.includes("%")) return false;
  const decoded = text.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return holds(decoded, needles);
}

function replace(text: string, pattern: RegExp, swapFor: (needle: string) => SwapValue): string {
  return text.replace(pattern, (needle) => {
    const swap = swapFor(needle);
    if (!swap.ok) throw new Refusal(swap.reason);
    return swap.value;
  });
}

function encoded(swap: SwapValue): SwapValue {
  return swap.ok ? { ok: true, value: formText(swap.value) } : swap;
}

/** Everything but unreserved characters is escaped. */
function formText(latin1: string): string {
  return latin1.replace(
    /[^A-Za-z0-9._~-]/g,
    (one) => `%${one.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`,
  );
}

/** The longest first: an id may begin like another. */
function patternOf(needles: readonly string[]): RegExp {
  const sorted = [...needles].sort((a, b) => b.length - a.length);
  return new RegExp(sorted.map((needle) => needle.replace(/[^A-Za-z0-9_]/g, "\\$&")).join("|"), "g");
}

/** One body, piece by piece; `write` and `end` give what may leave, or the reason why nothing more does. */
export class BodySwap {
  readonly #swaps: Swaps;
  readonly #pattern: RegExp;
  readonly #form: BodyForm;
  /** What may yet turn out to be the beginning of a placeholder. */
  #held = "";

  constructor(swaps: Swaps, form: BodyForm) {
    this.#swaps = swaps;
    this.#pattern = patternOf(swaps.needles);
    this.#form = form;
  }

  write(bytes: Buffer): Buffer | Reason {
    const text = this.#held + bytes.toString("latin1");
    const from = openEnd(text, this.#swaps.needles, this.#pattern);
    this.#held = text.slice(from);
    return this.#swap(text.slice(0, from));
  }

  end(): Buffer | Reason {
    return this.#swap(this.#held);
  }

  #swap(text: string): Buffer | Reason {
    try {
      const made = replace(text, this.#pattern, (needle) => {
        const swap = this.#swaps.value(needle, "body");
        return swap.ok ? { ok: true, value: written(swap.value, this.#form) } : swap;
      });
      return Buffer.from(made, "latin1");
    } catch (error) {
      if (error instanceof Refusal) return error.reason;
      throw error;
    }
  }
}

function written(value: string, form: BodyForm): string {
  if (form === "form") return formText(value);
  return form === "json" ? JSON.stringify(value).slice(1, -1) : value;
}

/** Where an end begins that more bytes could make a placeholder of, or a longer one. */
function openEnd(text: string, needles: readonly string[], pattern: RegExp): number {
  const longest = Math.max(...needles.map(({ length }) => length));
  const whole = [...text.matchAll(pattern)].map(
    ({ index, 0: found }) => [index, index + found.length] as const,
  );
  for (let from = Math.max(0, text.length - longest + 1); from < text.length; from += 1) {
    // What begins inside one that is whole is no beginning of its own.
    if (whole.some(([start, end]) => start < from && from < end)) continue;
    const end = text.slice(from);
    if (needles.some((needle) => needle.length > end.length && needle.startsWith(end))) return from;
  }
  return text.length;
}
