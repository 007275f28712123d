/** A socket for datagrams that answers at its own address; it is the DNS front's, and opens nothing. */
import { createSocket, type Socket as Datagrams } from "node:dgram";
import type { Endpoint } from "../model/config.ts";
import { Failure } from "../model/failure.ts";

/** Rejects with `E_CONFIG` where the address cannot be had. `::` answers both families. */
export function listenForDatagrams({ host, port }: Endpoint): Promise<Datagrams> {
  const socket = createSocket(host.includes(":") ? "udp6" : "udp4");
  return new Promise((resolve, reject) => {
    socket.once("error", (error: NodeJS.ErrnoException) => {
      socket.close();
      const why = error.code === "EADDRINUSE" ? "something else listens there" : (error.code ?? "unknown");
      reject(new Failure("E_CONFIG", "operator", `Cannot listen on UDP port ${port}: ${why}`));
    });
    socket.bind(port, host, () => {
      socket.removeAllListeners("error");
      socket.on("error", () => {});
      resolve(socket);
    });
  });
}
