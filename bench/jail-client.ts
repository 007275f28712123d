/** One client of the jail's bench: requests through one door, each timed. Prints a `Latency` as JSON. */
import { Resolver } from "node:dns/promises";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";

/** Medians, milliseconds a request. */
export interface Latency {
  /** With its own lookup (or CONNECT), TCP connection and full TLS handshake. */
  readonly fresh: number;
  /** On a connection that stands. */
  readonly kept: number;
}

const FRESH = 100;
const KEPT = 1_000;
const WARM_UP = 20;
const REQUEST = "GET / HTTP/1.1\r\nHost: api.test\r\n\r\n";

const [door, caFile = ""] = process.argv.slice(2);
const ca = readFileSync(caFile);
const open = door === "jail" ? openInJail : openByProxy;
const resolver = new Resolver();
resolver.setServers(["198.18.0.1"]);

const fresh = await medianOf(FRESH, async () => {
  const socket = await open();
  await ask(socket);
  socket.destroy();
});
const standing = await open();
const kept = await medianOf(KEPT, () => ask(standing));
standing.destroy();
process.stdout.write(JSON.stringify({ fresh, kept } satisfies Latency));

async function openInJail(): Promise<TLSSocket> {
  const [host = ""] = await resolver.resolve4("api.test");
  return await secure(connect({ host, port: 443, noDelay: true }));
}

async function openByProxy(): Promise<TLSSocket> {
  const socket = connect({ host: "127.0.0.1", port: 8080, noDelay: true });
  socket.write("CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:443\r\n\r\n");
  const [answer] = (await once(socket, "data")) as [Buffer];
  if (!answer.toString("latin1").startsWith("HTTP/1.1 200")) throw new Error(answer.toString("latin1"));
  return await secure(socket);
}

async function secure(socket: Socket): Promise<TLSSocket> {
  const secured = connectTls({ socket, servername: "api.test", ca, ALPNProtocols: ["http/1.1"] });
  await once(secured, "secureConnect");
  return secured;
}

async function ask(socket: TLSSocket): Promise<void> {
  socket.write(REQUEST);
  const [answer] = (await once(socket, "data")) as [Buffer];
  const text = answer.toString("latin1");
  if (!text.startsWith("HTTP/1.1 200") || !text.endsWith("ok")) throw new Error(text);
}

async function medianOf(count: number, task: () => Promise<void>): Promise<number> {
  const times: number[] = [];
  for (let at = -WARM_UP; at < count; at += 1) {
    const start = performance.now();
    await task();
    if (at >= 0) times.push(performance.now() - start);
  }
  return times.sort((a, b) => a - b)[Math.floor(count / 2)] ?? Number.NaN;
}
