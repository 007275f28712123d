/** Whether a WebSocket is asked for, and whether the answer really opens one (RFC 6455 section 4). Pure. */
import { createHash } from "node:crypto";
import type { FieldLines } from "../model/exchange.ts";
import { listElements, trimBlanks } from "./field-lines.ts";
import type { ParsedRequest } from "./request-head.ts";

/** 16 bytes in base64, in the one spelling that has no spare bits set. */
const KEY = /^[A-Za-z0-9+/]{21}[AQgw]==$/;
/** RFC 6455 section 1.3. */
const KEY_SUFFIX = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/** A request that a 101 may answer. Any other upgrade is dropped and the request stays HTTP/1.1 (F09, I15). */
export function websocketRequest(request: ParsedRequest): boolean {
  const { fields } = request;
  return (
    request.method === "GET" &&
    request.upgrade === "websocket" &&
    request.framing.kind === "none" &&
    single(fields, "sec-websocket-version") === "13" &&
    KEY.test(single(fields, "sec-websocket-key") ?? "")
  );
}

/**
 * Whether the fields of a 101 answer those of the request. A switch that the client would refuse must not open a
 * tunnel here: the upstream could have been talked into it (I04, I16).
 */
export function validateSwitch(request: FieldLines, response: FieldLines): boolean {
  const key = single(request, "sec-websocket-key");
  return (
    key !== undefined &&
    single(response, "sec-websocket-accept") === acceptFor(key) &&
    single(response, "upgrade")?.toLowerCase() === "websocket" &&
    elements(response, "connection").includes("upgrade") &&
    choosesOffered(request, response) &&
    extendsAsOffered(request, response)
  );
}

function acceptFor(key: string): string {
  return createHash("sha1").update(`${key}${KEY_SUFFIX}`, "latin1").digest("base64");
}

/** One subprotocol at most, spelt as offered: its name has case (RFC 6455 section 4.1). */
function choosesOffered(request: FieldLines, response: FieldLines): boolean {
  const chosen = values(response, "sec-websocket-protocol");
  const offered = values(request, "sec-websocket-protocol")
    .flatMap((value) => value.split(","))
    .map(trimBlanks);
  return (
    chosen.length === 0 || (chosen.length === 1 && offered.includes(String(chosen[0])) && chosen[0] !== "")
  );
}

function extendsAsOffered(request: FieldLines, response: FieldLines): boolean {
  const offered = extensionNames(request);
  return [...extensionNames(response)].every((name) => offered.has(name));
}

/** Names without parameters. A quoted comma makes a name that nobody offered, which is refused: none has one. */
function extensionNames(fields: FieldLines): ReadonlySet<string> {
  const all = elements(fields, "sec-websocket-extensions");
  return new Set(all.map((element) => String(element.split(";", 1)[0]).trim()));
}

function elements(fields: FieldLines, key: string): string[] {
  return listElements(values(fields, key).join(","));
}

/** The value of a field that occurs exactly once. */
function single(fields: FieldLines, key: string): string | undefined {
  const found = values(fields, key);
  return found.length === 1 ? found[0] : undefined;
}

function values(fields: FieldLines, key: string): string[] {
  return fields.filter((field) => field.key === key).map((field) => field.value);
}
