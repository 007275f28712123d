import assert from "node:assert/strict";
import { test } from "node:test";
import { labelIdsOf } from "../../src/record/label-ids.ts";
import { buildSource } from "../decide/build.ts";

test("labelIdsOf names every rule and every sandbox once, whichever network a rule is of", () => {
  const source = buildSource({});
  const rule = (id: string) => ({ id }) as never;
  const network = { kind: "enabled", rules: [rule("a"), rule("b")], denylist: [rule("c")] } as never;
  const box = (id: string, own: typeof source.network) => ({ id, network: own }) as never;
  const ids = labelIdsOf({
    ...source,
    network,
    denylist: [rule("z"), rule("a")],
    sandboxes: [box("one", network), box("two", { kind: "disabled" })],
  });
  assert.deepEqual(ids, { rules: ["z", "a", "b", "c"], sandboxes: ["one", "two"] });
});
