/** Keeps what takes a while to be had (tokens, outputs of programs) from one policy to the next. */
import type { Template } from "../model/config.ts";
import type { OAuth2Source, TokenSource } from "../model/credential.ts";
import { type Minting, mint, type TokenOrder } from "./mint.ts";
import { createRefresher, type Fetched, type Refresher } from "./refresher.ts";
import { writeSecretFile } from "./secret-file-writer.ts";
import type { Secrets } from "./secrets.ts";
import type { SuppliedPart, Supply } from "./sources.ts";
import type { TokenAnswer } from "./token-answer.ts";

export interface SupplyDeskParts {
  post(order: TokenOrder): Promise<TokenAnswer>;
  /** What the program printed. Rejects with an error that quotes none of it. */
  run(command: readonly [file: string, ...args: readonly string[]]): Promise<Fetched>;
  /** Told of each failure, once for each try. */
  failed(what: string, problem: string): void;
  /** Milliseconds, by any clock that does not go back. */
  now(): number;
}

export interface SupplyDesk {
  /** For the secrets of a config that is about to be taken up. */
  supply(tokens: readonly TokenSource[]): Supply;
  /** It was: whatever it does not name is forgotten. Programs are run at once, tokens when they are needed. */
  adopt(secrets: Secrets, templates: ReadonlyMap<string, Template>): void;
}

interface Rotation {
  /** What the source held when it was used. */
  readonly seen: string;
  readonly token: string;
}

export function createSupplyDesk(parts: SupplyDeskParts): SupplyDesk {
  return new Desk(parts);
}

class Desk implements SupplyDesk {
  readonly #parts: SupplyDeskParts;
  readonly #rotations = new Map<string, Rotation>();
  readonly #minting: Minting;
  /** By definition: one that is as it was keeps what it has. */
  #kept = new Map<string, Refresher>();
  #next = new Map<string, Refresher>();
  #secrets: Secrets | undefined;
  #templates: ReadonlyMap<string, Template> = new Map();

  constructor(parts: SupplyDeskParts) {
    this.#parts = parts;
    this.#minting = {
      post: (order) => parts.post(order),
      secret: (key) => this.#secret(key),
      epoch: () => Math.floor(Date.now() / 1_000),
      refreshToken: (source) => this.#refreshToken(source),
      rotated: (source, token) => this.#rotated(source, token),
    };
  }

  supply(tokens: readonly TokenSource[]): Supply {
    this.#next = new Map();
    return (part) => {
      const refresher = this.#refresherOf(part, tokens);
      return () => refresher.read();
    };
  }

  adopt(secrets: Secrets, templates: ReadonlyMap<string, Template>): void {
    this.#secrets = secrets;
    this.#templates = templates;
    this.#kept = this.#next;
    for (const [source, { token }] of this.#rotations) secrets.hold(`rotated:${source}`, token);
    for (const [name, refresher] of this.#kept) if (name.startsWith(EXEC)) start(refresher);
  }

  #secret(key: string): string {
    const rendered = this.#secrets?.render(key);
    if (rendered?.ok === true) return rendered.value;
    throw new Error(rendered?.problem ?? "It cannot be had yet");
  }

  #refreshToken(source: OAuth2Source): string {
    const seen = this.#secret(source.refreshToken ?? "");
    const rotation = this.#rotations.get(JSON.stringify(source));
    // Whoever wrote another one into its place since meant that one.
    return rotation?.seen === seen ? rotation.token : seen;
  }

  #rotated(source: OAuth2Source, token: string): void {
    const key = source.refreshToken ?? "";
    const name = JSON.stringify(source);
    const seen = this.#secret(key);
    this.#secrets?.hold(`rotated:${name}`, token);
    this.#rotations.set(name, { seen, token });
    const [part, ...more] = this.#templates.get(key) ?? [];
    if (part?.kind !== "file" || more.length > 0 || token === seen) return;
    const problem = writeSecretFile(part.path, token);
    if (problem !== undefined) this.#parts.failed(`credentials.${source.id}.refresh_token`, problem);
  }

  #refresherOf(part: SuppliedPart, tokens: readonly TokenSource[]): Refresher {
    const source = part.kind === "minted" ? tokens.find(({ id }) => id === part.credential) : undefined;
    const name =
      part.kind === "exec" ? `${EXEC}${JSON.stringify(part.command)}` : JSON.stringify(source ?? part);
    const refresher = this.#next.get(name) ?? this.#kept.get(name) ?? this.#created(part, source);
    this.#next.set(name, refresher);
    return refresher;
  }

  #created(part: SuppliedPart, source: TokenSource | undefined): Refresher {
    const what = part.kind === "exec" ? `exec:${part.command[0]}` : `credentials.${part.credential}`;
    return createRefresher({
      now: () => this.#parts.now(),
      failed: (problem) => this.#parts.failed(what, problem),
      fetch: async () => {
        if (part.kind === "exec") return this.#parts.run(part.command);
        if (source === undefined) throw new Error("No such credential");
        return mint(source, this.#minting);
      },
    });
  }
}

const EXEC = "exec ";

function start(refresher: Refresher): void {
  const reading = refresher.read();
  if (!reading.ok) void reading.whenKnown?.();
}
