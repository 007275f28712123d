/** An origin that speaks HTTP/2 (and HTTP/1.1 where a test wants it) in the private internet, on `node:http2`. */
import { EventEmitter } from "node:events";
import type {
  Http2SecureServer,
  IncomingHttpHeaders,
  SecureServerOptions,
  ServerHttp2Session,
  ServerHttp2Stream,
} from "node:http2";
import { createSecureServer } from "node:http2";
import type { Socket } from "node:net";
import type { Internet } from "./private-internet.ts";
import { PUBLIC_V4 } from "./private-internet.ts";
import { type Until, untilChanged } from "./until-changed.ts";

export interface H2OriginOptions {
  readonly address?: string;
  readonly port?: number;
  readonly names: readonly string[];
  /** This origin is the one that the secret belongs to. */
  readonly bound?: boolean;
  readonly serve: (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, pairs: readonly string[]) => void;
  readonly options?: SecureServerOptions;
}

export interface H2Origin {
  readonly server: Http2SecureServer;
  readonly sockets: readonly Socket[];
  readonly sessions: readonly ServerHttp2Session[];
  /** The pairs of each request's head, in order of arrival. */
  readonly requests: readonly (readonly string[])[];
  /** Streams that are not closed. */
  readonly open: number;
  readonly until: Until;
  /** Something that a condition may look at has changed. */
  changed(): void;
}

export async function createH2Origin(internet: Internet, options: H2OriginOptions): Promise<H2Origin> {
  const listener = await internet.net.listen(options.address ?? PUBLIC_V4, options.port ?? 443);
  listener.unref();
  const { certPem, keyPem } = internet.authority.issue({ names: options.names });
  const server = createSecureServer({ cert: certPem, key: keyPem, ...options.options });
  const sockets: Socket[] = [];
  const sessions: ServerHttp2Session[] = [];
  const requests: string[][] = [];
  let open = 0;
  const changes = new EventEmitter();
  changes.setMaxListeners(0);
  const changed = (): void => void changes.emit("change");
  const watch = options.bound === true ? undefined : internet.canary.watch("an HTTP/2 origin");
  listener.on("connection", (socket: Socket) => {
    sockets.push(socket);
    socket.setNoDelay(true);
    socket.on("error", () => undefined);
    server.emit("connection", socket);
  });
  server.on("sessionError", () => undefined);
  server.on("session", (session) => {
    sessions.push(session);
    session.on("error", () => undefined);
    session.on("close", changed);
    changed();
  });
  server.on(
    "stream",
    (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, _flags: number, pairs: string[]) => {
      requests.push([...pairs]);
      open += 1;
      watch?.see(pairs.join("\n"));
      stream.on("error", () => undefined);
      stream.on("close", () => {
        open -= 1;
        changed();
      });
      options.serve(stream, headers, pairs);
      changed();
    },
  );
  internet.onClose(() => {
    listener.close();
    for (const socket of sockets) socket.destroy();
  });
  return {
    server,
    sockets,
    sessions,
    requests,
    get open() {
      return open;
    },
    changed,
    until: untilChanged(changes),
  };
}

/** All values of a name in a head. */
export function valuesIn(pairs: readonly string[], name: string): readonly string[] {
  return pairs.filter((_, at) => at % 2 === 1 && pairs[at - 1] === name);
}
