/** Says one thing more on a connection that is over, and does not wait for ever until it is taken. */
import type { Socket } from "node:net";
import type { Deadlines, Expiring } from "../model/deadline.ts";
import type { Limits } from "../model/limits.ts";

export interface LastWordSurroundings {
  readonly limits: Limits;
  readonly deadlines: Deadlines;
}

/**
 * Ends `socket` with these bytes. A client that reads nothing may leave them, and what was relayed before, in our
 * buffers: after `progress_timeout` it is reset.
 */
export function sayLast(socket: Socket, bytes: Buffer, { limits, deadlines }: LastWordSurroundings): void {
  if (socket.destroyed) return;
  const patience: Expiring = {
    deadline: deadlines.now() + limits.progress_timeout,
    expired: () => socket.resetAndDestroy(),
  };
  deadlines.add(patience);
  socket.once("close", () => deadlines.remove(patience));
  socket.end(bytes);
  socket.destroySoon();
}
