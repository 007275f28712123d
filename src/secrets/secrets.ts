/** Values behind `${env:…}` and `${file:…}`: rendered when asked for, checked each time, never printed. */
import type { Template, TemplatePart } from "../model/config.ts";
import { MAX_VALUE, valueProblem } from "./field-value.ts";
import { createRedactor, type Redactor } from "./redactor.ts";
import { namesSecret } from "./secret-field.ts";
import { type Reading, watchSecretFile } from "./secret-file.ts";

export interface Secrets {
  /** The value of one template, a second old at most. */
  render(key: string): Rendering;
  /** What cannot be rendered now, and why. */
  unavailable(): readonly { readonly key: string; readonly problem: string }[];
  /** `text` without any secret of eight or more characters that is, or in the last ten minutes was, in use. */
  redact(text: string): string;
}

/** `problem` names the variable or file and what is wrong with its value, which it never quotes. */
export type Rendering =
  /** `generation` rises whenever the value has changed. */
  | { readonly ok: true; readonly value: string; readonly generation: number }
  | { readonly ok: false; readonly problem: string };

export interface SecretSources {
  /** Read once, here. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Milliseconds, by any clock that does not go back. */
  now(): number;
  /** The secrets of the policy before this one, which exchanges under way may still use: they stay redacted. */
  readonly previous?: Secrets | undefined;
}

/** Gives the same object for as long as nothing has changed. */
type Source = () => Reading;

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
  redactor.keepOnly(open.owners);
  const secrets: Secrets = {
    render(key) {
      const entry = entries.get(key);
      return entry === undefined ? { ok: false, problem: `No secret stands at \`${key}\`` } : refresh(entry);
    },
    unavailable() {
      return [...entries].flatMap(([key, entry]) => {
        const rendering = refresh(entry);
        return rendering.ok ? [] : [{ key, problem: rendering.problem }];
      });
    },
    redact: (text) => redactor.redact(text),
  };
  REDACTORS.set(secrets, redactor);
  // Read from the start, so that a secret is redacted before it is first used.
  secrets.unavailable();
  return secrets;
}

function newEntry(sources: readonly Source[]): Entry {
  return { sources, parts: [], rendering: { ok: false, problem: "" }, value: undefined, generation: 0 };
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

interface OpenSources {
  /** What the redactor knows them by. */
  readonly owners: ReadonlySet<string>;
  source(part: TemplatePart, key: string): Source;
}

/** One source for each variable and file, however many templates name it. */
function openSources({ env, now }: SecretSources, redactor: Redactor): OpenSources {
  const known = new Map<string, Source>();
  const owners = new Set<string>();

  function shared(name: string, make: () => Source): Source {
    const source = known.get(name) ?? make();
    known.set(name, source);
    owners.add(name);
    return source;
  }

  return {
    owners,
    source(part, key) {
      switch (part.kind) {
        case "literal":
          return literalSource(part.text, key, redactor, owners);
        case "env":
          return shared(`env:${part.name}`, () => variableSource(part.name, own(env, part.name), redactor));
        case "file":
          return shared(`file:${part.path}`, () => fileSource(part.path, () => now(), redactor));
      }
    },
  };
}

/** Words beside a reference (`Bearer`) are short; a long one under a secret's name may be the secret written out. */
function literalSource(text: string, key: string, redactor: Redactor, owners: Set<string>): Source {
  const reading: Reading = { ok: true, value: text };
  if (namesSecret(key.slice(key.lastIndexOf(".") + 1))) {
    for (const word of text.trim().split(" ")) {
      owners.add(`text:${word}`);
      redactor.hold(`text:${word}`, word);
    }
  }
  return () => reading;
}

/** An environment given as a plain object also has what every object has. */
function own(env: SecretSources["env"], name: string): string | undefined {
  return Object.hasOwn(env, name) ? env[name] : undefined;
}

function variableSource(name: string, value: string | undefined, redactor: Redactor): Source {
  const wrong = value === undefined ? "is not set" : valueProblem(value);
  redactor.hold(`env:${name}`, value);
  const reading: Reading =
    wrong === undefined
      ? { ok: true, value: value ?? "" }
      : { ok: false, problem: `Environment variable \`${name}\` ${wrong}` };
  return () => reading;
}

function fileSource(path: string, now: () => number, redactor: Redactor): Source {
  const file = watchSecretFile(path, now);
  let last: Reading | undefined;
  return () => {
    const reading = file.read();
    if (reading !== last) redactor.hold(`file:${path}`, reading.ok ? reading.value : undefined);
    last = reading;
    return reading;
  };
}
