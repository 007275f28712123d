/** The shell script that turns a new set of namespaces into a jail and then becomes the command. Pure. */
import { command, quoted } from "./shell.ts";

export interface JailPlan {
  /** Absolute paths of programs. */
  readonly tools: { readonly [K in "unshare" | "setpriv" | "mount" | "env" | "sh"]: string };
  /** The helper as argv. */
  readonly helper: readonly string[];
  readonly uid: number;
  readonly gid: number;
  /** Directories that the command sees empty; the first is where `own` lies. */
  readonly emptied: readonly string[];
  /** Made inside the emptied directories, for programs that expect them. */
  readonly made: readonly string[];
  /** Files that the command sees empty. */
  readonly masked: readonly string[];
  /** What the command may read and not write, with the flags that its mount has and must keep. */
  readonly readOnly: readonly { readonly path: string; readonly flags: readonly string[] }[];
  /** A file system of the jail's own, for files that the helper writes; read-only once they are there. */
  readonly own: string;
  /** A file in `own`, and the path where the command is to see it. */
  readonly shown: readonly { readonly from: string; readonly at: string }[];
  readonly argv: readonly string[];
}

/** What the script says once everything is in place, on `STATUS_FD`; all before it is what went wrong. */
export const STARTED = "started";
/** The command's stderr waits there while the script's own goes to the status pipe. */
const STDERR_FD = 5;
const STATUS_FD = 4;
const IPC_FD = 3;
/** Exit status of a jail that could not be set up. */
const NOT_STARTED = 125;

/** Whatever PATH the command has. */
const MKDIR = "PATH=/usr/bin:/bin mkdir -p";

/** Run by `sh` with stdio 0 to 2 of the command, IPC on 3 and the status pipe on 4. One process throughout. */
export function outerScript(plan: JailPlan): string {
  const { unshare, setpriv, sh } = plan.tools;
  const enter = command(
    setpriv,
    "--pdeathsig",
    "KILL",
    unshare,
    "--user",
    "--map-root-user",
    "--net",
    "--mount",
    "--ipc",
    "--propagation",
    "private",
    sh,
    "-c",
    innerScript(plan),
  );
  return `exec ${STDERR_FD}>&2 2>&${STATUS_FD}; exec ${enter}`;
}

/** As the root of the new namespaces. Whatever fails ends it: a jail is whole or not there. */
function innerScript(plan: JailPlan): string {
  const { unshare, setpriv, mount, env, sh } = plan.tools;
  const bind = (from: string, at: string): string => command(mount, "-n", "--bind", from, at);
  const emptied = plan.emptied.map((path) =>
    command(mount, "-n", "-t", "tmpfs", "-o", "mode=755,nosuid,nodev,size=64m", "sallyport", path),
  );
  const made = plan.made.map((path) => `${MKDIR} -m 700 ${quoted(path)}`);
  // It ends with this shell, whatever it is at.
  const start = command(setpriv, "--pdeathsig", "KILL", env, "-i");
  const helper = `${start} NODE_CHANNEL_FD=${IPC_FD} ${command(...plan.helper)} </dev/null >/dev/null`;
  const readOnly = plan.readOnly.flatMap(({ path, flags }) => [
    bind(path, path),
    command(mount, "-n", "-o", ["remount", "bind", "ro", ...flags].join(","), path),
  ]);
  const steps = [
    "set -e",
    `trap 'exit ${NOT_STARTED}' EXIT`,
    ...emptied,
    ...made,
    `${MKDIR} ${quoted(plan.own)}`,
    command(mount, "-n", "-t", "tmpfs", "-o", "mode=755,nosuid,nodev,size=16m", "sallyport", plan.own),
    helper,
    command(mount, "-n", "-o", "remount,bind,ro,nosuid,nodev", plan.own),
    // Bound only now, each is read-only too: the command owns these files, and could else make them writable.
    ...plan.shown.map(({ from, at }) => bind(from, at)),
    // Masks come last: a directory bound over itself would show what was masked in it.
    ...readOnly,
    ...plan.masked.map((path) => bind("/dev/null", path)),
    "trap - EXIT",
    "set +e",
    "unset NODE_CHANNEL_FD NODE_CHANNEL_SERIALIZATION_MODE",
    // A process namespace is no use without its own /proc, which some containers do not let anybody mount.
    `if ${command(unshare, "--pid", "--mount", "--fork", mount, "-n", "-t", "proc", "proc", "/proc")} 2>/dev/null; then`,
    `  echo ${STARTED} >&${STATUS_FD}; exec 2>&${STDERR_FD} ${IPC_FD}>&- ${STATUS_FD}>&-`,
    `  exec ${command(unshare, "--pid", "--fork", "--kill-child", sh, "-c", initScript(plan))}`,
    "fi",
    `echo ${STARTED} shared-processes >&${STATUS_FD}; exec 2>&${STDERR_FD} ${IPC_FD}>&- ${STATUS_FD}>&- ${STDERR_FD}>&-`,
    `exec ${jailed(plan)}`,
  ];
  return steps.join("\n");
}

/** The first process of the jail: it outlives the command by nothing, and all others end with it. */
function initScript(plan: JailPlan): string {
  const { mount } = plan.tools;
  const fail = `exit ${NOT_STARTED}`;
  // Not `exec`: the kernel shields a first process from signals, and the command is to die of them.
  return [
    `${command(mount, "-n", "-t", "proc", "proc", "/proc")} || ${fail}`,
    // A terminal's signals are the command's: were this shell to end of one, so would everything.
    "trap : INT QUIT HUP TERM",
    "exec 2>/dev/null",
    `${jailed(plan)} 2>&${STDERR_FD} ${STDERR_FD}>&-`,
    "exit $?",
  ].join("\n");
}

/** A user namespace more, in which the command has its own uid again, and no capability over the jail. */
function jailed({ tools, uid, gid, argv }: JailPlan): string {
  const { unshare, setpriv } = tools;
  // Of root alone an exec leaves capabilities behind; and root alone may empty the set that bounds them.
  const bounding = uid === 0 ? ["--bounding-set", "-all"] : [];
  return command(
    unshare,
    "--user",
    `--map-user=${uid}`,
    `--map-group=${gid}`,
    setpriv,
    "--no-new-privs",
    "--inh-caps",
    "-all",
    "--ambient-caps",
    "-all",
    ...bounding,
    "--pdeathsig",
    "KILL",
    "--",
    ...argv,
  );
}
