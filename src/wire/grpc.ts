/** What of gRPC the gate must know: who speaks it, and how to tell it of a refusal. Pure. */
import type { FieldLines } from "../model/exchange.ts";

/** https://github.com/grpc/grpc/blob/master/doc/statuscodes.md */
export const GRPC_STATUS = {
  deadlineExceeded: 4,
  permissionDenied: 7,
  internal: 13,
  unavailable: 14,
} as const;

/** Not gRPC-Web, which has its trailers in the body and reads HTTP statuses. */
const CONTENT_TYPE = /^application\/grpc(?:$|[+;])/i;
const TO_ENCODE = /[^ -$&-~]/gu;

export function isGrpc(fields: FieldLines): boolean {
  return fields.some(({ key, value }) => key === "content-type" && CONTENT_TYPE.test(value));
}

/** As `grpc-message` wants it: percent-encoded UTF-8, blanks as they are. */
export function grpcMessage(text: string): string {
  return text.replace(TO_ENCODE, (character) =>
    [...Buffer.from(character, "utf8")]
      .map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`)
      .join(""),
  );
}
