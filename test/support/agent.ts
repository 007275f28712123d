/** Runs inside one network namespace and hands the sockets it makes there to the test process, over IPC. */
import { createSocket } from "node:dgram";
import type { Server, Socket } from "node:net";
import { connect, createServer } from "node:net";

/** What the test process may ask for. Ports and addresses are those of the agent's namespace. */
export type Order =
  | { readonly id: number; readonly op: "listen"; readonly host: string; readonly port: number }
  | { readonly id: number; readonly op: "bind"; readonly host: string; readonly port: number }
  | { readonly id: number; readonly op: "send"; readonly host: string; readonly port: number }
  | {
      readonly id: number;
      readonly op: "connect";
      readonly host: string;
      readonly port: number;
      readonly from: string | undefined;
    };

/** `ready` comes once, unasked. Everything else carries a handle or an error code. */
export type Report = { readonly ready: true } | { readonly id: number; readonly error?: string };

process.on("message", (order: Order) => obey(order));
process.on("disconnect", () => process.exit());
reply({ ready: true });

function obey(order: Order): void {
  if (order.op === "listen") listen(order);
  else if (order.op === "bind") bind(order);
  else if (order.op === "send") sendDatagram(order);
  else dial(order);
}

function listen(order: Order): void {
  const server = createServer();
  server.once("error", (error) => fail(order, error));
  server.listen({ host: order.host, port: order.port, backlog: 4096 }, () => {
    handOver(order, server, () => server.close());
  });
}

function bind(order: Order): void {
  const socket = createSocket(order.host.includes(":") ? "udp6" : "udp4");
  socket.once("error", (error) => fail(order, error));
  socket.bind(order.port, order.host, () => {
    process.send?.({ id: order.id }, socket, {}, () => socket.close());
  });
}

function sendDatagram(order: Order): void {
  const socket = createSocket(order.host.includes(":") ? "udp6" : "udp4");
  socket.on("error", () => undefined);
  socket.send("mark", order.port, order.host, () => {
    socket.close();
    reply({ id: order.id });
  });
}

function dial(order: Order & { readonly op: "connect" }): void {
  const from = order.from === undefined ? {} : { localAddress: order.from };
  const socket = connect({ host: order.host, port: order.port, allowHalfOpen: true, ...from });
  // Nothing may be read here: those bytes would be lost to the process that gets the socket.
  socket.pause();
  socket.once("error", (error) => fail(order, error));
  socket.once("connect", () => handOver(order, socket, () => undefined));
}

function handOver(order: Order, handle: Socket | Server, sent: () => void): void {
  process.send?.({ id: order.id }, handle, {}, sent);
}

function fail(order: Order, error: NodeJS.ErrnoException): void {
  reply({ id: order.id, error: error.code ?? error.message });
}

function reply(report: Report): void {
  process.send?.(report);
}
