/** The head of an HTTP/2 response, from pairs to values and back (RFC 9113 section 8.3.2). Pure. */
import type { Framing, ResponseHead } from "../model/exchange.ts";
import type { Limits } from "../model/limits.ts";
import { unwritable } from "./field-text.ts";
import { declaredFraming, readControl } from "./framing.ts";
import { type Pairs, pushFields, readPairs } from "./h2-fields.ts";
import { protocolFailure } from "./protocol-failure.ts";

export interface H2Response {
  readonly head: ResponseHead;
  readonly framing: Framing;
}

const STATUS = /^[1-5][0-9][0-9]$/;
const LENGTH = /^[0-9]{1,15}$/;
const NONE: Framing = { kind: "none" };
const UNTIL_END: Framing = { kind: "chunked" };

/** `whole`: END_STREAM came with the head. Throws `E_UPSTREAM_PROTOCOL`. */
export function readH2Response(pairs: Pairs, whole: boolean, method: string, limits: Limits): H2Response {
  const { pseudo, fields } = readPairs(pairs, limits, "upstream");
  const text = pseudo.get(":status");
  // RFC 9113 section 8.6: there is no 101 here.
  if (text === undefined || !STATUS.test(text) || pseudo.size !== 1 || text === "101") {
    throw protocolFailure("upstream", "Malformed status");
  }
  const status = Number(text);
  const head: ResponseHead = { status, phrase: "", minor: 1, fields };
  const declared = declaredFraming(readControl(fields), 1, "upstream");
  return { head, framing: framingOf(declared, whole || isBodiless(status, method)) };
}

/** Pairs of a response that leaves in HTTP/2. Throws `E_INTERNAL` on what could not leave. */
export function renderH2Response(head: ResponseHead, framing: Framing): string[] {
  const { status, fields } = head;
  if (!Number.isInteger(status) || status < 100 || status > 599 || status === 101) {
    throw unwritable("Status cannot be written");
  }
  const pairs = [":status", String(status)];
  pushFields(pairs, fields, lengthOf(head, framing));
  return pairs;
}

/** Whether the head is all there is. */
export function endsWithHead(framing: Framing): boolean {
  return framing.kind === "none" || (framing.kind === "length" && framing.length === 0);
}

function framingOf(declared: Framing, bodiless: boolean): Framing {
  if (!bodiless) return declared.kind === "none" ? UNTIL_END : declared;
  return declared.kind === "length" && declared.length === 0 ? declared : NONE;
}

function isBodiless(status: number, method: string): boolean {
  return status < 200 || status === 204 || status === 304 || method === "HEAD";
}

/** Where there is no body, the field may still tell of one that was not sent (HEAD, 304). */
function lengthOf({ status, fields }: ResponseHead, framing: Framing): string | undefined {
  if (framing.kind === "length") return String(framing.length);
  if (framing.kind !== "none" || status < 200 || status === 204) return undefined;
  const told = fields.find(({ key }) => key === "content-length")?.value;
  return told !== undefined && LENGTH.test(told) ? told : undefined;
}
