/** The table of docs/clients.md is the one that the rows of the client matrix make. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ROWS, tableOf } from "../support/clients/clients.ts";
import { read } from "./repository.ts";

test("clients: the page shows the rows that the matrix proves, and no other", () => {
  const page = read("docs/clients.md").split("\n");
  assert.deepEqual(
    page.filter((line) => line.startsWith("|")),
    tableOf(ROWS).split("\n"),
  );
});

test("clients: no row stands twice", () => {
  const names = ROWS.map(({ name }) => name);
  assert.deepEqual(names, [...new Set(names)]);
});
