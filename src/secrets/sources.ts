/** Where the parts of secrets come from: variables, files, and what takes a while to be had. */
import { join } from "node:path";
import type { TemplatePart } from "../model/config.ts";
import { valueProblem } from "./field-value.ts";
import type { Redactor } from "./redactor.ts";
import { isSecretKey, keyNamesSecret } from "./secret-field.ts";
import { type Reading, watchSecretFile } from "./secret-file.ts";

export type SuppliedPart = Extract<TemplatePart, { kind: "exec" | "minted" | "vault" }>;
export type Supply = (part: SuppliedPart) => () => Reading;

/** Gives the same object for as long as nothing has changed. */
export type Source = () => Reading;

/** What sources are opened on. */
export interface Origins {
  readonly env: Readonly<Record<string, string | undefined>>;
  now(): number;
  readonly supply?: Supply | undefined;
}

export interface OpenSources {
  /** What the redactor knows them by. */
  readonly owners: ReadonlySet<string>;
  /** The same, by template. */
  readonly behind: ReadonlyMap<string, ReadonlySet<string>>;
  /** Renders another template; set once there are any. */
  nested: (key: string) => Reading;
  source(part: TemplatePart, key: string): Source;
}

/** One source for each variable and file, however many templates name it. */
export function openSources(sources: Origins, redactor: Redactor): OpenSources {
  const known = new Map<string, Source>();
  const owners = new Set<string>();
  const behind = new Map<string, Set<string>>();

  function belongs(key: string, owner: string): void {
    owners.add(owner);
    behind.set(key, (behind.get(key) ?? new Set()).add(owner));
  }

  function shared(part: OutsidePart): Source {
    const name = nameOf(part);
    const source = known.get(name) ?? opened(part, name);
    known.set(name, source);
    return source;
  }

  function opened(part: OutsidePart, name: string): Source {
    const source = make(part, sources);
    if (part.kind !== "env") return held(source, name, redactor);
    // It never changes, and what cannot be used may be a secret even so.
    redactor.hold(name, own(sources.env, part.name));
    return source;
  }

  const open: OpenSources = {
    owners,
    behind,
    nested: () => ABSENT,
    source(part, key) {
      if (part.kind === "literal") {
        return literalSource(part.text, key, (owner, word) => {
          belongs(key, owner);
          redactor.hold(owner, word);
        });
      }
      if (part.kind === "basic") {
        const both = [part.user, part.password].flatMap((nested) => [...(behind.get(nested) ?? [])]);
        for (const owner of both) belongs(key, owner);
        return basicSource(part, (nested) => open.nested(nested));
      }
      belongs(key, nameOf(part));
      return shared(part);
    },
  };
  return open;
}

const ABSENT: Reading = { ok: false, problem: "No such secret" };

type OutsidePart = Exclude<TemplatePart, { kind: "literal" | "basic" }>;

function nameOf(part: OutsidePart): string {
  switch (part.kind) {
    case "env":
    case "credential":
      return `${part.kind}:${part.name}${part.lines === true ? " lines" : ""}`;
    case "file":
      return `file:${part.path}${part.lines === true ? " lines" : ""}`;
    case "exec":
      return `exec:${JSON.stringify(part.command)}`;
    case "vault":
      return `vault:${part.mount}/${part.path}#${part.field}${part.lines === true ? " lines" : ""}`;
    case "minted":
      return `minted:${part.credential}`;
  }
}

function make(part: OutsidePart, { env, now, supply }: Origins): Source {
  switch (part.kind) {
    case "env":
      return variableSource(part.name, own(env, part.name), part.lines);
    case "file":
      return fileSource(part.path, () => now(), part.lines);
    case "credential": {
      const folder = own(env, "CREDENTIALS_DIRECTORY");
      return folder === undefined
        ? constant({ ok: false, problem: `There is no \`CREDENTIALS_DIRECTORY\` to hold \`${part.name}\`` })
        : fileSource(join(folder, part.name), () => now(), part.lines);
    }
    case "exec":
    case "minted":
    case "vault":
      return supply === undefined ? constant(UNTRIED) : supply(part);
  }
}

/** Where nothing is asked for, nothing is known to be wrong with it. */
const UNTRIED: Reading = { ok: false, problem: "It is not asked for here", untried: true };

function constant(reading: Reading): Source {
  return () => reading;
}

/** Tells the redactor of each value before anybody has it. */
function held(source: Source, owner: string, redactor: Redactor): Source {
  let last: Reading | undefined;
  return () => {
    const reading = source();
    if (reading !== last) redactor.hold(owner, reading.ok ? reading.value : undefined);
    last = reading;
    return reading;
  };
}

/** RFC 7617; the whole of it is no secret that anybody else holds. */
function basicSource(
  { user, password }: Extract<TemplatePart, { kind: "basic" }>,
  render: (key: string) => Reading,
): Source {
  let before: readonly Reading[] = [];
  let reading: Reading = ABSENT;
  return () => {
    const parts = [render(user), render(password)];
    if (parts.every((part, index) => part === before[index])) return reading;
    before = parts;
    const [name, word] = parts;
    if (name?.ok !== true) reading = name ?? ABSENT;
    else if (word?.ok !== true) reading = word ?? ABSENT;
    else if (name.value.includes(":")) reading = { ok: false, problem: "The user's name holds a colon" };
    else {
      const value = Buffer.from(`${name.value}:${word.value}`, "latin1").toString("base64");
      reading = { ok: true, value };
    }
    return reading;
  };
}

/** Words beside a reference (`Bearer`) are short; a long one under a secret's name may be the secret written out. */
function literalSource(text: string, key: string, hold: (owner: string, word: string) => void): Source {
  const words = keyNamesSecret(key) ? text.trim().split(" ") : [];
  for (const word of new Set(isSecretKey(key) ? [text, ...words] : words)) hold(`text:${word}`, word);
  return constant({ ok: true, value: text });
}

/** An environment given as a plain object also has what every object has. */
function own(env: Origins["env"], name: string): string | undefined {
  return Object.hasOwn(env, name) ? env[name] : undefined;
}

function variableSource(name: string, value: string | undefined, lines: boolean | undefined): Source {
  const wrong = value === undefined ? "is not set" : valueProblem(value, lines);
  const problem = `Environment variable \`${name}\` ${wrong}`;
  return constant(wrong === undefined ? { ok: true, value: value ?? "" } : { ok: false, problem });
}

function fileSource(path: string, now: () => number, lines: boolean | undefined): Source {
  const file = watchSecretFile(path, now, lines);
  return () => file.read();
}
