/** The door of one sandbox whose network is ours alone: its connections and its lookups, with one set of names. */
import type { Socket as Datagrams } from "node:dgram";
import type { Server, Socket } from "node:net";
import { DnsListener } from "./accept/dns-listener.ts";
import { createListener } from "./accept/listener.ts";
import { parseIpAddress } from "./base/ip.ts";
import { SyntheticNames } from "./base/synthetic.ts";
import { runLookup } from "./lookup.ts";
import { runTransparent } from "./transparent.ts";
import type { World } from "./world.ts";

/** Takes what comes through listeners that stand open in a sandbox's own network. */
export interface JailDoor {
  /** Accepts on a listener that was handed over, from now on; closing what it returns stops that. */
  accept(handle: Server): Server;
  /** Answers DNS on a socket that was handed over. */
  answer(socket: Datagrams): void;
}

const DNS_PORT = 53;

export function openJailDoor(sandbox: string | undefined, world: World, now: () => number): JailDoor {
  const names = new SyntheticNames({ limits: world.limits, now });
  const dns = new DnsListener({
    limits: world.limits,
    deadlines: world.deadlines,
    answer: (message, from) => {
      const address = parseIpAddress(from)?.text ?? "";
      return runLookup(message, { client: { sandbox, address }, names }, world);
    },
  });
  function take(socket: Socket): void {
    const address = parseIpAddress(socket.localAddress ?? "");
    const port = socket.localPort;
    if (address === undefined || port === undefined) {
      // Gone already: a reset socket has no address any more.
      socket.destroy();
    } else if (port === DNS_PORT) dns.serveTcp(socket);
    else {
      // Until the end of the connection its address keeps its name.
      socket.once("close", names.hold(address));
      const client = { sandbox, address: parseIpAddress(socket.remoteAddress ?? "")?.text ?? "" };
      runTransparent(socket, { client, address, port, name: names.nameOf(address) }, "jail", world);
    }
  }
  return {
    accept: (handle) => createListener(take).listen(handle),
    answer: (socket) => dns.serveUdp(socket),
  };
}
