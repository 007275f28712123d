/** An HTTPS server under a name of its own, reached through a CONNECT proxy on loopback, as a sandbox reaches the world. */
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { connect } from "node:net";
import { createAuthority } from "./pki.ts";

export const HOOK_HOST = "hook.example.com";

export interface Taken {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

export interface HookServer {
  readonly url: string;
  /** PEM. */
  readonly ca: string;
  /** `HTTPS_PROXY` and what else a program needs to get there. */
  readonly env: Readonly<Record<string, string>>;
  readonly taken: readonly Taken[];
  /** Authorities that CONNECT was asked for. */
  readonly connects: readonly string[];
  close(): void;
}

export async function createHookServer(
  answer: (taken: Taken, response: ServerResponse) => void,
): Promise<HookServer> {
  const authority = createAuthority("Hook root");
  const leaf = authority.issue({ names: [HOOK_HOST] });
  const taken: Taken[] = [];
  const connects: string[] = [];
  const sockets = new Set<Socket>();
  const origin = createHttpsServer({ key: leaf.keyPem, cert: leaf.certPem }, (request, response) => {
    void bodyOf(request).then((body) => {
      const one = { method: request.method ?? "", path: request.url ?? "", headers: request.headers, body };
      taken.push(one);
      answer(one, response);
    });
  });
  const proxy = createServer();
  for (const server of [origin, proxy]) {
    server.on("connection", (socket: Socket) => {
      sockets.add(socket);
      socket.on("error", () => undefined);
      socket.once("close", () => sockets.delete(socket));
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
  }
  proxy.on("connect", (request: IncomingMessage, client: Socket) => {
    connects.push(request.url ?? "");
    if (!(request.url ?? "").startsWith(`${HOOK_HOST}:`)) {
      client.end("HTTP/1.1 403 Forbidden\r\n\r\n");
      return;
    }
    const upstream = connect((origin.address() as AddressInfo).port, "127.0.0.1");
    upstream.on("error", () => client.destroy());
    client.on("error", () => upstream.destroy());
    client.write("HTTP/1.1 200 OK\r\n\r\n");
    upstream.pipe(client).pipe(upstream);
  });
  return {
    url: `https://${HOOK_HOST}/events`,
    ca: authority.certPem,
    env: { HTTPS_PROXY: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` },
    taken,
    connects,
    close() {
      for (const socket of sockets) socket.destroy();
      origin.close();
      proxy.close();
    },
  };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let body = "";
  for await (const bytes of request) body += String(bytes);
  return body;
}
