/** Starts the helper inside a network namespace that exists already, by whichever way its owner may enter it. */
import { type ChildProcess, spawn } from "node:child_process";
import { statfsSync } from "node:fs";
import { Failure } from "../model/failure.ts";
import { giveOver, HandOverError, type Openings, release, takeOver } from "./hand-over.ts";
import { helperCommand } from "./plan.ts";
import type { HelperOrder } from "./protocol.ts";
import { findProgram, toolPath } from "./tools.ts";

export interface EnterOptions {
  /** Path of the network namespace. */
  readonly path: string;
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
      giveOver(await takeOver(child, options.order), options.onOpen);
      release(child);
      return;
    } catch (error) {
      child.kill("SIGKILL");
      // It came in, and has no rights there.
      const powerless = error instanceof Failure && error.message.includes("Operation not permitted");
      if (!(error instanceof HandOverError) && !powerless) throw error;
      said = (powerless ? error.message : await text).trim().split("\n").at(-1) ?? "";
    }
  }
  throw new Failure("E_CONFIG", "operator", cannotEnter(options.path, said));
}

/**
 * Root, and whoever has capabilities over the network's owner, enters at once. An ordinary user joins the user
 * namespace that owns the network first, which the kernel names (bubblewrap nests two, and gives nobody uid 0).
 */
function waysIn({ path }: EnterOptions): readonly (readonly string[])[] {
  const helper = helperCommand();
  const direct = [toolPath("nsenter"), `--net=${path}`, "--", ...helper];
  const perl = findProgram("perl");
  const numbers = CALLS[process.arch];
  const owned =
    perl === undefined || numbers === undefined ? [] : [[perl, "-e", OWNER, ...numbers, path, ...helper]];
  return process.getuid?.() === 0 ? [direct, ...owned] : [...owned, ...joined(path, helper), direct];
}

/** Without an interpreter: enough where the process's own user namespace owns the network, and we are its root. */
function joined(path: string, helper: readonly string[]): readonly (readonly string[])[] {
  const process = /^(\/proc\/\d+\/ns\/)net$/.exec(path)?.[1];
  if (process === undefined) return [];
  const namespaces = [`--user=${process}user`, `--net=${path}`];
  return [[toolPath("nsenter"), ...namespaces, "--preserve-credentials", "--", ...helper]];
}

/** Numbers of setns(2), capset(2) and prctl(2). */
const CALLS: Readonly<Record<string, readonly string[]>> = {
  x64: ["308", "126", "157"],
  arm64: ["268", "91", "167"],
};

/**
 * `NS_GET_USERNS` (include/uapi/linux/nsfs.h), and the two capabilities that the helper needs made ambient, since an
 * exec takes all others from whoever is not uid 0 there. A process of several threads, as Node.js is one, cannot join
 * a user namespace, and no program of util-linux keeps capabilities; Debian is never without this interpreter.
 */
const OWNER = `
my ($setns, $capset, $prctl, $path, @helper) = @ARGV;
open(my $net, "<", $path) or die "$path: $!\\n";
my $owner = ioctl($net, 0xb701, 0) or die "$path: the owner is not to be had: $!\\n";
my $net_bind_service = 10; my $net_admin = 12;
syscall($setns + 0, $owner + 0, 0x10000000) == 0 or die "setns: $!\\n";
syscall($setns + 0, fileno($net), 0x40000000) == 0 or die "setns: $!\\n";
my $caps = 1 << $net_bind_service | 1 << $net_admin;
my ($header, $data) = (pack("L2", 0x20080522, 0), pack("L6", $caps, $caps, $caps, 0, 0, 0));
syscall($capset + 0, $header, $data) == 0 or die "capset: $!\\n";
syscall($prctl + 0, 47, 2, $_ + 0, 0, 0) == 0 or die "prctl: $!\\n" for ($net_bind_service, $net_admin);
exec(@helper) or die "$helper[0]: $!\\n";
`;

async function errorsOf(child: ChildProcess): Promise<string> {
  let text = "";
  for await (const piece of child.stderr ?? []) text = (text + String(piece)).slice(0, 4_096);
  return text;
}

/** Of the file system that namespaces are files of (include/uapi/linux/magic.h). */
const NSFS_MAGIC = 0x6e736673;

function isNamespace(path: string): boolean {
  try {
    return statfsSync(path).type === NSFS_MAGIC;
  } catch {
    return true;
  }
}

function cannotEnter(path: string, said: string): string {
  if (!isNamespace(path)) {
    return `${path} is a file and no namespace: nothing is mounted there, or not where this process sees it`;
  }
  const why = said === "" ? "no message" : said;
  const perl = findProgram("perl") === undefined ? ", with perl installed" : "";
  return `The namespace ${path} cannot be entered (${why}): be root, or the user who made it${perl}`;
}
