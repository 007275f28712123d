/** docs/records.md lists the fields of a record in their order, and its example has them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ExchangeRecord } from "../../src/model/record.ts";
import { renderRecord } from "../../src/record/render.ts";
import { namesOf, read, tableRows } from "./repository.ts";

const PAGE = "docs/records.md";

test("records.md: its fields are those of a record, in its order", () => {
  const record = { time: 0, client: "", injected: [], policy: "" } as unknown as ExchangeRecord;
  const fields = Object.keys(JSON.parse(renderRecord(record, "s", 1)) as object);
  const documented = tableRows(PAGE, ["field"]).flatMap(([first = ""]) => namesOf([first]));
  assert.deepEqual(documented, fields);
  const example = /```json\n(.*)\n```/.exec(read(PAGE))?.[1] ?? "";
  assert.deepEqual(Object.keys(JSON.parse(example) as object), fields);
});
