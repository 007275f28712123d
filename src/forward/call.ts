/** One small request of the gate's own, over the same guarded connections as everybody's, and its whole answer. */
import type { Field } from "../model/exchange.ts";
import { Failure } from "../model/failure.ts";
import type { Upstream } from "../model/inbound.ts";
import type { Route } from "../model/leg.ts";
import type { Forwarder } from "./forwarder.ts";

export interface Call {
  readonly route: Route;
  readonly method: string;
  /** Origin-form. */
  readonly target: string;
  readonly host: string;
  readonly fields: readonly (readonly [name: string, value: string])[];
  /** Undefined: none, and no length either. */
  readonly body: string | undefined;
  /** Of the answer. */
  readonly maxBytes: number;
}

export interface Called {
  readonly status: number;
  readonly body: Buffer;
}

/**
 * Rejects with a Failure. A connection that had idled and turns out to be closed is no failure: the call is made once
 * more on a fresh one. No redirect is followed.
 */
export async function call(forwarder: Forwarder, order: Call, signal: AbortSignal): Promise<Called> {
  const idle = forwarder.reuse(order.route, false);
  if (idle !== undefined) {
    const called = await over(idle, order, signal);
    if (called !== undefined) return called;
  }
  const acquired = await forwarder.connect(order.route, signal);
  if (acquired.kind === "refused") throw failed("The address of an endpoint is refused");
  const called = await over(acquired.upstream, order, signal);
  if (called === undefined) throw failed("An endpoint closed the connection");
  return called;
}

/** Undefined: the connection was gone before anything came back. */
function over(upstream: Upstream, order: Call, signal: AbortSignal): Promise<Called | undefined> {
  return new Promise((resolve, reject) => {
    const body = Buffer.from(order.body ?? "", "utf8");
    const pieces: Buffer[] = [];
    let length = 0;
    let status = 0;
    const abandon = (): void => {
      upstream.abort();
      finish(() => reject(failed("Nobody waits for the endpoint any more")));
    };
    function finish(settle: () => void): void {
      signal.removeEventListener("abort", abandon);
      settle();
    }
    signal.addEventListener("abort", abandon, { once: true });
    upstream.send(
      headOf(order),
      order.body === undefined ? { kind: "none" } : { kind: "length", length: body.length },
      {
        informed: () => undefined,
        head: (head) => {
          status = head.status;
        },
        data: (bytes) => {
          length += bytes.length;
          if (length <= order.maxBytes) pieces.push(bytes);
          else {
            upstream.abort();
            finish(() => reject(failed("An endpoint answered with too much")));
          }
        },
        end: () => finish(() => resolve({ status, body: Buffer.concat(pieces) })),
        drained: () => undefined,
        failed: (failure, untouched) =>
          finish(() => (untouched === false || !upstream.reused ? reject(failure) : resolve(undefined))),
      },
    );
    if (order.body !== undefined) upstream.write(body);
    upstream.end([]);
    if (signal.aborted) abandon();
  });
}

function headOf({ method, target, host, fields }: Call): Parameters<Upstream["send"]>[0] {
  const lines: Field[] = [["Host", host] as const, ...fields].map(([name, value]) => ({
    name,
    key: name.toLowerCase(),
    value,
  }));
  return { method, target, minor: 1, fields: lines };
}

function failed(message: string): Failure {
  return new Failure("E_HOOK", "operator", message);
}
