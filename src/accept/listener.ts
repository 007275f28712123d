/** Listening sockets: opened here, or handed over open by another process. */
import { createServer, type Server, type Socket } from "node:net";
import { Failure } from "../model/failure.ts";

/** The socket's buffer towards the gate: large enough that bulk data takes few turns. */
const HIGH_WATER_MARK = 262_144;

/** Half-open, since a client may close its side after the request and still wants the answer. */
export function createListener(onConnection: (socket: Socket) => void): Server {
  const server = createServer({
    allowHalfOpen: true,
    noDelay: true,
    highWaterMark: HIGH_WATER_MARK,
  });
  server.on("connection", (socket: Socket) => {
    // From birth to death: a reset at any step is an event, not a crash.
    socket.on("error", () => {});
    onConnection(socket);
  });
  return server;
}

/** Rejects with `E_CONFIG` where the address cannot be had. */
export function listen(
  server: Server,
  endpoint: { readonly host: string; readonly port: number },
): Promise<void> {
  return new Promise((resolve, reject) => {
    function onError(error: NodeJS.ErrnoException): void {
      const where = `${endpoint.host.includes(":") ? `[${endpoint.host}]` : endpoint.host}:${endpoint.port}`;
      const why = error.code === "EADDRINUSE" ? "something else listens there" : (error.code ?? "unknown");
      reject(new Failure("E_CONFIG", "operator", `Cannot listen on ${where}: ${why}`));
    }
    server.once("error", onError);
    server.listen({ host: endpoint.host, port: endpoint.port, backlog: 4096 }, () => {
      server.off("error", onError);
      server.on("error", () => {});
      resolve();
    });
  });
}
