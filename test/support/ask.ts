/** One question over a connection of its own, in the three ways that an explicit proxy is asked. */
import type { Gate } from "./gate.ts";
import type { Message } from "./message-reader.ts";
import type { Internet } from "./private-internet.ts";
import type { SecureWire, TakeOptions } from "./wire-client.ts";
import { dial, dialThrough } from "./wire-client.ts";

/** A head: its lines, CRLF, and the empty line. */
export function head(...lines: readonly string[]): string {
  return `${lines.join("\r\n")}\r\n\r\n`;
}

/** Bytes as they are, to the proxy's listener. */
export async function askPlain(
  internet: Internet,
  bytes: string,
  options: TakeOptions = {},
): Promise<Message> {
  const wire = await dial(internet);
  return await wire.send(bytes, options).finally(() => wire.destroy());
}

export async function askConnect(
  internet: Internet,
  authority: string,
  ...lines: readonly string[]
): Promise<Message> {
  const wire = await dial(internet);
  const bytes = head(`CONNECT ${authority} HTTP/1.1`, `Host: ${authority}`, ...lines);
  return await wire.send(bytes, { connect: true }).finally(() => wire.destroy());
}

/** CONNECT, TLS, and these bytes inside. */
export async function askInside(
  internet: Internet,
  gate: Gate,
  host: string,
  bytes: string = head("GET / HTTP/1.1", `Host: ${host}`),
): Promise<Message> {
  const wire = await inside(internet, gate, host);
  return await wire.send(bytes).finally(() => wire.destroy());
}

/** An open connection inside the gate's TLS for a host (port 443). */
export async function inside(internet: Internet, gate: Gate, host: string): Promise<SecureWire> {
  return await dialThrough(internet, `${host}:443`, { ca: gate.ca });
}
