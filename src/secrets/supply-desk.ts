/** Keeps what takes a while to be had (tokens, outputs of programs) from one policy to the next. */
import type { Config, Template } from "../model/config.ts";
import type { OAuth2Source, TokenSource } from "../model/credential.ts";
import { type Minting, mint, type TokenOrder } from "./mint.ts";
import { createRefresher, type Fetched, type Refresher } from "./refresher.ts";
import { writeSecretFile } from "./secret-file-writer.ts";
import type { Secrets } from "./secrets.ts";
import type { SuppliedPart, Supply } from "./sources.ts";
import type { TokenAnswer } from "./token-answer.ts";
import { createVaultReader, type VaultOrder, type VaultReader } from "./vault.ts";

export interface SupplyDeskParts {
  post(order: TokenOrder): Promise<TokenAnswer>;
  get(order: VaultOrder): Promise<TokenAnswer>;
  /** Milliseconds for which what the vault said is used. */
  ttl(): number;
  /** What the program printed. Rejects with an error that quotes none of it. */
  run(command: readonly [file: string, ...args: readonly string[]]): Promise<Fetched>;
  /** Told of each failure, once for each try. */
  failed(what: string, problem: string): void;
  /** Milliseconds, by any clock that does not go back. */
  now(): number;
}

export interface SupplyDesk {
  /** For the secrets of a config that is about to be taken up. */
  supply(suppliers: Suppliers): Supply;
  /** It was: whatever it does not name is forgotten. Programs and the vault are asked at once, for tokens when they are needed. */
  adopt(secrets: Secrets, templates: ReadonlyMap<string, Template>): void;
}

export type Suppliers = Pick<Config, "tokens" | "vault">;

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
  readonly #vault: VaultReader;
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
    this.#vault = createVaultReader({
      get: (order) => parts.get(order),
      secret: (key) => this.#secret(key),
    });
  }

  supply(suppliers: Suppliers): Supply {
    this.#next = new Map();
    return (part) => {
      const refresher = this.#refresherOf(part, suppliers);
      return () => refresher.read();
    };
  }

  adopt(secrets: Secrets, templates: ReadonlyMap<string, Template>): void {
    this.#secrets = secrets;
    this.#templates = templates;
    this.#kept = this.#next;
    for (const [source, { token }] of this.#rotations) secrets.hold(`rotated:${source}`, token);
    for (const [name, refresher] of this.#kept) if (name.startsWith(EARLY)) start(refresher);
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

  #refresherOf(part: SuppliedPart, suppliers: Suppliers): Refresher {
    const fetch = this.#fetcherOf(part, suppliers);
    const name = `${part.kind === "minted" ? "" : EARLY}${JSON.stringify(fetch.definition)}`;
    const refresher = this.#next.get(name) ?? this.#kept.get(name) ?? this.#created(fetch);
    this.#next.set(name, refresher);
    return refresher;
  }

  #fetcherOf(part: SuppliedPart, { tokens, vault }: Suppliers): Fetcher {
    switch (part.kind) {
      case "exec": {
        const { command } = part;
        return { what: `exec:${command[0]}`, definition: command, fetch: () => this.#parts.run(command) };
      }
      case "vault": {
        const { mount, path, field } = part;
        const fetch = async (): Promise<Fetched> => {
          if (vault === undefined) throw new Error("There is no `vault` section");
          return { value: await this.#vault.read(vault, part), lifetime: this.#parts.ttl() };
        };
        return { what: `vault:${mount}/${path}#${field}`, definition: [part, vault], fetch };
      }
      case "minted": {
        const source = tokens.find(({ id }) => id === part.credential);
        const fetch = async (): Promise<Fetched> => {
          if (source === undefined) throw new Error("No such credential");
          await this.#ready(source);
          return mint(source, this.#minting);
        };
        return { what: `credentials.${part.credential}`, definition: source ?? part, fetch };
      }
    }
  }

  #created({ what, fetch }: Fetcher): Refresher {
    return createRefresher({
      now: () => this.#parts.now(),
      failed: (problem) => this.#parts.failed(what, problem),
      fetch,
    });
  }

  /** What it is asked for with may itself have to be waited for. */
  async #ready({ id }: TokenSource): Promise<void> {
    for (const [key, template] of this.#templates) {
      if (!key.startsWith(`credentials.${id}.`) || template.some(({ kind }) => kind === "minted")) continue;
      const rendered = this.#secrets?.render(key);
      if (rendered?.ok === false) await rendered.whenKnown?.();
    }
  }
}

/** Where a value comes from. What has the same definition is the same. */
interface Fetcher {
  readonly what: string;
  readonly definition: unknown;
  fetch(): Promise<Fetched>;
}

/** Of the names of those that are asked for before anybody needs them. */
const EARLY = "early ";

function start(refresher: Refresher): void {
  const reading = refresher.read();
  if (!reading.ok) void reading.whenKnown?.();
}
