/** DNS over UDP and TCP on sockets that stand open in a sandbox's network: framing, rate and patience; no answers of its own. */
import type { Socket as Datagrams, RemoteInfo } from "node:dgram";
import type { Socket } from "node:net";
import type { Deadlines, Expiring } from "../model/deadline.ts";
import type { Limits } from "../model/limits.ts";

export interface DnsSurroundings {
  readonly limits: Pick<Limits, "dns_queries_per_second">;
  readonly deadlines: Deadlines;
  /** The answer, or undefined where there is none to give. Must not throw. `address`: the peer's, as Node.js has it. */
  readonly answer: (message: Buffer, address: string) => Buffer | undefined;
}

/** What a stub resolver asks fits many times over. */
const MESSAGE_BYTES = 4_096;
const TCP_CONNECTIONS = 64;
const TCP_IDLE_MS = 10_000;
/** Answers that may wait for a client that does not read. */
const TCP_WAITING_BYTES = 65_536;
const NOTHING = Buffer.alloc(0);

/** One sandbox's DNS: all its sockets share one budget. */
export class DnsListener {
  readonly #around: DnsSurroundings;
  readonly #connections = new Set<Socket>();
  #tokens: number;
  #refilledAt: number;

  constructor(around: DnsSurroundings) {
    this.#around = around;
    this.#tokens = around.limits.dns_queries_per_second;
    this.#refilledAt = around.deadlines.now();
  }

  /** Answers this socket's datagrams; what is over the rate, or too long, is dropped. */
  serveUdp(socket: Datagrams): void {
    socket.on("error", () => {});
    socket.on("message", (message: Buffer, peer: RemoteInfo) => this.answerDatagram(socket, message, peer));
  }

  /** The same for one datagram of a socket that several sandboxes share. */
  answerDatagram(socket: Datagrams, message: Buffer, peer: RemoteInfo): void {
    if (message.length > MESSAGE_BYTES || !this.#spend()) return;
    const answer = this.#around.answer(message, peer.address);
    if (answer !== undefined) socket.send(answer, peer.port, peer.address, () => {});
  }

  /** RFC 7766: length-prefixed messages, answered in order. What is over the rate, or too long, ends the connection. */
  serveTcp(socket: Socket): void {
    if (this.#connections.size >= TCP_CONNECTIONS) {
      socket.resetAndDestroy();
      return;
    }
    const { deadlines } = this.#around;
    this.#connections.add(socket);
    let waiting: Buffer = NOTHING;
    const idle: Expiring = {
      deadline: deadlines.now() + TCP_IDLE_MS,
      expired: () => socket.destroy(),
    };
    deadlines.add(idle);
    socket.on("error", () => {});
    socket.on("close", () => {
      deadlines.remove(idle);
      this.#connections.delete(socket);
    });
    socket.on("end", () => socket.end());
    socket.on("drain", () => socket.resume());
    socket.on("data", (bytes: Buffer) => {
      const rest = this.#answerAll(socket, Buffer.concat([waiting, bytes]));
      if (rest === undefined) {
        socket.destroy();
        return;
      }
      // A message that trickles in does not buy time; only a whole one does.
      if (rest.length < waiting.length + bytes.length) idle.deadline = deadlines.now() + TCP_IDLE_MS;
      waiting = rest;
      if (socket.writableLength > TCP_WAITING_BYTES) socket.pause();
    });
  }

  /** What is left after the last whole message; undefined where the connection is to end. */
  #answerAll(socket: Socket, bytes: Buffer): Buffer | undefined {
    let at = 0;
    while (bytes.length - at >= 2) {
      const length = bytes.readUInt16BE(at);
      if (length === 0 || length > MESSAGE_BYTES) return undefined;
      if (bytes.length - at - 2 < length) break;
      if (!this.#spend()) return undefined;
      const answer = this.#around.answer(bytes.subarray(at + 2, at + 2 + length), socket.remoteAddress ?? "");
      if (answer === undefined) return undefined;
      socket.write(Buffer.concat([Buffer.from([answer.length >> 8, answer.length & 0xff]), answer]));
      at += 2 + length;
    }
    return bytes.subarray(at);
  }

  /** A budget that fills up steadily and holds one second's worth. */
  #spend(): boolean {
    const rate = this.#around.limits.dns_queries_per_second;
    const now = this.#around.deadlines.now();
    this.#tokens = Math.min(rate, this.#tokens + ((now - this.#refilledAt) * rate) / 1_000);
    this.#refilledAt = now;
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }
}
