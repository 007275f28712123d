/** A refusal or a failure in the words of gRPC: trailers alone, for its clients read no other body. Pure. */
import type { Field, ResponseHead } from "../model/exchange.ts";
import { GRPC_STATUS, grpcMessage } from "../wire/grpc.ts";
import type { Answer } from "./refusal.ts";

interface Words {
  readonly error: {
    readonly message: string;
    readonly hint: string;
    readonly reason?: string;
    readonly failure?: string;
  };
}

const TIMED_OUT: ReadonlySet<number> = new Set([408, 504]);
const UNAVAILABLE: ReadonlySet<number> = new Set([502, 503]);
const OURS = "x-sallyport-";

/** The head of a trailers-only response; its status is 200, as gRPC wants it. */
export function grpcAnswer(answer: Answer): ResponseHead {
  const { error }: Words = JSON.parse(answer.body.toString("latin1"));
  return {
    status: 200,
    phrase: "OK",
    minor: 1,
    fields: [
      field("content-type", "application/grpc"),
      field("grpc-status", String(statusOf(answer))),
      field("grpc-message", grpcMessage(sentenceOf(error))),
      ...answer.fields.filter(({ key }) => key.startsWith(OURS)),
    ],
  };
}

/** Few clients show more than the message, so the reason or the code begins it. */
function sentenceOf({ reason, failure, message, hint }: Words["error"]): string {
  return `${reason ?? failure}: ${message}. ${hint}`;
}

function statusOf({ status, fields }: Answer): number {
  if (fields.some(({ key }) => key === `${OURS}reason`)) return GRPC_STATUS.permissionDenied;
  if (TIMED_OUT.has(status)) return GRPC_STATUS.deadlineExceeded;
  return UNAVAILABLE.has(status) ? GRPC_STATUS.unavailable : GRPC_STATUS.internal;
}

function field(name: string, value: string): Field {
  return { name, key: name, value };
}
