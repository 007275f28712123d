/** Collects everything that is wrong with one config text, and words it. Pure. */
import type { Problem } from "../model/config.ts";
import type { Position } from "./tree.ts";

/** More help nobody, and a file of 1 MiB can hold a hundred thousand. */
const MAX_PROBLEMS = 200;
const MAX_QUOTED = 60;

/** Where a text as a whole is complained of. */
export const START: Position = { line: 1, column: 1 };

export class Report {
  private readonly file: string;
  private readonly collected: Problem[] = [];
  private errors = 0;
  private dropped = 0;

  constructor(file: string) {
    this.file = file;
  }

  get failed(): boolean {
    return this.errors > 0;
  }

  error(at: Position, message: string): void {
    this.errors++;
    this.add("error", at, message);
  }

  warn(at: Position, message: string): void {
    this.add("warning", at, message);
  }

  /** In the order of the file. */
  problems(): readonly Problem[] {
    const sorted = this.collected.toSorted((a, b) => a.line - b.line || a.column - b.column);
    if (this.dropped === 0) return sorted;
    const last = sorted.at(-1) as Problem;
    return [...sorted, { ...last, message: `${this.dropped} more problems are not shown` }];
  }

  /** An error that comes after many warnings still has a place. */
  private add(severity: Problem["severity"], at: Position, message: string): void {
    const room = severity === "error" ? 2 * MAX_PROBLEMS : MAX_PROBLEMS;
    if (this.collected.length >= room) this.dropped++;
    else this.collected.push({ severity, file: this.file, line: at.line, column: at.column, message });
  }
}

/** A name in backticks, cut and with everything but printable ASCII escaped. For keys and names, never for values. */
export function quoteName(text: string): string {
  const cut = text.length > MAX_QUOTED ? `${text.slice(0, MAX_QUOTED)}…` : text;
  // A backtick would end the quotation.
  return `\`${cut.replace(/[^\x20-\x5f\x61-\x7e…]/g, escapeCharacter)}\``;
}

/** The candidate that `word` was most likely meant to be; undefined where none is near. */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  if (word.length > MAX_QUOTED) return undefined;
  const limit = Math.max(1, Math.floor(word.length / 3));
  const plain = simplify(word);
  let best: { candidate: string; distance: number } | undefined;
  for (const candidate of candidates) {
    const distance = editDistance(plain, simplify(candidate));
    if (distance <= limit && distance < (best?.distance ?? Number.POSITIVE_INFINITY)) {
      best = { candidate, distance };
    }
  }
  return best?.candidate;
}

/** `allow_list`, `allowList` and `allow-list` are all one typing error away from `allowlist`. */
function simplify(word: string): string {
  return word.toLowerCase().replace(/[_-]/g, "");
}

/** Insertions, deletions, substitutions and swaps of neighbours (optimal string alignment). */
function editDistance(a: string, b: string): number {
  let beforeLast: readonly number[] = [];
  let last: readonly number[] = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1;
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swap = swapped ? at(beforeLast, j - 2) + 1 : Number.POSITIVE_INFINITY;
      row.push(Math.min(at(row, j - 1) + 1, at(last, j) + 1, at(last, j - 1) + cost, swap));
    }
    beforeLast = last;
    last = row;
  }
  return at(last, b.length);
}

function at(row: readonly number[], index: number): number {
  return row[index] as number;
}

function escapeCharacter(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
