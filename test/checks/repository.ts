/** What the checks know of this repository: its files, their syntax, the tables of its docs. */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";

export const ROOT: string = join(import.meta.dirname, "../..");

/** Paths of the files below `folder` that end with `ending`, relative to the root, sorted. */
export function filesIn(folder: string, ending: string): readonly string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(ending))
    .map((file) => `${folder}/${file}`)
    .sort();
}

/** What git tracks or would track: the files that reach others. */
export function trackedFiles(): readonly string[] {
  const listing = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], {
    cwd: ROOT,
    encoding: "utf8",
  });
  return listing.split("\0").filter((file) => file !== "");
}

export function read(file: string): string {
  return readFileSync(join(ROOT, file), "utf8");
}

export function syntaxOf(file: string): ts.SourceFile {
  return ts.createSourceFile(file, read(file), ts.ScriptTarget.ESNext, true);
}

/** Whether any node below this one satisfies the test. */
export function some(node: ts.Node, test: (node: ts.Node) => boolean): boolean {
  return test(node) || (ts.forEachChild(node, (child) => some(child, test) || undefined) ?? false);
}

/** The members of `type name = "a" | "b"` in a file of `src/model/`. */
export function unionOf(file: string, name: string): readonly string[] {
  const alias = syntaxOf(file).statements.find(
    (statement): statement is ts.TypeAliasDeclaration =>
      ts.isTypeAliasDeclaration(statement) && statement.name.text === name,
  );
  if (alias === undefined || !ts.isUnionTypeNode(alias.type)) throw new Error(`${file} has no union ${name}`);
  return alias.type.types.map((member) => {
    if (!ts.isLiteralTypeNode(member) || !ts.isStringLiteral(member.literal)) {
      throw new Error(`${name} in ${file} has a member that is not a string`);
    }
    return member.literal.text;
  });
}

/** One row of a Markdown table: the cells, trimmed. */
export type Row = readonly string[];

/** The rows of every table of a page whose first heading cell is one of `headings`, in lower case. */
export function tableRows(file: string, headings: readonly string[]): readonly Row[] {
  const rows: Row[] = [];
  let wanted = false;
  let inside = false;
  for (const line of read(file).split("\n")) {
    if (!line.startsWith("|")) {
      inside = false;
      continue;
    }
    const cells = cellsOf(line);
    if (!inside) {
      inside = true;
      wanted = headings.includes((cells[0] ?? "").toLowerCase());
    } else if (wanted && !/^:?-+:?$/.test(cells[0] ?? "")) {
      rows.push(cells);
    }
  }
  return rows;
}

/** The backticked words of a row's first cell, labels in braces dropped. */
export function namesOf(row: Row): readonly string[] {
  return [...(row[0] ?? "").matchAll(/`([^`{]+)(?:\{[^`]*)?`/g)].map((match) => match[1] ?? "");
}

/** Compares what the code has with what a page says, both ways, each name once. */
export function differences(code: Iterable<string>, page: Iterable<string>): readonly string[] {
  const inCode = new Set(code);
  const listed = [...page];
  const inPage = new Set(listed);
  return [
    ...[...inCode].filter((name) => !inPage.has(name)).map((name) => `${name} is not documented`),
    ...[...inPage]
      .filter((name) => !inCode.has(name))
      .map((name) => `${name} is documented and does not exist`),
    ...listed
      .filter((name, index) => listed.indexOf(name) !== index)
      .map((name) => `${name} is listed twice`),
  ];
}

/** `\|` inside a cell is a bar of its text. */
function cellsOf(line: string): Row {
  return line
    .slice(1)
    .split(/(?<!\\)\|/)
    .slice(0, -1)
    .map((cell) => cell.trim().replaceAll("\\|", "|"));
}
