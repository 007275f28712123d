/** An Http2UpstreamSession on a real socket, with a server of `node:http2` at its far end. */
import { once } from "node:events";
import {
  createServer,
  type ServerHttp2Session,
  type ServerHttp2Stream,
  type ServerOptions,
} from "node:http2";
import type { TestContext } from "node:test";
import type { TLSSocket } from "node:tls";
import { Http2Pool } from "../../src/forward/h2-pool.ts";
import { type Http2UpstreamSession, openSession } from "../../src/forward/h2-session.ts";
import { IdleBook } from "../../src/forward/idle-book.ts";
import type { Limits } from "../../src/model/limits.ts";
import { type Around, around, createPair } from "../support/loopback.ts";

export interface Linked extends Around {
  readonly session: Http2UpstreamSession;
  readonly far: ServerHttp2Session;
  readonly pool: Http2Pool;
  /** The next stream that the server gets. */
  stream(): Promise<ServerHttp2Stream>;
}

/** The code under test takes a TLS socket; it does nothing with it that a plain one cannot. */
export async function linked(
  context: TestContext,
  options: {
    readonly limits?: Partial<Limits>;
    readonly server?: ServerOptions;
    readonly pool?: Http2Pool;
    readonly key?: string;
  } = {},
): Promise<Linked> {
  const pair = await createPair(context);
  pair.near.on("error", () => undefined);
  pair.far.on("error", () => undefined);
  const surroundings = around(options.limits);
  const pool = options.pool ?? new Http2Pool(surroundings.limits, new IdleBook(surroundings.limits));
  const server = createServer(options.server ?? {});
  server.on("sessionError", () => undefined);
  const accepting = once(server, "session");
  server.emit("connection", pair.far);
  const opening = openSession(
    pair.near as unknown as TLSSocket,
    options.key ?? "key",
    { ...surroundings, home: pool, peer: undefined },
    new AbortController().signal,
  );
  const [far] = (await accepting) as [ServerHttp2Session];
  far.on("error", () => undefined);
  const session = await opening;
  pool.adopt(session);
  return {
    ...surroundings,
    session,
    far,
    pool,
    async stream() {
      const [stream] = (await once(server, "stream")) as [ServerHttp2Stream];
      stream.on("error", () => undefined);
      return stream;
    },
  };
}
