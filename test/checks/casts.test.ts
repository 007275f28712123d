/** A proof that a cast could make would prove nothing: the places that may make one are named here. */
import assert from "node:assert/strict";
import { test } from "node:test";
import ts from "typescript";
import { filesIn, syntaxOf } from "./repository.ts";

/** Branded types, and the one file that may cast to them. */
const MINTS: ReadonlyMap<string, string> = new Map([
  ["Permit", "src/decide/proofs.ts"],
  ["Dialable", "src/decide/proofs.ts"],
  ["Hostname", "src/base/hostname.ts"],
]);

test("casts: Permit, Dialable and Hostname are made in one file each", () => {
  const strays = filesIn("src", ".ts").flatMap((file) => castsIn(syntaxOf(file), file));
  assert.deepEqual(strays, []);
});

test("casts: a cast is seen in every spelling", () => {
  const spellings = [
    "const a = x as Permit;",
    "const a = x as unknown as Permit;",
    "const a = x as readonly Permit[];",
    "const a = <Dialable>x;",
    "const a = x as never;",
    "import type { Hostname as Name } from './exchange.ts';",
    "const a = x as model.Hostname;",
  ];
  for (const text of spellings) {
    const file = ts.createSourceFile("src/x.ts", text, ts.ScriptTarget.ESNext, true);
    assert.equal(castsIn(file, "src/x.ts").length, 1, text);
  }
  const fine = ts.createSourceFile("src/x.ts", "const a: Permit = make(); const b = y as const;", 99, true);
  assert.deepEqual(castsIn(fine, "src/x.ts"), []);
});

function castsIn(source: ts.SourceFile, file: string): readonly string[] {
  const found: string[] = [];
  function look(node: ts.Node): void {
    const line = source.getLineAndCharacterOfPosition(node.getStart()).line + 1;
    for (const name of namesMade(node)) if (MINTS.get(name) !== file) found.push(`${file}:${line} ${name}`);
    ts.forEachChild(node, look);
  }
  look(source);
  return found;
}

/** What this node makes by cast, or hides behind another name. `never` fits every type, so it is a cast to all. */
function namesMade(node: ts.Node): readonly string[] {
  if (ts.isImportSpecifier(node))
    return branded(node.propertyName === undefined ? [] : [node.propertyName.text]);
  if (!ts.isAsExpression(node) && !ts.isTypeAssertionExpression(node)) return [];
  return node.type.kind === ts.SyntaxKind.NeverKeyword ? ["never"] : branded(identifiersIn(node.type));
}

function branded(names: readonly string[]): readonly string[] {
  return names.filter((name) => MINTS.has(name));
}

function identifiersIn(node: ts.Node): readonly string[] {
  if (ts.isIdentifier(node)) return [node.text];
  const names: string[] = [];
  ts.forEachChild(node, (child) => {
    names.push(...identifiersIn(child));
  });
  return names;
}
