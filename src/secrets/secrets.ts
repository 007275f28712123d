/** Values behind `${env:…}` and `${file:…}`: rendered when asked for, checked each time, never printed. */
import type { Template } from "../model/config.ts";
import { MAX_VALUE } from "./field-value.ts";
import { createRedactor, type Redactor } from "./redactor.ts";
import { hasNoLongWord, keyNamesSecret, MIN_SECRET } from "./secret-field.ts";
import type { Reading } from "./secret-file.ts";
import { openSources, type Source, type Supply } from "./sources.ts";

export interface Secrets {
  /** The value of one template, a second old at most. */
  render(key: string): Rendering;
  /** Whether a template stands at this key, whatever it holds. */
  has(key: string): boolean;
  /** What cannot be rendered now, and why. */
  unavailable(): readonly { readonly key: string; readonly problem: string }[];
  /** Keys of secrets under eight bytes, which are found in innocent words and so are masked nowhere. */
  short(): readonly string[];
  /** `text` without any secret of eight or more characters that is, or in the last ten minutes was, in use. */
  redact(text: string): string;
  /** Keeps what `owner` holds out of all that is printed; before that, what it held. */
  hold(owner: string, secret: string): void;
  /** What is behind these templates, now and in the last ten minutes: for whoever searches answers for it. */
  needles(keys: readonly string[]): readonly string[];
}

/** `problem` names the variable or file and what is wrong with its value, which it never quotes. */
export type Rendering =
  /** `generation` rises whenever the value has changed. */
  | { readonly ok: true; readonly value: string; readonly generation: number }
  | Extract<Reading, { ok: false }>;

export interface SecretSources {
  /** Read once, here. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Milliseconds, by any clock that does not go back. */
  now(): number;
  /** What takes a while to be had; absent where nothing is to be asked for (`check`, `explain`, the supervisor). */
  readonly supply?: Supply | undefined;
  /** The secrets of the policy before this one, which exchanges under way may still use: they stay redacted. */
  readonly previous?: Secrets | undefined;
}

interface Entry {
  readonly sources: readonly Source[];
  /** What the rendering was made of. */
  parts: readonly Reading[];
  rendering: Rendering;
  /** The last value that was rendered well; undefined before the first. */
  value: string | undefined;
  generation: number;
}

const REDACTORS = new WeakMap<Secrets, Redactor>();

/** A source that is missing or bad makes its own templates unavailable and no others. Never throws. */
export function createSecrets(templates: ReadonlyMap<string, Template>, sources: SecretSources): Secrets {
  const { previous } = sources;
  const redactor = (previous && REDACTORS.get(previous)) ?? createRedactor(() => sources.now());
  const open = openSources(sources, redactor);
  const entries = new Map(
    [...templates].map(([key, template]) => [key, newEntry(template.map((part) => open.source(part, key)))]),
  );
  open.nested = (key) => refresh(entries.get(key) ?? newEntry([]));
  redactor.keepOnly(open.owners);
  const secrets: Secrets = {
    render(key) {
      const entry = entries.get(key);
      return entry === undefined ? { ok: false, problem: `No secret stands at \`${key}\`` } : refresh(entry);
    },
    has: (key) => entries.has(key),
    unavailable() {
      return [...entries].flatMap(([key, entry]) => {
        const rendering = refresh(entry);
        return rendering.ok || rendering.untried === true ? [] : [{ key, problem: rendering.problem }];
      });
    },
    short() {
      return [...entries].flatMap(([key, entry]) => {
        refresh(entry);
        return isShort(key, templates.get(key) ?? [], entry.parts) ? [key] : [];
      });
    },
    redact: (text) => redactor.redact(text),
    hold: (owner, secret) => redactor.hold(owner, secret),
    needles: (keys) => redactor.recall(new Set(keys.flatMap((key) => [...(open.behind.get(key) ?? [])]))),
  };
  REDACTORS.set(secrets, redactor);
  // Read from the start, so that a secret is redacted before it is first used.
  secrets.unavailable();
  return secrets;
}

function newEntry(sources: readonly Source[]): Entry {
  return { sources, parts: [], rendering: { ok: false, problem: "" }, value: undefined, generation: 0 };
}

/** A part that came from outside, or a value that is written out whole under the name of a secret. */
function isShort(key: string, template: Template, parts: readonly Reading[]): boolean {
  const name = key.slice(key.lastIndexOf(".") + 1);
  if (/^user/.test(name)) return false;
  return template.some((part, at) => {
    const reading = parts[at];
    if (reading?.ok !== true || part.kind === "basic") return false;
    if (part.kind !== "literal") return reading.value.length < MIN_SECRET;
    return template.length === 1 && keyNamesSecret(key) && hasNoLongWord(part.text);
  });
}

function refresh(entry: Entry): Rendering {
  let changed = entry.parts.length === 0;
  for (let index = 0; index < entry.sources.length; index++) {
    if (entry.sources[index]?.() !== entry.parts[index]) changed = true;
  }
  if (!changed) return entry.rendering;
  entry.parts = entry.sources.map((source) => source());
  entry.rendering = join(entry, entry.parts);
  return entry.rendering;
}

function join(entry: Entry, parts: readonly Reading[]): Rendering {
  let value = "";
  for (const part of parts) {
    if (!part.ok) return part;
    value += part.value;
  }
  if (value.length > MAX_VALUE) return { ok: false, problem: "The whole value is longer than 16 KiB" };
  if (value !== entry.value) entry.generation++;
  entry.value = value;
  return { ok: true, value, generation: entry.generation };
}
