/** The failure of a peer that breaks the protocol, on either side. Pure. */
import { Failure } from "../model/failure.ts";

/** Whose bytes are being read. */
export type Side = "client" | "upstream";

/** `status` is what a client is told; an upstream's failure leaves that to the code. */
export function protocolFailure(side: Side, message: string, status = 400): Failure {
  return side === "client"
    ? new Failure("E_BAD_REQUEST", "client", message, { status })
    : new Failure("E_UPSTREAM_PROTOCOL", "upstream", message);
}
