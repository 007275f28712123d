/** What the fields of a head say about framing, the connection and its host. Pure. */
import type { FieldLines, Framing } from "../model/exchange.ts";
import { listElements } from "./field-lines.ts";
import { protocolFailure, type Side } from "./protocol-failure.ts";

export const NONE: Framing = { kind: "none" };
export const CHUNKED: Framing = { kind: "chunked" };
export const CLOSE: Framing = { kind: "close" };

/** The fields that the codec itself obeys. A count above one is for the caller to refuse. */
export interface Control {
  host: string | undefined;
  hosts: number;
  length: string | undefined;
  lengths: number;
  coding: string | undefined;
  codings: number;
  /** Elements of all Connection fields, lower case. */
  connection: readonly string[];
  /** All values of Upgrade, joined. */
  upgrade: string | undefined;
  expect: string | undefined;
  keepAlive: string | undefined;
}

/** Anything beyond 15 digits could not be counted exactly, and no body is that long. */
const LENGTH = /^[0-9]{1,15}$/;
const NOTHING: readonly string[] = [];

export function readControl(fields: FieldLines): Control {
  const control = blankControl();
  let connection: string | undefined;
  for (const { key, value } of fields) {
    switch (key) {
      case "host":
        control.host = value;
        control.hosts += 1;
        break;
      case "content-length":
        control.length = value;
        control.lengths += 1;
        break;
      case "transfer-encoding":
        control.coding = value;
        control.codings += 1;
        break;
      case "connection":
        connection = joined(connection, value);
        break;
      case "upgrade":
        control.upgrade = joined(control.upgrade, value);
        break;
      case "expect":
        control.expect = joined(control.expect, value);
        break;
      case "keep-alive":
        control.keepAlive = joined(control.keepAlive, value);
        break;
    }
  }
  if (connection !== undefined) {
    control.connection = listElements(connection);
  }
  return control;
}

/** The framing that a message declares; `none` where it declares nothing. Any doubt is refused (E01-E06). */
export function declaredFraming(control: Control, minor: 0 | 1, side: Side): Framing {
  if (control.codings > 0) {
    return declaredCoding(control, minor, side);
  }
  if (control.lengths === 0) {
    return NONE;
  }
  const { length } = control;
  if (control.lengths > 1 || length === undefined || !LENGTH.test(length)) {
    throw protocolFailure(side, "Content-Length is not one plain number");
  }
  return { kind: "length", length: Number(length) };
}

/** RFC 9112 section 9.3: 1.1 persists unless told otherwise, 1.0 closes unless told otherwise. */
export function closesAfter(control: Control, minor: 0 | 1): boolean {
  return control.connection.includes("close") || (minor === 0 && !control.connection.includes("keep-alive"));
}

function declaredCoding(control: Control, minor: 0 | 1, side: Side): Framing {
  if (control.lengths > 0) {
    throw protocolFailure(side, "Content-Length and Transfer-Encoding together");
  }
  if (minor === 0) {
    throw protocolFailure(side, "Transfer-Encoding in HTTP/1.0");
  }
  if (control.codings > 1 || control.coding === undefined || control.coding === "") {
    throw protocolFailure(side, "Transfer-Encoding is not one coding");
  }
  if (control.coding.toLowerCase() !== "chunked") {
    throw protocolFailure(side, "Transfer coding other than chunked", 501);
  }
  return CHUNKED;
}

function blankControl(): Control {
  return {
    host: undefined,
    hosts: 0,
    length: undefined,
    lengths: 0,
    coding: undefined,
    codings: 0,
    connection: NOTHING,
    upgrade: undefined,
    expect: undefined,
    keepAlive: undefined,
  };
}

function joined(before: string | undefined, value: string): string {
  return before === undefined ? value : `${before},${value}`;
}
