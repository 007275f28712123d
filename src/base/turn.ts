/**
 * Holds small writes until the end of the event loop's turn. A busy turn answers many connections, and each write
 * wakes a sleeping peer; written one after the other they wake it once. Pure: it is told when the turn ends.
 */
import type { Corkable, Turn } from "../model/turn.ts";

/** `atEnd` runs its task when everything that is ready in this turn has been read. */
export function createTurn(atEnd: (task: () => void) => void): Turn {
  let held: Corkable[] = [];
  function release(): void {
    const sockets = held;
    held = [];
    for (const socket of sockets) socket.uncork();
  }
  return {
    hold(socket) {
      if (socket.writableCorked > 0) return;
      socket.cork();
      held.push(socket);
      if (held.length === 1) atEnd(release);
    },
  };
}
