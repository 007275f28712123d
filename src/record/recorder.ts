/** Writes each exchange down and counts it: the last room of the path. */
import type { ExchangeRecord, Recorder } from "../model/record.ts";
import type { Log } from "./log.ts";
import type { Metrics } from "./metrics.ts";
import { renderRecord } from "./render.ts";
import type { RecordWriter } from "./writer.ts";

export interface RecorderOptions {
  readonly metrics: Metrics;
  readonly writer: RecordWriter;
  readonly log: Pick<Log, "error" | "warn">;
  /** Names this writer's life in every line: a worker's start. */
  readonly session: string;
}

/** A record that cannot be rendered is counted as dropped; the exchange it tells of is over and must not suffer. */
export function createRecorder(options: RecorderOptions): Recorder {
  const { metrics, writer, log, session } = options;
  let seq = 0;
  return {
    exchange: (record: ExchangeRecord) => {
      seq += 1;
      try {
        metrics.exchange(record);
        writer.write(renderRecord(record, session, seq));
        if (record.scrubbed === true) {
          log.warn("An answer held a secret, which was masked", { rule: record.rule, host: record.host });
        }
      } catch {
        metrics.recordsDropped(1);
      }
    },
    upstreamConnected: metrics.upstreamConnected,
    connectionOpened: metrics.connectionOpened,
    connectionClosed: metrics.connectionClosed,
    leafCertificate: metrics.leafCertificate,
    broke: (cause) => log.error("Something broke in the gate", { stack: stackOf(cause) }, kindOf(cause)),
  };
}

function stackOf(cause: unknown): string {
  return cause instanceof Error ? (cause.stack ?? cause.message) : "no stack";
}

/** Where it broke, without what it says: that may hold what a client sent, and differ each time. */
function kindOf(cause: unknown): string {
  if (!(cause instanceof Error)) return "no error";
  const { name, stack = "" } = cause;
  const { code = "" } = cause as NodeJS.ErrnoException;
  const frame = stack.split("\n").find((line) => line.startsWith("    at ")) ?? "nowhere";
  const place = frame.slice(frame.lastIndexOf("/") + 1).replace(/\)$/, "");
  return `${name} ${code === "" ? "" : `${code} `}at ${place}`;
}
