/** Runs somebody else's program within bounds: of time, of output, and of what it leaves behind. */
import { type ChildProcess, spawn } from "node:child_process";

export interface ProcessOrder {
  readonly command: readonly [file: string, ...args: readonly string[]];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** What it reads from stdin; it need not. */
  readonly input: string;
  readonly timeoutMs: number;
  /** Of stdout. More of it ends the program. */
  readonly maxOutputBytes: number;
  /** Aborted, it ends the program. */
  readonly signal?: AbortSignal | undefined;
}

/** `problem` reads after the program's name. What the program itself wrote is in `stderr` alone, cut to 4 KiB. */
export type ProcessEnd =
  | { readonly kind: "exited"; readonly code: number; readonly stdout: string; readonly stderr: string }
  | {
      readonly kind: "failed";
      readonly why: "timeout" | "output" | "start" | "signal" | "abort";
      readonly problem: string;
      readonly stderr: string;
    };

type Why = Extract<ProcessEnd, { kind: "failed" }>["why"];

const STDERR_BYTES = 4_096;
/** Output that a program wrote before it ended is there at once; a child of its own may hold the pipe for ever. */
const LINGER_MS = 250;

/**
 * Never rejects. The program leads a process group, which is killed (SIGKILL: nothing can ignore it) when it takes too
 * long or says too much, and when it has ended, so that no child of it goes on. A child that makes a session of its
 * own gets away, and is not waited for.
 */
export function runBounded(order: ProcessOrder): Promise<ProcessEnd> {
  return new Promise((resolve) => {
    const [file, ...args] = order.command;
    let child: ChildProcess;
    try {
      child = spawn(file, args, { detached: true, stdio: ["pipe", "pipe", "pipe"], env: { ...order.env } });
    } catch (error) {
      resolve(failedStart(error));
      return;
    }
    watch(child, order, resolve);
  });
}

function watch(child: ChildProcess, order: ProcessOrder, resolve: (end: ProcessEnd) => void): void {
  const { timeoutMs, maxOutputBytes, signal } = order;
  const stdout = collect(child.stdout, maxOutputBytes, () =>
    fail("output", `printed more than ${maxOutputBytes} bytes`),
  );
  const stderr = collect(child.stderr, STDERR_BYTES, () => undefined);
  const abort = (): void => fail("abort", "was not waited for");
  const timer = setTimeout(() => fail("timeout", `did not answer within ${timeoutMs / 1_000} s`), timeoutMs);
  let linger: NodeJS.Timeout | undefined;
  let over = false;

  function finish(end: ProcessEnd): void {
    if (over) return;
    over = true;
    clearTimeout(timer);
    clearTimeout(linger);
    signal?.removeEventListener("abort", abort);
    killGroup(child);
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.destroy();
    resolve(end);
  }
  function fail(why: Why, problem: string): void {
    finish({ kind: "failed", why, problem, stderr: stderr.text() });
  }
  function ended(): void {
    const { exitCode, signalCode } = child;
    if (exitCode === null) fail("signal", `was ended by ${signalCode ?? "a signal"}`);
    else finish({ kind: "exited", code: exitCode, stdout: stdout.text(), stderr: stderr.text() });
  }

  child.once("error", (error) => finish(failedStart(error)));
  child.once("exit", () => {
    linger = setTimeout(ended, LINGER_MS);
  });
  child.once("close", ended);
  signal?.addEventListener("abort", abort, { once: true });
  if (signal?.aborted === true) abort();
  // It may end, or close its stdin, before it has read all.
  child.stdin?.on("error", () => undefined);
  child.stdin?.end(order.input);
}

/** Keeps the first `limit` bytes, reads on so that the writer is not blocked, and tells once of the first byte over. */
function collect(
  stream: ChildProcess["stdout"],
  limit: number,
  onOver: () => void,
): { readonly text: () => string } {
  const pieces: Buffer[] = [];
  let kept = 0;
  let told = false;
  stream?.on("error", () => undefined);
  stream?.on("data", (bytes: Buffer) => {
    const piece = bytes.subarray(0, limit - kept);
    if (piece.length > 0) pieces.push(piece);
    kept += piece.length;
    if (piece.length === bytes.length || told) return;
    told = true;
    onOver();
  });
  return { text: () => Buffer.concat(pieces).toString("utf8") };
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // Nobody is left in it.
  }
}

function failedStart(error: unknown): ProcessEnd {
  const code = error instanceof Error && "code" in error ? ` (${String(error.code)})` : "";
  return { kind: "failed", why: "start", problem: `could not be started${code}`, stderr: "" };
}
