/** What the readers of all sections share while one file is read. Types only. */
import type { Template } from "../model/config.ts";
import type { AddressRange } from "../model/policy.ts";
import type { CredentialEntry } from "./credentials.ts";
import type { Report } from "./report.ts";

export interface Scope {
  readonly report: Report;
  /** The config file's folder, absolute: relative paths in the file start here. */
  readonly folder: string;
  /** Filled by the readers, by key of the place that a value stands at. */
  readonly templates: Map<string, Template>;
  /** `upstream.allow_ranges` and `deny_ranges`, once they were read. */
  readonly allowRanges: readonly AddressRange[];
  readonly denyRanges: readonly AddressRange[];
  /** By id. */
  readonly credentials: ReadonlyMap<string, CredentialEntry>;
  /** Why a path pattern cannot be used; undefined where it can. */
  checkPath(source: string): string | undefined;
}
