/** SOCKS5 on the proxy port: its one request takes the way of a CONNECT. */
import type { Socket } from "node:net";
import type { Asking } from "./accept/arrival.ts";
import type { Cap } from "./accept/connection-caps.ts";
import { Socks5Connection } from "./accept/socks5-connection.ts";
import type { Door } from "./model/arrival.ts";
import { deny } from "./model/decision.ts";
import { Failure } from "./model/failure.ts";
import type { Raw } from "./model/inbound.ts";
import { ExchangeDraft } from "./record/draft.ts";
import { identify, type World } from "./world.ts";

export interface SocksSetting {
  /** The door of the listener; what comes of it is told apart as `socks`. */
  readonly door: Door;
  readonly cap: Cap;
  readonly world: World;
  /** Runs the request as a CONNECT, to its record. */
  readonly connect: (arrival: Asking, cap: Cap, world: World) => Promise<void>;
}

export function runSocks(raw: Raw, socket: Socket, { door, cap, world, connect }: SocksSetting): void {
  const socks: Door = { ...door, listener: "socks" };
  countAsSocks(socket, door, world);
  new Socks5Connection(
    socket,
    socks,
    {
      identified: (proxyAuthorization) =>
        identify({ address: door.address, proxyAuthorization }, world.inForce()) !== undefined,
      request: (arrival) => void connect(arrival, cap, world),
      failed: (outcome) => recordFailed(outcome, socks, world),
    },
    world,
  ).begin(raw.early);
}

/** It was counted before its first byte said what it speaks. */
function countAsSocks(socket: Socket, { listener }: Door, { recorder }: World): void {
  recorder.connectionClosed(listener);
  recorder.connectionOpened("socks");
  socket.once("close", () => {
    recorder.connectionClosed("socks");
    // Whoever counted it in counts it out.
    recorder.connectionOpened(listener);
  });
}

function recordFailed(outcome: Failure | "identity-unknown", door: Door, world: World): void {
  const record = new ExchangeDraft(world.recorder, door);
  record.policy = world.inForce().digest;
  record.protocol = "tls-tunnel";
  record.visibility = "destination";
  if (outcome instanceof Failure) record.failed(outcome);
  else record.refused(deny(outcome));
  record.end();
}
