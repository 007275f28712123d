/** Plans a jail: which of the host's files its command must not see or change, and what it finds in their place. */
import { join } from "node:path";
import { NAME_SERVER } from "../base/synthetic.ts";
import { Failure } from "../model/failure.ts";
import { hostSockets, isInside, kindOf, lockedFlags, realPath } from "./host-view.ts";
import type { JailPlan } from "./jail-script.ts";
import type { HelperFile } from "./protocol.ts";
import { toolPath } from "./tools.ts";

export interface JailRequest {
  readonly argv: readonly string[];
  readonly uid: number;
  readonly gid: number;
  /** Files that hold secrets, wherever they are. */
  readonly secretFiles: readonly string[];
  /** Files that the command may read, but not change. */
  readonly readOnlyFiles: readonly string[];
  /** The command's whole environment. */
  readonly env: Readonly<Record<string, string>>;
  /** Files that the command is to find, by their name in `OWN_FOLDER`. */
  readonly files: ReadonlyMap<string, Uint8Array>;
  /** That of `files` which the command is to find wherever this machine keeps its roots; undefined: none. */
  readonly roots: string | undefined;
}

export interface PlannedJail {
  readonly plan: JailPlan;
  readonly files: readonly HelperFile[];
}

/** A file system that lives and dies with the jail. */
export const OWN_FOLDER = "/run/sallyport";
const RESOLV_CONF = "/etc/resolv.conf";
/** No search list: what is asked for is what is meant. */
const RESOLV_TEXT = `nameserver ${NAME_SERVER}\noptions timeout:2 attempts:2\n`;

/** Debian, Alpine and Arch; Fedora; SUSE; what OpenSSL looks for elsewhere. Most are links to one of the others. */
const ROOT_FILES = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/tls/certs/ca-bundle.crt",
  "/etc/ssl/ca-bundle.pem",
  "/etc/ssl/cert.pem",
];

export function planJail(request: JailRequest): PlannedJail {
  const runtimeDir = request.env["XDG_RUNTIME_DIR"];
  const emptied = emptiedFolders(runtimeDir);
  const hidden = (path: string): boolean => emptied.some((folder) => isInside(path, folder));
  const resolv = realPath(RESOLV_CONF);
  const files = [...request.files].map(([name, bytes]) => fileOf(`${OWN_FOLDER}/${name}`, bytes));
  const resolvFile = `${OWN_FOLDER}/resolv.conf`;
  files.push(fileOf(resolvFile, Buffer.from(RESOLV_TEXT)));
  // Where it is a link into a directory that is empty now, it finds its target there.
  if (resolv !== undefined && hidden(resolv)) files.push(fileOf(resolv, Buffer.from(RESOLV_TEXT)));
  const masked = [...request.secretFiles, ...hostSockets(request.env)].flatMap((path) =>
    existing(path, hidden),
  );
  const readOnly = request.readOnlyFiles.flatMap((path) => existing(path, hidden));
  const plan: JailPlan = {
    tools: {
      unshare: toolPath("unshare"),
      setpriv: toolPath("setpriv"),
      mount: toolPath("mount"),
      env: toolPath("env"),
      sh: toolPath("sh"),
    },
    helper: helperCommand(),
    uid: request.uid,
    gid: request.gid,
    emptied,
    made: madeFolders(runtimeDir, emptied),
    masked: [...new Set(masked)],
    readOnly: [...new Set(readOnly)]
      .filter((path) => !masked.includes(path))
      .map((path) => ({ path, flags: lockedFlags(path) })),
    own: OWN_FOLDER,
    shown: [
      ...shownAt(resolvFile, [RESOLV_CONF], hidden),
      // GNU wget and apt ask no variable whom to trust.
      ...(request.roots === undefined ? [] : shownAt(`${OWN_FOLDER}/${request.roots}`, ROOT_FILES, hidden)),
    ],
    argv: request.argv,
  };
  return { plan, files };
}

/** In the place of each of these files that is there and would be seen. */
function shownAt(
  from: string,
  paths: readonly string[],
  hidden: (path: string) => boolean,
): JailPlan["shown"] {
  const places = paths.flatMap((path) => existing(path, hidden)).filter((path) => kindOf(path) === "file");
  return [...new Set(places)].map((at) => ({ from, at }));
}

/** Started by the runtime that runs us; its warnings would be taken for failures. */
export function helperCommand(): readonly string[] {
  // Where `start.mjs` keeps it: without one the helper, which has no other environment, is parsed anew each time.
  const cache = `NODE_COMPILE_CACHE=${join(import.meta.dirname, "../../.runtime/compile-cache")}`;
  const program = [process.execPath, "--disable-warning=ExperimentalWarning"];
  return [toolPath("env"), cache, ...program, join(import.meta.dirname, "helper.ts")];
}

/** `/run`, and with it most of the host's sockets. */
function emptiedFolders(runtimeDir: string | undefined): readonly string[] {
  const folders: string[] = [];
  for (const path of ["/run", "/var/run", runtimeDir]) {
    const real = path === undefined ? undefined : realPath(path);
    if (real === undefined || real === "/" || kindOf(real) !== "directory") continue;
    if (!folders.some((folder) => isInside(real, folder))) folders.push(real);
  }
  if (!folders.some((folder) => isInside(OWN_FOLDER, folder))) {
    throw new Failure("E_CONFIG", "operator", "A jail needs the directory /run, and this machine has none");
  }
  return folders;
}

/** `XDG_RUNTIME_DIR` is there for the command, and empty. */
function madeFolders(runtimeDir: string | undefined, emptied: readonly string[]): readonly string[] {
  const real = runtimeDir === undefined ? undefined : realPath(runtimeDir);
  if (real === undefined || emptied.includes(real)) return [];
  return emptied.some((folder) => isInside(real, folder)) ? [real] : [];
}

/** The real path of a file that is there and would be seen. */
function existing(path: string, hidden: (path: string) => boolean): readonly string[] {
  const real = realPath(path);
  return real === undefined || hidden(real) || kindOf(real) === undefined ? [] : [real];
}

function fileOf(path: string, bytes: Uint8Array): HelperFile {
  return { path, base64: Buffer.from(bytes).toString("base64") };
}
