/** Connected TCP sockets on the loopback, a clock that moves by hand, and waiting for what sockets do. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { TestContext } from "node:test";
import { createDeadlines, type TickingDeadlines } from "../../src/base/deadlines.ts";
import { createTurn } from "../../src/base/turn.ts";
import { DEFAULT_LIMITS, type Limits } from "../../src/model/limits.ts";
import type { Turn } from "../../src/model/turn.ts";

/** Limits of a test, which it may change while it runs. */
export type OpenLimits = { -readonly [K in keyof Limits]: Limits[K] };

export interface Clock extends TickingDeadlines {
  /** Moves on by so many milliseconds. */
  pass(ms: number): void;
}

export interface Around {
  readonly limits: OpenLimits;
  readonly deadlines: Clock;
  readonly turn: Turn;
}

/** The far end of a connection, as a peer of the code under test sees and drives it. */
export interface Peer {
  readonly socket: Duplex;
  /** All that came so far, latin1. */
  readonly text: string;
  /** `end`: in good order. `reset`: broken off. Undefined: still open. */
  readonly ending: "end" | "reset" | undefined;
  send(text: string | Buffer): void;
  /** Resolves with all that came, once it holds this. Fails where the connection ends before. */
  until(wanted: string): Promise<string>;
  /** Resolves once nothing more can come. */
  readonly ended: Promise<"end" | "reset">;
}

export interface Pair {
  /** For the code under test: half-open, as a listener and a dial of the product make it. */
  readonly near: Socket;
  readonly far: Socket;
}

export function around(limits: Partial<Limits> = {}): Around {
  return {
    limits: { ...DEFAULT_LIMITS, ...limits },
    deadlines: createClock(),
    turn: createTurn(setImmediate),
  };
}

function createClock(): Clock {
  const deadlines = createDeadlines(1_000);
  return { ...deadlines, pass: (ms) => deadlines.tick(deadlines.now() + ms) };
}

/** Both sockets are destroyed after the test. `near` has no listeners. */
export async function createPair(context: TestContext): Promise<Pair> {
  const server = createServer({ allowHalfOpen: true, noDelay: true });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const far = connect({ port, host: "127.0.0.1", allowHalfOpen: true, noDelay: true });
  const [[near]] = (await Promise.all([once(server, "connection"), once(far, "connect")])) as [
    [Socket],
    unknown,
  ];
  server.close();
  far.on("error", () => undefined);
  context.after(() => {
    far.destroy();
    near.on("error", () => undefined).destroy();
  });
  return { near, far };
}

/** Reads all that comes from now on. */
export function listenTo(socket: Duplex): Peer {
  let text = "";
  let ending: Peer["ending"];
  let failed = false;
  const changes = new Set<() => void>();
  function changed(): void {
    for (const look of changes) look();
  }
  socket.on("data", (bytes: Buffer) => {
    text += bytes.toString("latin1");
    changed();
  });
  const ended = new Promise<"end" | "reset">((resolve) => {
    function over(how: "end" | "reset"): void {
      ending ??= how;
      resolve(ending);
      changed();
    }
    socket.once("end", () => over("end"));
    socket.on("error", () => {
      failed = true;
    });
    socket.once("close", () => over(failed ? "reset" : "end"));
  });
  return {
    socket,
    ended,
    get text() {
      return text;
    },
    get ending() {
      return ending;
    },
    send: (bytes) => void socket.write(bytes as string, "latin1"),
    until: (wanted) =>
      new Promise((resolve, reject) => {
        function look(): void {
          if (text.includes(wanted)) resolve(text);
          else if (ending !== undefined)
            reject(new Error(`${ending} came, not ${wanted}: ${text.slice(-500)}`));
          else return;
          changes.delete(look);
        }
        changes.add(look);
        look();
      }),
  };
}

/** Sends an RST and no FIN before it: alone, `resetAndDestroy` ends first. */
export function breakOff(socket: Socket): void {
  socket.resetAndDestroy();
  socket.destroy();
}

/** Turns the loop until it is so; fails after ten seconds. */
export async function eventually(isSo: () => boolean): Promise<void> {
  const last = performance.now() + 10_000;
  while (!isSo()) {
    if (performance.now() > last) throw new Error(`It never came to ${isSo}`);
    await new Promise(setImmediate);
  }
}

/** Lets whatever is ready happen: for showing that something does not. */
export async function settle(turns = 20): Promise<void> {
  for (let turn = 0; turn < turns; turn += 1) await new Promise(setImmediate);
}
