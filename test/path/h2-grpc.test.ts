/** gRPC through the gate with a secret injected: every kind of call, deadlines, cancellation, refusals. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { after, before, test } from "node:test";
import type {
  Client,
  ServerDuplexStream,
  ServerReadableStream,
  ServerUnaryCall,
  ServerWritableStream,
  ServiceError,
  sendUnaryData,
} from "@grpc/grpc-js";
import { Metadata, status } from "@grpc/grpc-js";
import type { Gate } from "../support/gate.ts";
import { SECRET, startGate } from "../support/gate.ts";
import { createGrpcOrigin, ECHO, openGrpc } from "../support/grpc.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";

const HOST = "grpc.example.com";
const DOWN = "down.example.com";
const REFUSED = "refused.example.com";
const MESSAGES = 10_000;

let internet: Internet;
let gate: Gate;
let client: Client;
/** What the server saw of the call under way. */
let seen: { authorization: unknown; cancelled: Promise<void>; deadline: unknown };

before(async () => {
  internet = await createInternet();
  internet.dns.set(HOST, { A: [PUBLIC_V4] });
  internet.dns.set(DOWN, { A: ["11.0.0.77"] });
  internet.dns.set(REFUSED, { A: [PUBLIC_V4] });
  await createGrpcOrigin(internet, HOST, { unary, collect, repeat, both });
  const transform = { Authorization: SECRET };
  gate = await startGate(internet, {
    network: {
      allowlist: [
        { domain: HOST, paths: ["/test\\.Echo/.*"], transform },
        { domain: DOWN, transform },
        { domain: REFUSED, paths: ["/other"], transform },
      ],
    },
  });
  client = await openGrpc(internet, gate, HOST);
});
after(() => internet.close());

/** What is common to the four kinds of call on a server. */
interface AnyCall {
  readonly metadata: Metadata;
  getDeadline(): unknown;
  on(event: "cancelled", listener: () => void): unknown;
}

function note(call: AnyCall): void {
  const [authorization] = call.metadata.get("authorization");
  const cancelled = new Promise<void>((resolve) => {
    call.on("cancelled", resolve);
  });
  seen = { authorization, cancelled, deadline: call.getDeadline() };
}

function unary(call: ServerUnaryCall<Buffer, Buffer>, answer: sendUnaryData<Buffer>): void {
  note(call);
  if (call.request.toString() === "hang") return;
  if (call.request.toString() === "fail") {
    const details = new Metadata();
    details.set("detail-bin", Buffer.from([0, 1, 255]));
    answer({ code: status.NOT_FOUND, details: "nothing here: 100 %", metadata: details });
    return;
  }
  const trailers = new Metadata();
  trailers.set("x-trailer", "t");
  answer(null, call.request, trailers);
}

function collect(call: ServerReadableStream<Buffer, Buffer>, answer: sendUnaryData<Buffer>): void {
  note(call);
  const all: Buffer[] = [];
  call.on("data", (bytes: Buffer) => void all.push(bytes));
  call.on("end", () => answer(null, Buffer.concat(all)));
}

function repeat(call: ServerWritableStream<Buffer, Buffer>): void {
  note(call);
  for (let count = 0; count < 100; count += 1) call.write(call.request);
  call.end();
}

function both(call: ServerDuplexStream<Buffer, Buffer>): void {
  note(call);
  call.on("data", (bytes: Buffer) => {
    if (!call.write(bytes)) {
      call.pause();
      call.once("drain", () => call.resume());
    }
  });
  call.on("end", () => {
    const trailers = new Metadata();
    trailers.set("x-count", "done");
    call.end(trailers);
  });
}

interface Outcome {
  readonly error: ServiceError | null;
  readonly value: Buffer | undefined;
}

function call(on: Client, text: string, deadline?: number): Promise<Outcome> {
  const metadata = new Metadata();
  metadata.set("authorization", "of the client");
  return new Promise((resolve) => {
    const options = deadline === undefined ? {} : { deadline: Date.now() + deadline };
    const { path, requestSerialize, responseDeserialize } = ECHO["unary"] ?? assert.fail();
    on.makeUnaryRequest(
      path,
      requestSerialize,
      responseDeserialize,
      Buffer.from(text),
      metadata,
      options,
      (error, value) => resolve({ error, value: value as Buffer | undefined }),
    );
  });
}

test("a unary call comes back whole, and the server gets the secret and not the client's value", async () => {
  const { error, value } = await call(client, "hello");
  assert.equal(error, null);
  assert.equal(value?.toString(), "hello");
  assert.equal(seen.authorization, internet.canary.secret);
  assert.equal(seen.deadline, Number.POSITIVE_INFINITY);
  const record = await gate.record({ protocol: "grpc", path: "/test.Echo/Unary" });
  assert.deepEqual(record["injected"], ["Authorization"]);
});

test("a server's status, its words and its binary details come back as they are", async () => {
  const { error } = await call(client, "fail");
  assert.equal(error?.code, status.NOT_FOUND);
  assert.equal(error?.details, "nothing here: 100 %");
  assert.deepEqual(error?.metadata.get("detail-bin"), [Buffer.from([0, 1, 255])]);
});

test("compressed messages pass as they are", async () => {
  const zipping = await openGrpc(internet, gate, HOST, { "grpc.default_compression_algorithm": 2 });
  const text = "again and ".repeat(5_000);
  assert.equal((await call(zipping, text)).value?.toString(), text);
});

test("a client's stream is collected", async () => {
  const value = await new Promise<Buffer>((resolve, reject) => {
    const { path, requestSerialize, responseDeserialize } = ECHO["collect"] ?? assert.fail();
    const stream = client.makeClientStreamRequest(
      path,
      requestSerialize,
      responseDeserialize,
      (error, bytes) => (error === null ? resolve(bytes as Buffer) : reject(error)),
    );
    for (let count = 0; count < 100; count += 1) stream.write(Buffer.from(`${count},`));
    stream.end();
  });
  assert.equal(value.toString(), Array.from({ length: 100 }, (_, count) => `${count},`).join(""));
});

test("a server's stream arrives message by message", async () => {
  const { path, requestSerialize, responseDeserialize } = ECHO["repeat"] ?? assert.fail();
  const stream = client.makeServerStreamRequest(
    path,
    requestSerialize,
    responseDeserialize,
    Buffer.from("again"),
  );
  const messages: string[] = [];
  stream.on("data", (bytes: Buffer) => void messages.push(bytes.toString()));
  await once(stream, "end");
  assert.deepEqual(messages, Array(100).fill("again"));
});

test(`a bidirectional stream of ${MESSAGES} messages is byte-exact, trailers and all`, async () => {
  const { path, requestSerialize, responseDeserialize } = ECHO["both"] ?? assert.fail();
  const stream = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize);
  const [sent, got] = [createHash("sha256"), createHash("sha256")];
  let received = 0;
  stream.on("data", (bytes: Buffer) => {
    received += 1;
    got.update(`${bytes.length}:`).update(bytes);
  });
  const ended = once(stream, "status");
  for (let count = 0; count < MESSAGES; count += 1) {
    const message = Buffer.alloc((count * 7919) % 3_000, count % 251);
    sent.update(`${message.length}:`).update(message);
    if (!stream.write(message)) await once(stream, "drain");
  }
  stream.end();
  const [end] = await ended;
  assert.equal(end.code, status.OK);
  assert.deepEqual(end.metadata.get("x-count"), ["done"]);
  assert.equal(received, MESSAGES);
  assert.equal(got.digest("hex"), sent.digest("hex"));
  assert.equal(seen.authorization, internet.canary.secret);
});

test("a deadline reaches the server, and passes on both sides", async () => {
  const { error } = await call(client, "hang", 300);
  assert.equal(error?.code, status.DEADLINE_EXCEEDED);
  assert.ok(Number(seen.deadline) - Date.now() < 300);
  await seen.cancelled;
});

test("a cancellation reaches the server", async () => {
  const { path, requestSerialize, responseDeserialize } = ECHO["both"] ?? assert.fail();
  const stream = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize);
  stream.on("error", () => undefined);
  stream.write(Buffer.from("first"));
  await once(stream, "data");
  stream.cancel();
  await seen.cancelled;
});

test("a refusal is PERMISSION_DENIED, in words", async () => {
  const refused = await openGrpc(internet, gate, REFUSED);
  const { error } = await call(refused, "hello");
  assert.equal(error?.code, status.PERMISSION_DENIED);
  assert.match(
    error?.details ?? "",
    /^no-rule-matched: Blocked by sandbox policy: .*refused\.example\.com.*Retrying will not help/,
  );
  assert.deepEqual(error?.metadata.get("x-sallyport-reason"), ["no-rule-matched"]);
  const record = await gate.record({ host: REFUSED });
  assert.equal(record["protocol"], "grpc");
  assert.equal(record["verdict"], "deny");
});

test("an upstream that is down is UNAVAILABLE, in words", async () => {
  const down = await openGrpc(internet, gate, DOWN);
  const { error } = await call(down, "hello");
  assert.equal(error?.code, status.UNAVAILABLE);
  assert.match(error?.details ?? "", /^E_CONNECT: No connection to down\.example\.com can be made/);
});
