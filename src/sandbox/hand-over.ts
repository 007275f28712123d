/** The gate's side of a hand-over: tells the helper what to open and takes the open sockets from it. */
import type { ChildProcess } from "node:child_process";
import type { Socket as Datagrams } from "node:dgram";
import type { Server } from "node:net";
import { Failure } from "../model/failure.ts";
import type { HelperOrder, HelperReport } from "./protocol.ts";

/** Sockets that stand open in a namespace; they keep it alive until they are closed. */
export interface Openings {
  readonly tcp: ReadonlyMap<number, Server>;
  readonly udp: readonly Datagrams[];
  /** Ports that the namespace's own programs listen on. */
  readonly taken: readonly number[];
  readonly v6: boolean;
}

/** Where a helper ended or kept silent before it was done; `message` is what it, or its starter, said. */
export class HandOverError extends Error {
  override readonly name = "HandOverError";
}

const PATIENCE_MS = 20_000;

/**
 * Resolves once everything is open and taken over. Rejects with a `Failure` that names what the helper could not do,
 * or a `HandOverError` where it never came to work.
 */
export function takeOver(
  child: ChildProcess,
  order: Extract<HelperOrder, { kind: "open" }>,
): Promise<Openings> {
  return new Promise((resolve, reject) => {
    const tcp = new Map<number, Server>();
    const udp: Datagrams[] = [];
    const taken: number[] = [];
    const timer = setTimeout(() => fail(new HandOverError("It did not answer in time")), PATIENCE_MS);
    child.on("message", onReport);
    child.once("error", onError);
    child.once("exit", onExit);
    child.send(order, () => {});

    function onReport(report: HelperReport, handle: unknown): void {
      switch (report.kind) {
        case "tcp":
          tcp.set(report.port, handle as Server);
          break;
        case "udp":
          udp.push(handle as Datagrams);
          break;
        case "taken":
          taken.push(report.port);
          break;
        case "opened":
          settle();
          resolve({ tcp, udp, taken, v6: report.v6 });
          break;
        case "ways-out":
          fail(waysOut(report.interfaces));
          break;
        case "failed":
          fail(new Failure("E_CONFIG", "operator", `The namespace cannot be set up: ${report.message}`));
          break;
      }
    }
    function onError(error: Error): void {
      fail(new HandOverError(error.message));
    }
    function onExit(): void {
      fail(new HandOverError("It ended before its listeners were open"));
    }
    function fail(error: Error): void {
      settle();
      closeAll({ tcp, udp });
      reject(error);
    }
    function settle(): void {
      clearTimeout(timer);
      child.off("message", onReport);
      child.off("error", onError);
      child.off("exit", onExit);
    }
  });
}

/** Gives everything to `onOpen`, and closes it where that fails. */
export function giveOver(openings: Openings, onOpen: (openings: Openings) => void): void {
  try {
    onOpen(openings);
  } catch (error) {
    closeAll(openings);
    throw error;
  }
}

function closeAll({ tcp, udp }: Pick<Openings, "tcp" | "udp">): void {
  for (const server of tcp.values()) server.close();
  for (const socket of udp) socket.close();
}

/** The helper may end: whoever waits for that goes on. */
export function release(child: ChildProcess): void {
  const done: HelperOrder = { kind: "done" };
  if (child.connected) child.send(done, () => {});
}

function waysOut(interfaces: readonly string[]): Failure {
  const names = interfaces.join(", ");
  const one = interfaces.length === 1;
  return new Failure(
    "E_CONFIG",
    "operator",
    `The namespace has ${one ? "another way" : "other ways"} out: ${names}. Take ${one ? "it" : "them"} away, or use --force, which leaves what goes through ${one ? "it" : "them"} undecided`,
  );
}
