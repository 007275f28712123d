/** Renders one exchange record as one line of JSON, built by hand because it runs once an exchange. Pure. */
import type { Reason } from "../model/decision.ts";
import type { FailureCode } from "../model/failure.ts";
import type { ExchangeRecord } from "../model/record.ts";
import { FIELD_BYTES, quote } from "./escape.ts";

/** A line with its newline never exceeds PIPE_BUF, so that several processes may write to one pipe. */
export const LINE_BYTES = 4_096;

/** Bytes that each field may take, quotes aside. */
interface Room {
  readonly field: number;
  readonly path: number;
  /** All names of `injected` together. */
  readonly injected: number;
}

const ROOMY: Room = { field: FIELD_BYTES, path: FIELD_BYTES, injected: FIELD_BYTES };

/** With every field full, a line of this room is still below `LINE_BYTES`: 7 * 256 + 1,024 + 512 + about 500. */
const NARROW: Room = { field: 256, path: FIELD_BYTES, injected: 512 };

/** The last millisecond that RFC 3339 can say: its years have four digits. */
const LAST_MS = 253_402_300_799_999;

/** Formatting a date costs more than the rest of the line; most records share their second with the last one. */
let cachedSecond = -1;
let cachedText = "";

/** One line, newline included, of printable ASCII. Its keys and their order are what users rely on. */
export function renderRecord(record: ExchangeRecord, session: string, seq: number): string {
  const start = `{"time":"${timestamp(record.time)}","session":${quote(session, NARROW.field)},"seq":${count(seq)}`;
  const line = start + rest(record, ROOMY);
  return line.length <= LINE_BYTES ? line : start + rest(record, NARROW);
}

function rest(record: ExchangeRecord, room: Room): string {
  const field = room.field;
  return `${who(record, field)},"listener":"${record.listener}","protocol":"${record.protocol}","visibility":"${record.visibility}","method":${text(record.method, field)},${where(record, field)},"path":${text(record.path, room.path)},"verdict":"${record.verdict}","reason":${word(record.reason)},"rule":${text(record.rule, field)},"would":${word(record.would)},"injected":${list(record.injected, room.injected)},"policy":${quote(record.policy, field)},"status":${count(record.status)},"bytes_out":${count(record.bytesOut)},"bytes_in":${count(record.bytesIn)},"duration_ms":${milliseconds(record.durationMs)},"failure":${word(record.failure)}}\n`;
}

/** Most records share these with the last one, and text that was made once is copied in one piece. */
const who = remembered(
  ({ sandbox, client }, limit) => `,"sandbox":${text(sandbox, limit)},"client":${text(client, limit)}`,
  (one, other) => one.sandbox === other.sandbox && one.client === other.client,
);
const where = remembered(
  ({ host, port }, limit) => `"host":${text(host, limit)},"port":${count(port)}`,
  (one, other) => one.host === other.host && one.port === other.port,
);

function remembered<T extends Partial<ExchangeRecord>>(
  render: (record: T, limit: number) => string,
  same: (one: T, other: T) => boolean,
): (record: T, limit: number) => string {
  let last: { readonly record: T; readonly limit: number; readonly text: string } | undefined;
  return (record, limit) => {
    if (last?.limit !== limit || !same(last.record, record)) {
      last = { record, limit, text: flat(render(record, limit)) };
    }
    return last.text;
  };
}

/** The same text as one piece of memory, where concatenation leaves a tree. */
function flat(text: string): string {
  return Buffer.from(text, "latin1").toString("latin1");
}

/** RFC 3339, UTC, with milliseconds. A time that no calendar holds is clamped: a record is worth more than its time. */
export function timestamp(ms: number): string {
  const whole = ms > 0 ? Math.min(Math.floor(ms), LAST_MS) : 0;
  const second = Math.floor(whole / 1_000);
  if (second !== cachedSecond) {
    cachedText = new Date(second * 1_000).toISOString().slice(0, 20);
    cachedSecond = second;
  }
  return `${cachedText}${String(whole - second * 1_000).padStart(3, "0")}Z`;
}

/** A member of a closed set of ours: nothing in it needs an escape. */
function word(value: Reason | FailureCode | "deny" | undefined): string {
  return value === undefined ? "null" : `"${value}"`;
}

function text(value: string | undefined, limit: number): string {
  return value === undefined ? "null" : quote(value, limit);
}

function count(value: number | undefined): string {
  return value === undefined || !Number.isFinite(value) ? "null" : `${value}`;
}

/** Microseconds are as fine as the clock is worth. */
function milliseconds(value: number): string {
  const micros = Math.round(value * 1_000);
  if (!Number.isSafeInteger(micros) || micros < 0) return count(micros / 1_000);
  // Two integers print several times faster than one fraction.
  const whole = Math.floor(micros / 1_000);
  const rest = micros - whole * 1_000;
  return rest === 0 ? `${whole}` : `${whole}.${String(rest).padStart(3, "0")}`;
}

/** Names past the room are left out, and an ellipsis stands for them. */
function list(names: readonly string[], room: number): string {
  if (names.length === 0) {
    return "[]";
  }
  let out = "";
  for (const name of names) {
    const item = quote(name, room);
    if (out.length + item.length + ',"\\u2026"'.length > room) {
      return `[${out}${out === "" ? "" : ","}"\\u2026"]`;
    }
    out += out === "" ? item : `,${item}`;
  }
  return `[${out}]`;
}
