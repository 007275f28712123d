/** What a process and all its descendants have cost so far, from /proc. */
import { readdirSync, readFileSync } from "node:fs";

/** Ticks of /proc/PID/stat in a second; Linux shows 100 to programs whatever its own timer does. */
const TICKS = 100;
const KIB = 1024;

/** CPU seconds of user and system time: threads and children that have ended are counted too. */
export function cpuSeconds(root: number): number {
  const ticks = tree(root).map((pid) => {
    const [utime = 0, stime = 0, cutime = 0, cstime = 0] = fieldsOf(pid).slice(11, 15).map(Number);
    return utime + stime + cutime + cstime;
  });
  return ticks.reduce((sum, each) => sum + each, 0) / TICKS;
}

/** Bytes of memory, with shared pages divided among those who share them. */
export function memoryBytes(root: number): number {
  return tree(root)
    .map((pid) => {
      const found = /^Pss:\s+(\d+) kB/m.exec(readOrEmpty(`/proc/${pid}/smaps_rollup`));
      return Number(found?.[1] ?? 0) * KIB;
    })
    .reduce((sum, each) => sum + each, 0);
}

function tree(root: number): readonly number[] {
  const parents = new Map(
    readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .map((name) => [Number(name), Number(fieldsOf(Number(name))[1] ?? 0)]),
  );
  const found = [root];
  for (const pid of found) for (const [child, parent] of parents) if (parent === pid) found.push(child);
  return found;
}

/** The fields after the command's name, which may hold spaces: the first is the state (field 3 of proc(5)). */
function fieldsOf(pid: number): readonly string[] {
  const text = readOrEmpty(`/proc/${pid}/stat`);
  return text.slice(text.lastIndexOf(")") + 2).split(" ");
}

/** A process may end between being listed and being read. */
function readOrEmpty(file: string): string {
  try {
    return readFileSync(file, "latin1");
  } catch {
    return "";
  }
}
