/** A socket for datagrams that answers at its own address; it is the DNS front's, and opens nothing. */
import { createSocket, type Socket as Datagrams } from "node:dgram";
import type { Endpoint } from "../model/config.ts";
import { cannotListen } from "./listener.ts";

/** Rejects with `E_CONFIG` where the address cannot be had. `::` answers both families. */
export function listenForDatagrams({ host, port }: Endpoint, key: string): Promise<Datagrams> {
  const socket = createSocket(host.includes(":") ? "udp6" : "udp4");
  return new Promise((resolve, reject) => {
    socket.once("error", (error: NodeJS.ErrnoException) => {
      socket.close();
      reject(cannotListen(`UDP port ${port}`, key, error));
    });
    socket.bind(port, host, () => {
      socket.removeAllListeners("error");
      socket.on("error", () => {});
      resolve(socket);
    });
  });
}
