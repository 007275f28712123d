/** The JSON Schema that editors use says of shipped and broken files what the readers say. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parseYaml } from "../../src/config/parse.ts";
import { loadText, plain } from "./support.ts";

interface Schema {
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, Schema>>;
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly pattern?: string;
  readonly minLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly uniqueItems?: boolean;
  readonly items?: Schema;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean | Schema;
  readonly anyOf?: readonly Schema[];
  readonly description?: string;
}

const ROOT = join(import.meta.dirname, "../..");
const TOP = JSON.parse(readFileSync(join(ROOT, "config/sallyport.schema.json"), "utf8")) as Schema;

function fits(value: unknown, schema: Schema): boolean {
  const target =
    schema.$ref === undefined ? {} : (TOP.$defs?.[schema.$ref.replace("#/$defs/", "")] ?? { enum: [] });
  return (
    (schema.$ref === undefined || fits(value, target)) &&
    (schema.anyOf?.some((each) => fits(value, each)) ?? true) &&
    (schema.const === undefined || value === schema.const) &&
    (schema.enum?.includes(value) ?? true) &&
    (schema.type === undefined || typeOf(value).includes(schema.type)) &&
    fitsScalar(value, schema) &&
    fitsList(value, schema) &&
    fitsMap(value, schema)
  );
}

function fitsScalar(value: unknown, schema: Schema): boolean {
  if (typeof value === "number") {
    return value >= (schema.minimum ?? value) && value <= (schema.maximum ?? value);
  }
  if (typeof value !== "string") return true;
  return (
    value.length >= (schema.minLength ?? 0) &&
    (schema.pattern === undefined || new RegExp(schema.pattern).test(value))
  );
}

function fitsList(value: unknown, { items, minItems = 0, uniqueItems }: Schema): boolean {
  if (!Array.isArray(value)) return true;
  if (value.length < minItems || (uniqueItems === true && new Set(value).size < value.length)) return false;
  return items === undefined || value.every((item) => fits(item, items));
}

function fitsMap(
  value: unknown,
  { properties = {}, additionalProperties = true, required = [] }: Schema,
): boolean {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return true;
  if (required.some((key) => !Object.hasOwn(value, key))) return false;
  return Object.entries(value).every(([key, member]) => {
    const schema = properties[key] ?? additionalProperties;
    return typeof schema === "boolean" ? schema : fits(member, schema);
  });
}

function typeOf(value: unknown): readonly string[] {
  if (value === null) return ["null"];
  if (Array.isArray(value)) return ["array"];
  return Number.isInteger(value) ? ["integer", "number"] : [typeof value];
}

function readYaml(text: string): unknown {
  const parsed = parseYaml(text);
  assert.ok(parsed.ok);
  return plain(parsed.root);
}

for (const file of globSync(["config/*.yaml", "config/examples/*.yaml"], { cwd: ROOT })) {
  test(`sallyport.schema.json: ${file} fits`, () => {
    assert.ok(fits(readYaml(readFileSync(join(ROOT, file), "utf8")), TOP));
  });
}

const BOTH_TAKE = [
  "version: 1\n",
  "version: 1\nnetwork: disabled\n",
  "version: 1\nnetwork:\nlimits:\nca:\n",
  'version: 1\nlisten: { proxy: "[::]:0", admin: { address: 127.0.0.1:1, token: x } }\nworkers: 8\n',
  "version: 1\nnetwork: { allowlist: [ { domain: a.example, transform: [ { A: b } ], ports: [1], methods: [GET] } ] }\n",
  "version: 1\nlimits: { head_timeout: 10s, head_bytes: 64KiB, connections: 5, tunnel_lifetime: 0, hello_bytes: 4096 }\n",
  'version: 1\nsandboxes: [ { id: a, source: [10.0.0.1], mac: "02:00:00:00:00:11", network: { allowlist: [] } } ]\n',
  "version: 1\nupstream: { dns: { servers: [10.0.0.1], hosts: { a.example: [10.0.0.1] } }, ca_file: x }\n",
];

const BOTH_REFUSE = [
  "network: disabled\n",
  "version: 2\n",
  "version: 1\nnetwork: enabled\n",
  "version: 1\nnetwrok: disabled\n",
  "version: 1\nnetwork: { allowlist: [ { domain: a.example, port: [1] } ] }\n",
  "version: 1\nnetwork: { allowlist: [ { ports: [1] } ] }\n",
  "version: 1\nnetwork: { allowlist: [ { domain: a.example, ports: [0] } ] }\n",
  "version: 1\nnetwork: { allowlist: [ { domain: a.example, ports: [1, 1] } ] }\n",
  "version: 1\nnetwork: { allowlist: [ { domain: a.example, methods: } ] }\n",
  "version: 1\nnetwork: { allowlist: [ { domain: a.example, transform: text } ] }\n",
  "version: 1\nnetwork: { allowlist: [ { domain: a.example, intercept: sometimes } ] }\n",
  "version: 1\nlisten: { proxy: localhost:80 }\n",
  "version: 1\nlisten: { admin: 127.0.0.1:80 }\n",
  "version: 1\nworkers: 0\n",
  "version: 1\nmode: evaluate-only\n",
  "version: 1\nlimits: { head_timeout: 10 }\n",
  "version: 1\nlimits: { head_bytes: 64KB }\n",
  "version: 1\nsandboxes: [ { source: [10.0.0.1] } ]\n",
  "version: 1\nsandboxes: [ { id: a b, source: [10.0.0.1] } ]\n",
];

test("sallyport.schema.json: it takes what the readers take", () => {
  for (const text of BOTH_TAKE) {
    assert.ok(loadText(text).ok, text);
    assert.ok(fits(readYaml(text), TOP), text);
  }
});

test("sallyport.schema.json: it refuses what the readers refuse, as far as a schema can", () => {
  for (const text of BOTH_REFUSE) {
    assert.ok(!loadText(text).ok, text);
    assert.ok(!fits(readYaml(text), TOP), text);
  }
});

test("sallyport.schema.json: every key of every map is described, and no other is let in", () => {
  const maps = Object.entries(TOP.$defs ?? {}).concat([["top", TOP]]);
  for (const [name, schema] of maps) check(name, schema);
});

function check(path: string, schema: Schema): void {
  if (schema.properties !== undefined) assert.equal(schema.additionalProperties, false, path);
  for (const [key, member] of Object.entries(schema.properties ?? {})) {
    const target = TOP.$defs?.[member.$ref?.replace("#/$defs/", "") ?? ""];
    assert.ok((member.description ?? target?.description) !== undefined, `${path}.${key}`);
    check(`${path}.${key}`, member);
  }
  for (const each of [...(schema.anyOf ?? []), ...(schema.items === undefined ? [] : [schema.items])])
    check(path, each);
}
