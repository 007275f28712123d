/** docs/clients.md shows the rows of the client matrix; whether they hold is for the matrix to say, which compares too. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { DOORS, ROWS, tableIn, tableOf } from "../support/clients/clients.ts";
import { tableRows } from "./repository.ts";

const PAGE = "docs/clients.md";

test("clients: the page shows the rows of the matrix, and no other", () => {
  const shown = tableRows(PAGE, ["client"]).map(([name, does, , , byHand]) => [name, does, byHand]);
  assert.deepEqual(
    shown,
    ROWS.map(({ name, does, byHand }) => [name, does, byHand || "nothing"]),
  );
});

test("tableOf: says of each door what its run showed, and of one that was not tried that it was not", () => {
  const [one, two] = ROWS;
  assert.ok(one && two);
  const table = tableOf([one, two], new Map([[one.name, { explicit: true, jail: false }]]));
  const lines = table.split("\n");
  assert.equal(tableIn(`Text\n\n${table}\n\nText`), table);
  assert.match(lines[0] ?? "", new RegExp(`\\| ${DOORS.join(" \\| ")} \\|`));
  assert.match(lines[2] ?? "", /\| yes \| no \| nothing \|$/);
  assert.match(lines[3] ?? "", /\| not tried \| not tried \| nothing \|$/);
});

test("clients: no row stands twice", () => {
  const names = ROWS.map(({ name }) => name);
  assert.deepEqual(names, [...new Set(names)]);
});
