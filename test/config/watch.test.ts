/** Changes are told however the file is replaced; everything else is not. */
import assert from "node:assert/strict";
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { watchConfig } from "../../src/config/watch.ts";

const root = mkdtempSync(join(tmpdir(), "sallyport-watch-"));
after(() => rmSync(root, { recursive: true, force: true }));
let folders = 0;

function newFolder(): string {
  const folder = join(root, String(folders++));
  mkdirSync(folder);
  return folder;
}

interface Watching {
  readonly calls: () => number;
  /** Resolves at the next call. */
  changed(): Promise<void>;
  reading(): void;
  close(): void;
}

function watching(file: string, extra: readonly string[] = []): Watching {
  let calls = 0;
  let wake: () => void = () => {};
  const watcher = watchConfig(file, extra, () => {
    calls++;
    wake();
  });
  return {
    calls: () => calls,
    changed: () =>
      new Promise((resolve) => {
        // The watch alone would not keep the test alive.
        const alive = setInterval(() => {}, 1_000);
        wake = () => {
          clearInterval(alive);
          resolve();
        };
      }),
    reading: () => watcher.reading(),
    close: () => watcher.close(),
  };
}

function testChange(name: string, prepare: (folder: string) => string, change: (folder: string) => void) {
  test(`watchConfig: ${name} is told once`, { timeout: 20_000 }, async () => {
    const folder = newFolder();
    const watcher = watching(prepare(folder));
    const changed = watcher.changed();
    change(folder);
    await changed;
    assert.equal(watcher.calls(), 1);
    watcher.close();
  });
}

function plainFile(folder: string): string {
  const file = join(folder, "c.yaml");
  writeFileSync(file, "one");
  return file;
}

testChange("a file written in place", plainFile, (folder) => writeFileSync(join(folder, "c.yaml"), "two"));

testChange("a file appended to in several steps", plainFile, (folder) => {
  for (let step = 0; step < 5; step++) appendFileSync(join(folder, "c.yaml"), "x");
});

testChange("a file replaced by renaming", plainFile, (folder) => {
  writeFileSync(join(folder, "c.new"), "two");
  renameSync(join(folder, "c.new"), join(folder, "c.yaml"));
});

testChange("a file that went away", plainFile, (folder) => rmSync(join(folder, "c.yaml")));

testChange("a file that appears", (folder) => join(folder, "c.yaml"), plainFile);

testChange(
  "a link exchanged as Kubernetes does",
  (folder) => {
    for (const version of ["v1", "v2"]) {
      mkdirSync(join(folder, version));
      writeFileSync(join(folder, version, "c.yaml"), version);
    }
    symlinkSync("v1", join(folder, "..data"));
    symlinkSync(join("..data", "c.yaml"), join(folder, "c.yaml"));
    return join(folder, "c.yaml");
  },
  (folder) => {
    symlinkSync("v2", join(folder, "..data_tmp"));
    renameSync(join(folder, "..data_tmp"), join(folder, "..data"));
  },
);

testChange(
  "a folder that comes into being",
  (folder) => join(folder, "later", "c.yaml"),
  (folder) => {
    mkdirSync(join(folder, "later"));
    plainFile(join(folder, "later"));
  },
);

test("watchConfig: a change back from what was read meanwhile is told", { timeout: 20_000 }, async () => {
  const file = plainFile(newFolder());
  const watcher = watching(file);
  writeFileSync(file, "two");
  watcher.reading();
  const changed = watcher.changed();
  writeFileSync(file, "one");
  await changed;
  assert.equal(watcher.calls(), 1);
  watcher.close();
});

test("watchConfig: other files, and writes that change nothing, are not told", {
  timeout: 20_000,
}, async () => {
  const folder = newFolder();
  const file = plainFile(folder);
  const extra = join(folder, "roots.pem");
  writeFileSync(extra, "one");
  const watcher = watching(file, [extra]);
  writeFileSync(join(folder, "other"), "x");
  writeFileSync(file, "one");
  utimesSync(file, 1, 1);
  // What comes later is told, so what came before was looked at.
  const first = watcher.changed();
  setTimeout(() => writeFileSync(extra, "two"), 300);
  await first;
  assert.equal(watcher.calls(), 1);
  watcher.close();
});

test("watchConfig: each change is told, and none after closing", { timeout: 20_000 }, async () => {
  const folder = newFolder();
  const file = plainFile(folder);
  const watcher = watching(file);
  const second = watching(file);
  for (const content of ["two", "three"]) {
    const changed = watcher.changed();
    writeFileSync(file, content);
    await changed;
  }
  assert.equal(watcher.calls(), 2);
  watcher.close();
  const changed = second.changed();
  writeFileSync(file, "four");
  await changed;
  assert.equal(watcher.calls(), 2);
  second.close();
});
