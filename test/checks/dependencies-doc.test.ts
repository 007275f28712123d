/** Dependencies are pinned exactly, and docs/DEPENDENCIES.md has a row for each that runs. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { differences, filesIn, namesOf, read, tableRows } from "./repository.ts";

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

const PAGE = "docs/DEPENDENCIES.md";
const manifest = JSON.parse(read("package.json")) as Manifest;

test("package.json: every version is exact", () => {
  const loose = Object.entries({ ...manifest.dependencies, ...manifest.devDependencies }).filter(
    ([, version]) => !/^\d+\.\d+\.\d+$/.test(version),
  );
  assert.deepEqual(loose, []);
});

test("DEPENDENCIES.md: its rows are the runtime dependencies", () => {
  const documented = tableRows(PAGE, ["package"]).flatMap(namesOf);
  assert.deepEqual(differences(Object.keys(manifest.dependencies), documented), []);
});

test("DEPENDENCIES.md: each row has the pinned version and the place that imports the package", () => {
  for (const row of tableRows(PAGE, ["package"])) {
    const [name = ""] = namesOf(row);
    assert.equal(row[1], manifest.dependencies[name], name);
    const importers = filesIn("src", ".ts").filter((file) => read(file).includes(`from "${name}`));
    const place = (row[2] ?? "").replaceAll("`", "");
    assert.notEqual(importers.length, 0, `${name} is imported nowhere`);
    assert.deepEqual(
      importers.filter((file) => !file.startsWith(place)),
      [],
      name,
    );
  }
});
