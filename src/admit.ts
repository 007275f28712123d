/** A client's connection is counted in, or reset where there are too many. */
import type { Socket } from "node:net";
import type { Cap } from "./accept/connection-caps.ts";
import type { Listener } from "./model/exchange.ts";
import type { World } from "./world.ts";

/** Counts a connection in until it closes; one too many is reset, and undefined. */
export function admit(
  socket: Socket,
  address: string,
  listener: Listener,
  { caps, recorder }: World,
): Cap | undefined {
  const cap = caps.open(address);
  if (cap === undefined) {
    socket.resetAndDestroy();
    return undefined;
  }
  recorder.connectionOpened(listener);
  socket.once("close", () => {
    cap.release();
    recorder.connectionClosed(listener);
  });
  return cap;
}
