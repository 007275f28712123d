import assert from "node:assert/strict";
import { test } from "node:test";
import { type Enrolled, Roster, seatFor } from "../../src/base/roster.ts";

test("add takes each once, remove tells whether it was in", () => {
  const roster = new Roster<Named>();
  const [a, b] = [named("a"), named("b")];
  roster.add(a);
  roster.add(a);
  roster.add(b);
  assert.equal(roster.size, 2);
  assert.deepEqual([roster.remove(a), roster.remove(a)], [true, false]);
  assert.deepEqual(met(roster), ["b"]);
  roster.add(a);
  assert.deepEqual(met(roster).sort(), ["a", "b"]);
});

test("remove leaves one alone that is in another roster", () => {
  const [roster, other] = [new Roster<Named>(), new Roster<Named>()];
  const [a, b] = [named("a"), named("b")];
  roster.add(a);
  other.add(b);
  assert.equal(roster.remove(b), false);
  assert.deepEqual([met(roster), met(other)], [["a"], ["b"]]);
});

test("remove closes the gap wherever it is", () => {
  for (const leaver of ["a", "b", "c"]) {
    const roster = new Roster<Named>();
    const all = ["a", "b", "c"].map(named);
    for (const each of all) roster.add(each);
    for (const each of all.filter(({ name }) => name === leaver)) assert.equal(roster.remove(each), true);
    const left = all.filter(({ name }) => name !== leaver);
    assert.deepEqual(met(roster).sort(), left.map(({ name }) => name).sort());
    for (const each of left) assert.equal(roster.remove(each), true);
    assert.equal(roster.size, 0);
  }
});

test("each meets all that stay, and nobody who has left", () => {
  const names = ["a", "b", "c", "d"];
  for (const [leaver, at] of names.flatMap((leaver) => names.map((at) => [leaver, at] as const))) {
    const seen = goRound(names.map(named), leaver, at);
    assert.deepEqual(
      names.filter((name) => name !== leaver && !seen.includes(name)),
      [],
      `${leaver} leaves at ${at}`,
    );
    assert.equal(seen.indexOf(leaver) > seen.indexOf(at), false, `${leaver} leaves at ${at}: ${seen}`);
  }
});

function goRound(all: readonly Named[], leaver: string, at: string): readonly string[] {
  const roster = new Roster<Named>();
  for (const each of all) roster.add(each);
  const seen: string[] = [];
  roster.each(({ name }) => {
    seen.push(name);
    if (name !== at) return;
    for (const each of all) if (each.name === leaver) roster.remove(each);
    roster.add(named("late"));
  });
  return seen;
}

test("seatFor: one may be in a second roster by a seat", () => {
  const [roster, seats] = [new Roster<Named>(), new Roster<ReturnType<typeof seatFor<Named>>>()];
  const a = named("a");
  const seat = seatFor(a);
  roster.add(a);
  seats.add(seat);
  assert.equal(roster.remove(a), true);
  seats.each(({ holder }) => assert.equal(holder, a));
  assert.deepEqual([seats.size, seats.remove(seat), seats.size], [1, true, 0]);
});

interface Named extends Enrolled {
  readonly name: string;
}

function named(name: string): Named {
  return { name };
}

function met(roster: Roster<Named>): string[] {
  const names: string[] = [];
  roster.each(({ name }) => names.push(name));
  return names;
}
