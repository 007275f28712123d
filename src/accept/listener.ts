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

/** Why a socket cannot be had, in words that say what to do. `key`: of the config, whose address it is. */
export function cannotListen(where: string, key: string, error: NodeJS.ErrnoException): Failure {
  const why = WORDS[error.code ?? ""] ?? error.code ?? "unknown";
  return new Failure("E_CONFIG", "operator", `Cannot listen on ${where} (${key}): ${why}`);
}

const WORDS: Readonly<Record<string, string>> = {
  EADDRINUSE: "something else listens there",
  EADDRNOTAVAIL: "this machine has no such address",
  EACCES: "not permitted; ports below 1024 need CAP_NET_BIND_SERVICE",
};

/** Rejects with `E_CONFIG` where the address cannot be had. */
export function listen(
  server: Server,
  endpoint: { readonly host: string; readonly port: number },
  key: string,
): Promise<void> {
  return new Promise((resolve, reject) => {
    function onError(error: NodeJS.ErrnoException): void {
      const where = `${endpoint.host.includes(":") ? `[${endpoint.host}]` : endpoint.host}:${endpoint.port}`;
      reject(cannotListen(where, key, error));
    }
    server.once("error", onError);
    server.listen({ host: endpoint.host, port: endpoint.port, backlog: 4096 }, () => {
      server.off("error", onError);
      server.on("error", () => {});
      resolve();
    });
  });
}
