/** Runs the real program as a child, with a folder and loopback addresses of its own. */
import { type ChildProcess, spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { fileURLToPath } from "node:url";

export interface Outcome {
  readonly code: number | undefined;
  readonly signal: NodeJS.Signals | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
}

export interface Answer {
  readonly status: number;
  readonly reason: string | undefined;
  readonly text: string;
}

/** `serve`, once it says where it listens. */
export interface Serving {
  readonly pid: number;
  readonly proxy: string;
  readonly admin: string;
  readonly configFile: string;
  readonly stdout: string;
  readonly stderr: string;
  readonly ended: Promise<Outcome>;
  /** Resolves once stderr holds this; fails where the program ends before. */
  untilSaid(pattern: RegExp): Promise<void>;
  signal(name: NodeJS.Signals): void;
  /** Puts a text in the file's place, as an editor does. */
  replace(config: string): void;
  /** An answer of the operator's pages. */
  page(path: string): Promise<Answer>;
  /** An answer to a plain request through the proxy. */
  ask(url: string): Promise<Answer>;
}

const MAIN = fileURLToPath(new URL("../../src/start.mjs", import.meta.url));
const BASE = { PATH: process.env["PATH"] ?? "", LC_ALL: "C" };
const running = new Set<ChildProcess>();
const folders: string[] = [];

after(() => {
  for (const child of running) child.kill("SIGKILL");
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** A folder that goes away after the tests. */
export function folder(files: Readonly<Record<string, string>> = {}): string {
  const made = mkdtempSync(join(tmpdir(), "sallyport-cli-"));
  folders.push(made);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(made, name), text);
  return made;
}

export async function sallyport(args: readonly string[], options: RunOptions = {}): Promise<Outcome> {
  const child = start(args, options);
  child.stdin?.end(options.stdin ?? "");
  return await outcomeOf(child);
}

/** An address that nobody else on this machine has: two tests never meet on a port. */
export async function freeAddress(): Promise<string> {
  const host = `127.${randomInt(1, 255)}.${randomInt(256)}.${randomInt(1, 255)}`;
  const server = createServer().listen(0, host);
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  return address !== null && typeof address === "object" ? `${host}:${address.port}` : "";
}

export interface ServeOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** YAML after `version`, `listen` and `ca`. */
  readonly config: string;
}

export async function serving({ config, env = {} }: ServeOptions): Promise<Serving> {
  const [proxy, admin] = [await freeAddress(), await freeAddress()];
  const head = `version: 1\nlisten: { proxy: "${proxy}", admin: "${admin}" }\nca: { dir: ca }\n`;
  const configFile = join(folder({ "sallyport.yaml": head + config }), "sallyport.yaml");
  const child = start(["serve", "--config", configFile], { env });
  const said = { stdout: "", stderr: "" };
  const outcome = outcomeOf(child, said);
  const gate: Serving = {
    pid: child.pid ?? -1,
    proxy,
    admin,
    configFile,
    get stdout() {
      return said.stdout;
    },
    get stderr() {
      return said.stderr;
    },
    ended: outcome,
    untilSaid: (pattern) => untilSaid(child, said, pattern),
    signal: (name) => void child.kill(name),
    replace(text) {
      writeFileSync(`${configFile}.new`, head + text);
      renameSync(`${configFile}.new`, configFile);
    },
    page: (path) => ask({ address: admin, path }),
    ask: (url) => ask({ address: proxy, path: url }),
  };
  await gate.untilSaid(/^try {5}/m);
  return gate;
}

/** Processes whose parent is this one. */
export function childrenOf(pid: number): readonly number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
  return text === "" ? [] : text.split(" ").map(Number);
}

/** Asks again until it holds; the test's own time limit ends a wait in vain. */
export async function until<T>(look: () => Promise<T>, holds: (found: T) => boolean): Promise<T> {
  for (;;) {
    const found = await look();
    if (holds(found)) return found;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

function start(args: readonly string[], { cwd, env }: RunOptions): ChildProcess {
  const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", MAIN, ...args], {
    ...(cwd === undefined ? {} : { cwd }),
    env: { ...BASE, ...env },
    stdio: ["pipe", "pipe", "pipe"],
  });
  running.add(child);
  child.once("exit", () => running.delete(child));
  child.stdin?.on("error", () => undefined);
  return child;
}

async function outcomeOf(child: ChildProcess, said = { stdout: "", stderr: "" }): Promise<Outcome> {
  child.stdout?.on("data", (bytes: Buffer) => {
    said.stdout += bytes.toString("latin1");
  });
  child.stderr?.on("data", (bytes: Buffer) => {
    said.stderr += bytes.toString("latin1");
  });
  const [code, signal] = (await once(child, "close")) as [number | null, NodeJS.Signals | null];
  return { code: code ?? undefined, signal: signal ?? undefined, ...said };
}

function untilSaid(child: ChildProcess, said: { stderr: string }, pattern: RegExp): Promise<void> {
  return new Promise((resolve, reject) => {
    const look = (): void => {
      if (!pattern.test(said.stderr)) return;
      child.stderr?.off("data", look);
      resolve();
    };
    child.stderr?.on("data", look);
    child.once("close", () => reject(new Error(`It ended before it said ${pattern}: ${said.stderr}`)));
    look();
  });
}

function ask({ address, path }: { address: string; path: string }): Promise<Answer> {
  const [host = "", port = ""] = address.split(":");
  return new Promise((resolve, reject) => {
    const headers = path.startsWith("http") ? { host: new URL(path).host } : {};
    const asking = request({ host, port, path, headers, agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (piece: string) => {
        text += piece;
      });
      response.on("error", reject);
      response.on("end", () => {
        const reason = response.headers["x-sallyport-reason"];
        resolve({ status: response.statusCode ?? 0, reason: reason?.toString(), text });
      });
    });
    asking.on("error", reject);
    asking.end();
  });
}
