/** What the readers of all sections share while one file is read. Types only. */
import type { Template } from "../model/config.ts";
import type { PlaceholderSource, TokenSource, VaultSource } from "../model/credential.ts";
import type { Injection } from "../model/decision.ts";
import type { AddressRange, ParentSource } from "../model/policy.ts";
import type { Report } from "./report.ts";
import type { Position } from "./tree.ts";

export interface Scope {
  readonly report: Report;
  /** The config file's folder, absolute: relative paths in the file start here. */
  readonly folder: string;
  /** Filled by the readers, by key of the place that a value stands at. */
  readonly templates: Map<string, Template>;
  /** `upstream.allow_ranges` and `deny_ranges`, once they were read. */
  readonly allowRanges: readonly AddressRange[];
  readonly denyRanges: readonly AddressRange[];
  /** `upstream.proxy`, likewise. */
  readonly parent?: ParentSource | undefined;
  /** Of `upstream.client_certificates`, once they were read. */
  readonly certificates: ClientCertificates;
  /** Where `${vault:…}` leads, once it was read. */
  readonly vault: VaultSource | undefined;
  /** By id. */
  readonly credentials: ReadonlyMap<string, CredentialEntry>;
  /** Why a path pattern cannot be used; undefined where it can. */
  checkPath(source: string): string | undefined;
}

/** A credential that was read. `used` once an entry or a variable names it. */
export interface CredentialEntry {
  readonly id: string;
  readonly at: Position;
  /** What an entry that names it injects. */
  readonly injections: readonly Injection[];
  readonly placeholder?: PlaceholderSource;
  readonly token?: TokenSource;
  used: boolean;
}

/** Client certificates by id, where each stands. */
export type ClientCertificates = ReadonlyMap<string, Position>;
