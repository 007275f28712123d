import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  closeSync,
  constants,
  mkdtempSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Failure } from "../../src/model/failure.ts";
import { createRecordWriter } from "../../src/record/writer.ts";

const MIB = 1_048_576;
const SOURCE = new URL("../../src/record/writer.ts", import.meta.url).href;
const ignore = () => undefined;
let dir = "";

before(() => {
  dir = mkdtempSync(join(tmpdir(), "sallyport-writer-"));
});
after(() => rmSync(dir, { recursive: true }));

function line(at: number, length = 300): string {
  return `{"seq":${at},"fill":"${"x".repeat(length)}"}\n`;
}

function seqs(text: string): number[] {
  return text
    .split("\n")
    .slice(0, -1)
    .map((each) => (JSON.parse(each) as { seq: number }).seq);
}

/** Reads what a FIFO holds now; the descriptor does not wait. */
function readAll(fd: number): string {
  const chunk = Buffer.alloc(MIB);
  try {
    return chunk.toString("latin1", 0, readSync(fd, chunk));
  } catch (error) {
    assert.equal((error as NodeJS.ErrnoException).code, "EAGAIN");
    return "";
  }
}

function fifo(name: string): { path: string; reader: number } {
  const path = join(dir, name);
  execFileSync("mkfifo", [path]);
  return { path, reader: openSync(path, constants.O_RDONLY | constants.O_NONBLOCK) };
}

async function until(condition: () => boolean): Promise<void> {
  for (const deadline = Date.now() + 5_000; !condition(); await sleep(2)) {
    assert.ok(Date.now() < deadline, "It never happened");
  }
}

test("createRecordWriter makes the file readable by its owner alone and appends to it", async () => {
  const file = join(dir, "plain.jsonl");
  for (const start of [0, 1_000]) {
    const writer = createRecordWriter({ file, bufferBytes: MIB, onDrop: ignore });
    for (let at = start; at < start + 1_000; at += 1) {
      writer.write(line(at));
    }
    await writer.close();
    assert.equal(writer.dropped, 0);
  }
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.deepEqual(seqs(readFileSync(file, "latin1")), [...Array(2_000).keys()]);
});

test("createRecordWriter writes without being closed, in order, across many turns", async () => {
  const file = join(dir, "turns.jsonl");
  const writer = createRecordWriter({ file, bufferBytes: MIB, onDrop: ignore });
  for (let at = 0; at < 500; at += 1) {
    writer.write(line(at));
    if (at % 50 === 0) {
      await sleep(1);
    }
  }
  await until(() => seqs(readFileSync(file, "latin1")).length === 500);
  assert.deepEqual(seqs(readFileSync(file, "latin1")), [...Array(500).keys()]);
  await writer.close();
});

test("createRecordWriter refuses at the start a file that it cannot open", () => {
  assert.throws(
    () => createRecordWriter({ file: join(dir, "no", "such"), bufferBytes: MIB, onDrop: ignore }),
    (error) => error instanceof Failure && error.code === "E_CONFIG" && error.message.includes("ENOENT"),
  );
});

test("write drops and counts what exceeds the buffer while a pipe's reader stalls, and goes on with it", async () => {
  const { path, reader } = fifo("slow");
  let told = 0;
  const writer = createRecordWriter({ file: path, bufferBytes: 100_000, onDrop: (count) => (told += count) });
  const total = 2_000;
  for (let at = 0; at < total; at += 1) {
    writer.write(line(at));
  }
  assert.ok(writer.dropped > 1_000);
  assert.equal(told, writer.dropped);
  let text = "";
  await until(() => {
    text += readAll(reader);
    return text.length >= (total - writer.dropped) * 300;
  });
  const before = writer.dropped;
  writer.write(line(total));
  await writer.close();
  text += readAll(reader);
  assert.equal(writer.dropped, before);
  assert.deepEqual(seqs(text), [...Array(total - before).keys(), total]);
  closeSync(reader);
});

test("write keeps every line whole where several writers share a pipe", async () => {
  const { path, reader } = fifo("shared");
  const writers = [1, 2, 3].map(() => createRecordWriter({ file: path, bufferBytes: MIB, onDrop: ignore }));
  let text = "";
  for (let at = 0; at < 300; at += 1) {
    for (const [index, writer] of writers.entries()) {
      writer.write(line(at, 50 + ((at * 37 + index * 11) % 3_900)));
    }
  }
  await until(() => {
    text += readAll(reader);
    return text.split("\n").length === 901;
  });
  assert.equal(seqs(text).length, 900);
  await Promise.all(writers.map((writer) => writer.close()));
  closeSync(reader);
});

test("close gives up on a reader that stalls, on a pipe and on a socket, and the process can end", async () => {
  await Promise.all([stallingPipe(), stallingSocket()]);
});

async function stallingPipe(): Promise<void> {
  const { path, reader } = fifo("stuck");
  const writer = createRecordWriter({ file: path, bufferBytes: MIB, onDrop: ignore });
  for (let at = 0; at < 1_000; at += 1) {
    writer.write(line(at));
  }
  const started = performance.now();
  await writer.close();
  assert.ok(performance.now() - started < 4_000);
  assert.equal(writer.dropped + seqs(readAll(reader)).length, 1_000);
  const lost = writer.dropped;
  writer.write(line(0));
  assert.equal(writer.dropped, lost + 1);
  assert.equal(await writer.reopen(), true);
  closeSync(reader);
}

/** What `spawn` calls a pipe is a socket. */
async function stallingSocket(): Promise<void> {
  const script = `
    import { createRecordWriter } from ${JSON.stringify(SOURCE)};
    const writer = createRecordWriter({ file: "-", bufferBytes: 1e7, onDrop: () => undefined });
    for (let at = 0; at < 2000; at += 1) writer.write("x".repeat(300) + "\\n");
    await writer.close();
    process.exit(writer.dropped > 0 ? 0 : 9);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [code] = await once(child, "exit");
  assert.equal(code, 0);
  child.stdout.destroy();
}

test("write drops and counts on a full disk and tries again later", async () => {
  const drops: number[] = [];
  const writer = createRecordWriter({
    file: "/dev/full",
    bufferBytes: MIB,
    onDrop: (count) => drops.push(count),
  });
  writer.write(line(0));
  writer.write(line(1));
  await until(() => writer.dropped === 2);
  writer.write(line(2));
  await until(() => writer.dropped === 3);
  assert.deepEqual(drops, [2, 1]);
  await writer.close();
});

test("write drops and counts when the pipe's reader is gone, and takes up with the next one", async () => {
  const { path, reader } = fifo("gone");
  const writer = createRecordWriter({ file: path, bufferBytes: MIB, onDrop: ignore });
  closeSync(reader);
  writer.write(line(0));
  await until(() => writer.dropped === 1);
  const next = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  writer.write(line(1));
  let text = "";
  await until(() => {
    text += readAll(next);
    return text !== "";
  });
  assert.deepEqual(seqs(text), [1]);
  await writer.close();
  closeSync(next);
});

test("write finishes a line that a full disk cut in two before it begins another", async () => {
  const file = join(dir, "torn.jsonl");
  // A limit on the file's size cuts a write short as a full disk does; then it is lifted.
  const script = `
    import { createRecordWriter } from ${JSON.stringify(SOURCE)};
    import { execFileSync } from "node:child_process";
    process.on("SIGXFSZ", () => undefined);
    const writer = createRecordWriter({ file: ${JSON.stringify(file)}, bufferBytes: 1e6, onDrop: dropped });
    for (let at = 0; at < 100; at += 1) writer.write(JSON.stringify({ seq: at, fill: "x".repeat(300) }) + "\\n");
    function dropped() {
      execFileSync("prlimit", ["--pid", String(process.pid), "--fsize=unlimited"]);
      writer.write('{"seq":100}\\n');
      writer.close().then(() => console.log(writer.dropped));
    }`;
  const child = spawn(
    "bash",
    ["-c", 'ulimit -S -f 8; exec "$0" --input-type=module -e "$1"', process.execPath, script],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  const out: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => out.push(chunk));
  await once(child, "close");
  const written = seqs(readFileSync(file, "latin1"));
  assert.equal(written.length + Number(Buffer.concat(out)), 101);
  assert.ok(written.length > 10 && written.length < 50);
  assert.deepEqual(written, [...Array(written.length - 1).keys(), 100]);
});

test("reopen goes on in a new file after a rotation", async () => {
  const file = join(dir, "rotated.jsonl");
  const writer = createRecordWriter({ file, bufferBytes: MIB, onDrop: ignore });
  writer.write(line(0));
  await until(() => statSync(file).size > 0);
  renameSync(file, `${file}.1`);
  assert.equal(await writer.reopen(), true);
  writer.write(line(1));
  await writer.close();
  assert.deepEqual(seqs(readFileSync(`${file}.1`, "latin1")), [0]);
  assert.deepEqual(seqs(readFileSync(file, "latin1")), [1]);
  assert.equal(writer.dropped, 0);
});

test("reopen during a write loses nothing", async () => {
  const file = join(dir, "busy.jsonl");
  const writer = createRecordWriter({ file, bufferBytes: 8 * MIB, onDrop: ignore });
  for (let at = 0; at < 5_000; at += 1) {
    writer.write(line(at));
  }
  renameSync(file, `${file}.1`);
  await Promise.all([writer.reopen(), writer.reopen()]);
  await writer.close();
  const all = [...seqs(readFileSync(`${file}.1`, "latin1")), ...seqs(readFileSync(file, "latin1"))];
  assert.deepEqual(all, [...Array(5_000).keys()]);
});

test("reopen stays with the old file where the new one cannot be opened", async () => {
  const parent = mkdtempSync(join(dir, "moved-"));
  const file = join(parent, "records.jsonl");
  const writer = createRecordWriter({ file, bufferBytes: MIB, onDrop: ignore });
  renameSync(parent, `${parent}-away`);
  assert.equal(await writer.reopen(), false);
  writer.write(line(7));
  await writer.close();
  assert.deepEqual(seqs(readFileSync(join(`${parent}-away`, "records.jsonl"), "latin1")), [7]);
});

test("createRecordWriter on stdout feeds a slow reader and never holds up the process", async () => {
  const script = `
    import { createRecordWriter } from ${JSON.stringify(SOURCE)};
    const writer = createRecordWriter({ file: "-", bufferBytes: 1e7, onDrop: () => undefined });
    const started = performance.now();
    for (let at = 0; at < 2000; at += 1) writer.write(JSON.stringify({ seq: at, fill: "x".repeat(300) }) + "\\n");
    setImmediate(() => process.send({ ms: performance.now() - started }));
    process.once("message", () => writer.close().then(() => process.exit(writer.dropped)));`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["ignore", "pipe", "inherit", "ipc"],
  });
  const stdout = child.stdout;
  assert.ok(stdout);
  const [report] = (await once(child, "message")) as [{ ms: number }];
  assert.ok(report.ms < 1_000, `The loop stood still for ${report.ms} ms`);
  let text = "";
  stdout.on("data", (chunk: Buffer) => {
    text += chunk.toString("latin1");
  });
  child.send("end");
  await once(child, "close");
  assert.equal(child.exitCode, 0);
  assert.deepEqual(seqs(text), [...Array(2_000).keys()]);
});

test("createRecordWriter shares a real pipe on stdout with another process, line by line", async () => {
  const script = `
    import { createRecordWriter } from ${JSON.stringify(SOURCE)};
    const writer = createRecordWriter({ file: "-", bufferBytes: 1e7, onDrop: () => undefined });
    for (let at = 0; at < 1000; at += 1) writer.write(JSON.stringify({ seq: at, fill: "x".repeat(300) }) + "\\n");
    await writer.close();`;
  const both = '(for i in 1 2; do "$0" --input-type=module -e "$1" & done; wait) | cat';
  const child = spawn("bash", ["-c", both, process.execPath, script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let text = "";
  child.stdout.on("data", (chunk: Buffer) => {
    text += chunk.toString("latin1");
  });
  await once(child, "close");
  const expected = [...Array(1_000).keys()].flatMap((at) => [at, at]);
  assert.deepEqual(
    seqs(text).sort((a, b) => a - b),
    expected,
  );
});

test("createRecordWriter writes to a stdout that is a file", async () => {
  const file = join(dir, "stdout.jsonl");
  const fd = openSync(file, "w");
  const script = `
    import { createRecordWriter } from ${JSON.stringify(SOURCE)};
    const writer = createRecordWriter({ file: "-", bufferBytes: 1e7, onDrop: () => undefined });
    writer.write('{"seq":1}\\n');
    if (!(await writer.reopen())) process.exit(8);
    writer.write('{"seq":2}\\n');
    await writer.close();
    await writer.close();`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["ignore", fd, "inherit"],
  });
  const [code] = await once(child, "exit");
  closeSync(fd);
  assert.equal(code, 0);
  assert.deepEqual(seqs(readFileSync(file, "latin1")), [1, 2]);
});
