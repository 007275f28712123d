/** The origin of the client matrix: it answers every kind of client, and only who brings the secret. */
import { createHash } from "node:crypto";
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import { WebSocketServer } from "ws";
import { createH2Origin } from "../h2-origin.ts";
import type { Internet } from "../private-internet.ts";

interface Request extends AsyncIterable<unknown> {
  readonly url?: string | undefined;
  readonly headers: IncomingHttpHeaders;
}
interface Response {
  writeHead(status: number, fields?: Fields): { end(): unknown; end(body: string): unknown };
  write(body: string): unknown;
  end(body: string | Buffer): unknown;
}
type Fields = Readonly<Record<string, string>>;

const HELLO = "hello from the origin\n";

/** `files` are served below their paths, besides what every client asks for. */
export async function createMatrixOrigin(
  internet: Internet,
  host: string,
  files: ReadonlyMap<string, Buffer>,
): Promise<void> {
  const origin = await createH2Origin(internet, {
    names: [host],
    bound: true,
    serve: () => undefined,
    options: { allowHTTP1: true },
  });
  const expected = `Bearer ${internet.canary.secret}`;
  origin.server.on("request", (request: Http2ServerRequest, response: Http2ServerResponse) => {
    if (request.headers.authorization !== expected) return void response.writeHead(401).end("No secret\n");
    if (request.headers["content-type"]?.startsWith("application/grpc") === true)
      return answerGrpc(request, response);
    void answer(request, response as Response, files);
  });
  const sockets = new WebSocketServer({ noServer: true });
  sockets.on("connection", (socket) => {
    socket.on("error", () => undefined);
    socket.on("message", (bytes) => socket.send(String(bytes)));
  });
  origin.server.on("upgrade", (request: IncomingMessage, socket, head: Buffer) => {
    if (request.headers.authorization !== expected) return void socket.end("HTTP/1.1 401 No\r\n\r\n");
    sockets.handleUpgrade(request, socket, head, (one) => sockets.emit("connection", one, request));
  });
}

async function answer(
  request: Request,
  response: Response,
  files: ReadonlyMap<string, Buffer>,
): Promise<void> {
  const path = request.url ?? "/";
  if (path === "/count") return void response.writeHead(200).end(`hello ${await sizeOf(request)}\n`);
  if (path === "/range") return range(request, response);
  if (path === "/events") return events(response);
  const body = path === "/hello" ? Buffer.from(HELLO) : files.get(path);
  if (body === undefined) return void response.writeHead(404).end("Not here\n");
  const etag = `"${createHash("sha256").update(body).digest("hex")}"`;
  const fields: Fields = { etag, "content-type": typeOf(path) };
  if (request.headers["if-none-match"] === etag) return void response.writeHead(304, fields).end();
  response.writeHead(200, { ...fields, "content-length": `${body.length}` });
  response.end(body);
}

function range(request: Request, response: Response): void {
  const from = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? "")?.[1] ?? 0);
  const fields = { "content-range": `bytes ${from}-${HELLO.length - 1}/${HELLO.length}` };
  response.writeHead(206, fields);
  response.end(HELLO.slice(from));
}

/** It never ends. */
function events(response: Response): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const data of ["one", "two"]) response.write(`data: ${data}\n\n`);
}

async function sizeOf(request: Request): Promise<number> {
  let size = 0;
  for await (const piece of request) size += (piece as Buffer).length;
  return size;
}

/** Each message is answered by itself. */
function answerGrpc(request: Http2ServerRequest, response: Http2ServerResponse): void {
  const pieces: Buffer[] = [];
  request.on("data", (bytes: Buffer) => void pieces.push(bytes));
  request.on("end", () => {
    response.writeHead(200, { "content-type": "application/grpc" });
    response.addTrailers({ "grpc-status": "0" });
    response.end(Buffer.concat(pieces));
  });
}

function typeOf(path: string): string {
  if (path.startsWith("/npm/") && !path.endsWith(".tgz")) return "application/json";
  return path.startsWith("/simple/") || path === "/page" ? "text/html" : "text/plain";
}
