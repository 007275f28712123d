/** Puts an answer of our own on the wire: refusals, failures, and the 200 to CONNECT. */
import type { Field, Framing, ResponseHead } from "../model/exchange.ts";
import type { Inbound } from "../model/inbound.ts";
import { isGrpc } from "../wire/grpc.ts";
import { renderResponseHead } from "../wire/message-writer.ts";
import { grpcAnswer } from "./grpc-answer.ts";
import type { Answer } from "./refusal.ts";

export const CONNECTED: ResponseHead = {
  status: 200,
  phrase: "Connection Established",
  minor: 1,
  fields: [],
};

/** Answers where there is a request to answer. The connection ends: what follows was never judged. */
export function answerInbound(inbound: Inbound, answer: Answer): void {
  if (inbound.protocol === "h2" && isGrpc(inbound.head.fields)) {
    inbound.respond(grpcAnswer(answer), { kind: "none" });
    inbound.end([]);
    return;
  }
  inbound.closeAfter();
  inbound.respond(headOf(answer), framingOf(answer, inbound.head.method === "HEAD"));
  if (inbound.head.method !== "HEAD" && answer.body.length > 0) inbound.write(answer.body);
  inbound.end([]);
}

/** Answers where no request could be read. */
export function answerBytes(answer: Answer): Buffer {
  const head = renderResponseHead(headOf(answer), framingOf(answer, false), { close: true, minor: 1 });
  return Buffer.concat([Buffer.from(head, "latin1"), answer.body]);
}

export function headOf(answer: Answer): ResponseHead {
  const length: Field = { name: "content-length", key: "content-length", value: `${answer.body.length}` };
  return { status: answer.status, phrase: answer.phrase, minor: 1, fields: [...answer.fields, length] };
}

function framingOf(answer: Answer, bodiless: boolean): Framing {
  return bodiless ? { kind: "none" } : { kind: "length", length: answer.body.length };
}
