/** Whether a pattern covers names of strangers, who would be given what is meant for its owner. Pure. */
import type { PatternSource } from "../model/pattern.ts";
import { type Outsiders, outsidersUnder } from "./public-suffix.ts";

/** Undefined for patterns of one host. */
export function outsidersOf(pattern: PatternSource): Outsiders | undefined {
  if (pattern.kind === "any") return { kind: "public", suffix: "" };
  return pattern.kind === "wildcard" ? outsidersUnder(pattern.base) : undefined;
}
