/** A client that speaks HTTP/2 through the gate: CONNECT, TLS with ALPN, then `node:http2`. */
import type { ClientHttp2Session, ClientHttp2Stream } from "node:http2";
import { connect } from "node:http2";
import type { Gate } from "./gate.ts";
import type { Internet } from "./private-internet.ts";
import type { SecureWire } from "./wire-client.ts";
import { dialThrough } from "./wire-client.ts";

export interface H2Answer {
  readonly status: number;
  readonly pairs: readonly string[];
  /** Statuses and pairs of interim answers. */
  readonly informed: readonly (readonly string[])[];
  readonly body: string;
  readonly trailers: readonly string[];
  /** The code that the stream was closed with. */
  readonly reset: number;
}

export interface H2Client {
  readonly session: ClientHttp2Session;
  /** A whole request; `body` absent: END_STREAM with the head. */
  ask(pairs: readonly string[], body?: string | Buffer): Promise<H2Answer>;
  open(pairs: readonly string[], whole?: boolean): ClientHttp2Stream;
}

export const BOTH = ["h2", "http/1.1"];

export async function openWire(
  internet: Internet,
  gate: Gate,
  host: string,
  alpn: readonly string[] = BOTH,
): Promise<SecureWire> {
  return await dialThrough(internet, `${host}:443`, {
    ca: gate.ca,
    ...(alpn.length > 0 ? { ALPNProtocols: [...alpn] } : {}),
  });
}

export async function openH2(internet: Internet, gate: Gate, host: string): Promise<H2Client> {
  const wire = await openWire(internet, gate, host);
  if (wire.socket.alpnProtocol !== "h2") throw new Error(`Negotiated ${wire.socket.alpnProtocol}`);
  wire.socket.removeAllListeners("data");
  const session = connect(`https://${host}`, { createConnection: () => wire.socket });
  session.on("error", () => undefined);
  const watch = internet.canary.watch("an HTTP/2 client");
  internet.onClose(() => session.destroy());
  const open: H2Client["open"] = (pairs, whole = false) => {
    const stream = session.request(withPseudo(host, pairs), { endStream: whole });
    stream.on("error", () => undefined);
    return stream;
  };
  return {
    session,
    open,
    async ask(pairs, body) {
      const stream = open(pairs, body === undefined);
      if (body !== undefined) stream.end(body);
      const answer = await answerOf(stream);
      watch.see(`${answer.pairs.join("\n")}\n${answer.body}`);
      return answer;
    },
  };
}

export function answerOf(stream: ClientHttp2Stream): Promise<H2Answer> {
  return new Promise((resolve) => {
    const informed: string[][] = [];
    const chunks: Buffer[] = [];
    let [pairs, trailers]: [string[], string[]] = [[], []];
    stream.on("headers", (_headers, _flags, raw) => void informed.push(raw));
    stream.on("response", (_headers, _flags, raw) => {
      pairs = raw;
    });
    stream.on("trailers", (_headers, _flags, raw) => {
      trailers = raw;
    });
    stream.on("data", (bytes: Buffer) => void chunks.push(bytes));
    stream.on("close", () => {
      const body = Buffer.concat(chunks).toString("latin1");
      resolve({ status: Number(pairs[1]), pairs, informed, body, trailers, reset: stream.rstCode ?? 0 });
    });
  });
}

/** `:method` first, where it is not GET; a path first where it is. */
function withPseudo(host: string, pairs: readonly string[]): string[] {
  const names = new Set(pairs.filter((_, at) => at % 2 === 0));
  const pseudo: string[] = [];
  for (const [name, value] of [
    [":method", "GET"],
    [":scheme", "https"],
    [":authority", host],
    [":path", "/"],
  ] as const) {
    if (!names.has(name)) pseudo.push(name, value);
  }
  return [...pseudo, ...pairs];
}
