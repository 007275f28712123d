/** Says when a file, or one of those that go with it, has other content than before. */
import { createHash } from "node:crypto";
import { type FSWatcher, readFileSync, realpathSync, statSync, watch } from "node:fs";
import { dirname, resolve } from "node:path";

/** One save is often several events. */
const SETTLE = 100;
/** Where no events come: network file systems, exhausted inotify watches, a link into another folder. */
const POLL = 2_000;
const MAX_READ = 16 * 1_048_576;

export interface ConfigWatch {
  /** To be called right before the file is read for another reason: what is there now is then no change. */
  reading(): void;
  close(): void;
}

/**
 * Calls `onChange` some 100 ms after the content changed. Folders are watched, not files, since files are replaced by
 * renaming and, on Kubernetes, by exchanging a link. Errors are no changes; a file that went away is one.
 */
export function watchConfig(file: string, extraFiles: readonly string[], onChange: () => void): ConfigWatch {
  const files = [file, ...extraFiles].map((path) => resolve(path));
  let digest = digestOf(files);
  let stamps = stampsOf(files);
  let settling: NodeJS.Timeout | undefined;
  let closed = false;
  const watchers = [...new Set(files.flatMap(foldersOf))].flatMap((folder) => watchFolder(folder, schedule));
  const poll = setInterval(pollOnce, POLL).unref();

  return {
    reading() {
      digest = digestOf(files);
    },
    close() {
      closed = true;
      clearInterval(poll);
      clearTimeout(settling);
      for (const watcher of watchers) watcher.close();
    },
  };

  function schedule(): void {
    if (closed) return;
    clearTimeout(settling);
    settling = setTimeout(compare, SETTLE).unref();
  }

  function pollOnce(): void {
    const current = stampsOf(files);
    if (current === stamps) return;
    stamps = current;
    schedule();
  }

  function compare(): void {
    const current = digestOf(files);
    if (current === digest) return;
    digest = current;
    onChange();
  }
}

/** The file's own folder, and that of the file behind its links. */
function foldersOf(file: string): readonly string[] {
  try {
    return [dirname(file), dirname(realpathSync(file))];
  } catch {
    return [dirname(file)];
  }
}

function watchFolder(folder: string, changed: () => void): readonly FSWatcher[] {
  try {
    const watcher = watch(folder, { persistent: false }, changed);
    // A folder that goes away ends its watcher; the poll goes on.
    watcher.on("error", () => watcher.close());
    return [watcher];
  } catch {
    return [];
  }
}

function stampsOf(files: readonly string[]): string {
  return files.map(stampOf).join("|");
}

function stampOf(file: string): string {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = statSync(file, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join(":");
  } catch {
    return "none";
  }
}

function digestOf(files: readonly string[]): string {
  const hash = createHash("sha256");
  for (const file of files) {
    const content = contentOf(file);
    hash.update(content === undefined ? "-" : `${content.length}:`).update(content ?? "");
  }
  return hash.digest("hex");
}

function contentOf(file: string): Buffer | undefined {
  try {
    const { size } = statSync(file);
    // Not one of ours then; a pipe would block, and its size is 0.
    return size > MAX_READ || size === 0 ? undefined : readFileSync(file);
  } catch {
    return undefined;
  }
}
