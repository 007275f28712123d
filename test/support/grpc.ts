/** A gRPC service and its clients, on `@grpc/grpc-js`, in the private internet and through the gate. */
import { once } from "node:events";
import type { Server as NetServer, Socket } from "node:net";
import { connect, createServer } from "node:net";
import type { ClientOptions, ServiceDefinition, UntypedServiceImplementation } from "@grpc/grpc-js";
import { Client, credentials, Server, ServerCredentials } from "@grpc/grpc-js";
import type { Gate } from "./gate.ts";
import type { Internet } from "./private-internet.ts";
import { PUBLIC_V4 } from "./private-internet.ts";
import { dial } from "./wire-client.ts";

const raw = {
  requestSerialize: (bytes: Buffer) => bytes,
  requestDeserialize: (bytes: Buffer) => bytes,
  responseSerialize: (bytes: Buffer) => bytes,
  responseDeserialize: (bytes: Buffer) => bytes,
};

/** Messages are bytes. */
export const ECHO: ServiceDefinition = {
  unary: { path: "/test.Echo/Unary", requestStream: false, responseStream: false, ...raw },
  collect: { path: "/test.Echo/Collect", requestStream: true, responseStream: false, ...raw },
  repeat: { path: "/test.Echo/Repeat", requestStream: false, responseStream: true, ...raw },
  both: { path: "/test.Echo/Both", requestStream: true, responseStream: true, ...raw },
};

/** Serves from the internet's namespace: its sockets are carried to a server that grpc-js opens for itself. */
export async function createGrpcOrigin(
  internet: Internet,
  host: string,
  implementation: UntypedServiceImplementation,
): Promise<void> {
  const { certPem, keyPem } = internet.authority.issue({ names: [host] });
  const server = new Server();
  server.addService(ECHO, implementation);
  const pair = { private_key: Buffer.from(keyPem), cert_chain: Buffer.from(certPem) };
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createSsl(null, [pair]), (error, bound) => {
      if (error === null) resolve(bound);
      else reject(error);
    });
  });
  const listener = await internet.net.listen(PUBLIC_V4, 443);
  listener.unref();
  listener.on("connection", (socket) => join(socket, connect({ port, host: "127.0.0.1", noDelay: true })));
  internet.onClose(() => {
    listener.close();
    server.forceShutdown();
  });
}

/** grpc-js dials a port of this process, behind which is a CONNECT to the gate. */
export async function openGrpc(
  internet: Internet,
  gate: Gate,
  host: string,
  options: ClientOptions = {},
): Promise<Client> {
  const entry: NetServer = createServer((socket) => {
    socket.on("error", () => undefined);
    void tunnel(internet, host, socket);
  });
  entry.listen(0, "127.0.0.1");
  await once(entry, "listening");
  entry.unref();
  const address = entry.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const secure = credentials.createSsl(Buffer.from(gate.ca));
  const client = new Client(`127.0.0.1:${port}`, secure, {
    "grpc.ssl_target_name_override": host,
    "grpc.default_authority": host,
    ...options,
  });
  internet.onClose(() => {
    client.close();
    entry.close();
  });
  return client;
}

async function tunnel(internet: Internet, host: string, socket: Socket): Promise<void> {
  const wire = await dial(internet);
  await wire.send(`CONNECT ${host}:443 HTTP/1.1\r\nHost: ${host}:443\r\n\r\n`, { connect: true });
  wire.socket.removeAllListeners("data");
  join(socket, wire.socket as Socket);
}

function join(left: Socket, right: Socket): void {
  left.setNoDelay(true);
  right.setNoDelay(true);
  for (const [from, to] of [
    [left, right],
    [right, left],
  ] as const) {
    from.pipe(to);
    from.on("error", () => to.destroy());
    from.on("close", () => to.destroy());
  }
}
