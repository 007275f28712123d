/** The relay's own process: CONNECT, TLS with one leaf, then each stream to a stream of one upstream connection. */
import { createServer } from "node:http";
import {
  type ClientHttp2Session,
  connect,
  constants,
  createSecureServer,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from "node:http2";
import type { Socket } from "node:net";
import { text } from "node:stream/consumers";
import { connect as startTls } from "node:tls";

/** Its input, as JSON. */
export interface RelayOptions {
  readonly port: number;
  readonly cert: string;
  readonly key: string;
  readonly origin: { readonly address: string; readonly name: string; readonly ca: string };
  /** What the origin wants to see. */
  readonly secret: string;
}

const { port, cert, key, origin, secret }: RelayOptions = JSON.parse(await text(process.stdin));
const authorization = `Bearer ${secret}`;
let upstream: ClientHttp2Session | undefined;

const inner = createSecureServer({ cert, key });
inner.on("sessionError", ignore);
inner.on("stream", relay);
const outer = createServer();
outer.on("connect", (_request, socket: Socket) => {
  socket.on("error", ignore);
  socket.setNoDelay(true);
  socket.write("HTTP/1.1 200 OK\r\n\r\n");
  inner.emit("connection", socket);
});
outer.listen(port, "127.0.0.1", () => process.stdout.write("listening\n"));

function relay(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, flags: number): void {
  const endStream = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0;
  const request = sessionOf().request({ ...headers, authorization }, { endStream });
  stream.on("error", ignore);
  request.on("error", () => stream.close(constants.NGHTTP2_INTERNAL_ERROR));
  request.on("response", (answer) => {
    stream.respond(answer);
    request.pipe(stream);
  });
  if (!endStream) stream.pipe(request);
}

function sessionOf(): ClientHttp2Session {
  if (upstream !== undefined && !upstream.destroyed) return upstream;
  const { address, name, ca } = origin;
  upstream = connect(`https://${name}`, {
    createConnection() {
      const socket = startTls({ host: address, port: 443, servername: name, ca, ALPNProtocols: ["h2"] });
      return socket.setNoDelay(true);
    },
  });
  upstream.on("error", ignore);
  return upstream;
}

function ignore(): void {}
