/** Starts the helper inside a network namespace that exists already, by whichever way its owner may enter it. */
import { type ChildProcess, spawn } from "node:child_process";
import { Failure } from "../model/failure.ts";
import { HandOverError, type Openings, release, takeOver } from "./hand-over.ts";
import { helperCommand } from "./plan.ts";
import type { HelperOrder } from "./protocol.ts";
import { findProgram, toolPath } from "./tools.ts";

export interface EnterOptions {
  /** Path of the network namespace. */
  readonly path: string;
  /** A process in it, whose user namespace may be the one that owns it. */
  readonly pid: number | undefined;
  readonly order: Extract<HelperOrder, { kind: "open" }>;
  /** Takes the open sockets over. */
  readonly onOpen: (openings: Openings) => void;
}

/** Tries each way in; the first whose helper comes to work settles it. Throws `E_CONFIG`. */
export async function enterNamespace(options: EnterOptions): Promise<void> {
  let said = "";
  for (const [file = "", ...args] of waysIn(options)) {
    const child = spawn(file, args, { stdio: ["ignore", "ignore", "pipe", "ipc"], env: {} });
    const text = errorsOf(child);
    try {
      options.onOpen(await takeOver(child, options.order));
      release(child);
      return;
    } catch (error) {
      child.kill("SIGKILL");
      if (!(error instanceof HandOverError)) throw error;
      said = (await text).trim().split("\n").at(-1) ?? "";
    }
  }
  throw new Failure("E_CONFIG", "operator", cannotEnter(options.path, said));
}

/**
 * Root, or whoever owns our own user namespace, enters at once. An ordinary user joins the user namespace that owns
 * the network first: it is the process's own, or the kernel names it (bubblewrap nests two).
 */
function waysIn({ path, pid }: EnterOptions): readonly (readonly string[])[] {
  const nsenter = toolPath("nsenter");
  const helper = helperCommand();
  const direct = [nsenter, `--net=${path}`, "--", ...helper];
  if (process.getuid?.() === 0) return [direct, ...throughOwner(nsenter, path, helper)];
  const user = pid === undefined ? [] : [[nsenter, ...userOf(pid), `--net=${path}`, "--", ...helper]];
  return [...user, ...throughOwner(nsenter, path, helper), direct];
}

function userOf(pid: number): readonly string[] {
  return [`--user=/proc/${pid}/ns/user`, "--preserve-credentials"];
}

/** `NS_GET_USERNS`, include/uapi/linux/nsfs.h. No program but an interpreter calls it, and Debian is never without this one. */
const OWNER_SCRIPT = `
use Fcntl;
my ($nsenter, $path, @helper) = @ARGV;
open(my $net, "<", $path) or die "$path: $!\\n";
my $owner = ioctl($net, 0xb701, 0) or die "$path: the owner is not to be had: $!\\n";
open(my $user, "<&=", $owner) or die "$path: $!\\n";
fcntl($user, F_SETFD, 0);
exec($nsenter, "--user=/proc/self/fd/$owner", "--net=$path", "--preserve-credentials", "--", @helper);
`;

function throughOwner(
  nsenter: string,
  path: string,
  helper: readonly string[],
): readonly (readonly string[])[] {
  const perl = findProgram("perl");
  return perl === undefined ? [] : [[perl, "-e", OWNER_SCRIPT, nsenter, path, ...helper]];
}

async function errorsOf(child: ChildProcess): Promise<string> {
  let text = "";
  for await (const piece of child.stderr ?? []) text = (text + String(piece)).slice(0, 4_096);
  return text;
}

function cannotEnter(path: string, said: string): string {
  return `The namespace ${path} cannot be entered (${said === "" ? "no message" : said}): be root, or the user who made it`;
}
