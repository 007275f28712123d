/** docs/config.md and the JSON Schema name every key and every limit of the config, and no other. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { CONFIG_KEYS } from "../../src/config/keys.ts";
import { LIMIT_RULES } from "../../src/config/limits.ts";
import { formatDuration, formatSize } from "../../src/config/units.ts";
import { DEFAULT_LIMITS, type Limits } from "../../src/model/limits.ts";
import { differences, namesOf, read, tableRows } from "./repository.ts";

interface Schema {
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, Schema>>;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
}

const PAGE = "docs/config.md";

test("config.md: its tables of keys name the keys that are read, by their whole path", () => {
  const built = Object.entries(CONFIG_KEYS).filter(([section]) => section !== "limits");
  const documented = tableRows(PAGE, ["key"]).flatMap(namesOf);
  assert.deepEqual(differences(pathsOf(built), documented), []);
});

test("config.md: its table of limits has a row for each, with the default", () => {
  const rows = tableRows(PAGE, ["limit"]);
  assert.deepEqual(differences(Object.keys(DEFAULT_LIMITS), rows.flatMap(namesOf)), []);
  for (const row of rows) {
    const [name = ""] = namesOf(row);
    const value = defaultOf(name as keyof Limits);
    assert.ok(
      row.some((cell) => cell.replaceAll("`", "") === value),
      `${name}: no cell says ${value}`,
    );
  }
});

test("sallyport.schema.json: it offers the keys that are read", () => {
  const schema = JSON.parse(read("config/sallyport.schema.json")) as Schema;
  const offered = new Set(pathsIn(schema, schema, ""));
  assert.deepEqual(differences(pathsOf(Object.entries(CONFIG_KEYS)), offered), []);
});

function pathsOf(
  sections: readonly (readonly [section: string, keys: readonly string[]])[],
): readonly string[] {
  return sections.flatMap(([section, keys]) =>
    keys.map((key) => (section === "" ? key : `${section}.${key}`)),
  );
}

function defaultOf(name: keyof Limits): string {
  const value = DEFAULT_LIMITS[name];
  const { unit } = LIMIT_RULES[name];
  if (unit === "time") return value === 0 ? "0" : formatDuration(value);
  return unit === "size" ? formatSize(value) : String(value);
}

/** Every path of a property; a sandbox's `network` is the top one again and is not followed twice. */
function pathsIn(schema: Schema, top: Schema, at: string): readonly string[] {
  if (schema.$ref !== undefined) {
    return pathsIn(top.$defs?.[schema.$ref.replace("#/$defs/", "")] ?? {}, top, at);
  }
  const parts = [...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? [])];
  const properties = Object.entries(schema.properties ?? {}).flatMap(([key, value]) => {
    const path = at === "" ? key : `${at}.${key}`;
    return path === "sandboxes[].network" ? [path] : [path, ...pathsIn(value, top, path)];
  });
  const items = schema.items === undefined ? [] : pathsIn(schema.items, top, `${at}[]`);
  return [...properties, ...items, ...parts.flatMap((part) => pathsIn(part, top, at))];
}
