/** Only `forward/` opens connections: elsewhere nothing that dials can be named. Types may be. */
import assert from "node:assert/strict";
import { test } from "node:test";
import ts from "typescript";
import { filesIn, syntaxOf } from "./repository.ts";

/** What dials, by module; `*` is the module itself, as a namespace or by default. */
const DIALS: ReadonlyMap<string, readonly string[]> = new Map([
  ["node:net", ["*", "connect", "createConnection", "Socket", "Stream"]],
  ["node:tls", ["*", "connect"]],
  ["node:http", ["*", "request", "get", "Agent", "ClientRequest", "globalAgent"]],
  ["node:https", ["*", "request", "get", "Agent", "globalAgent"]],
  ["node:http2", ["*", "connect"]],
  ["node:dgram", ["*", "createSocket", "Socket"]],
]);

/** Not the gate: a client inside the sandbox, whose traffic passes the gate, and an operator's who asks its pages. */
const CLIENTS = ["src/hooks/http-post.ts", "src/cli/approve.ts"];

/** Datagrams know no listener: the one socket that the DNS front answers on, and those that a helper hands over. */
const DATAGRAMS = ["src/accept/datagram-listener.ts", "src/sandbox/helper.ts"];

test("dials: outside forward/ no module offers a way to open a connection", () => {
  const found = filesIn("src", ".ts")
    .filter((file) => !file.startsWith("src/forward/") && !CLIENTS.includes(file))
    .flatMap((file) => dialsIn(syntaxOf(file)).map((name) => `${file}: ${name}`))
    .filter((line) => !DATAGRAMS.some((file) => line === `${file}: createSocket of node:dgram`));
  assert.deepEqual(found, []);
});

test("dials: every spelling of an import is seen, and types pass", () => {
  const breaches = [
    "import { connect } from 'node:net';",
    "import { Socket as S } from 'node:net';",
    "import net from 'node:net';",
    "import * as tls from 'node:tls';",
    "const net = await import('node:net');",
    "const net = require('node:net');",
    "const net = process.getBuiltinModule('node:net');",
    "import { connect } from 'net';",
    "export { connect } from 'node:net';",
    "export * from 'node:net';",
  ];
  for (const text of breaches) assert.equal(dialsIn(parse(text)).length, 1, text);
  const fine = [
    "import type { Socket } from 'node:net';",
    "import { createServer, type Socket } from 'node:net';",
  ];
  for (const text of fine) assert.deepEqual(dialsIn(parse(text)), [], text);
});

function parse(text: string): ts.SourceFile {
  return ts.createSourceFile("x.ts", text, ts.ScriptTarget.ESNext, true);
}

function dialsIn(source: ts.SourceFile): readonly string[] {
  const found: string[] = [];
  function look(node: ts.Node): void {
    for (const [module, name] of takenBy(node)) {
      const full = module.startsWith("node:") ? module : `node:${module}`;
      if (DIALS.get(full)?.includes(name)) found.push(`${name} of ${full}`);
    }
    ts.forEachChild(node, look);
  }
  look(source);
  return found;
}

/** The pairs of module and name that a node takes as values. */
function takenBy(node: ts.Node): readonly (readonly [module: string, name: string])[] {
  if (ts.isImportDeclaration(node) && ts.isStringLiteral(node.moduleSpecifier)) {
    return namesImported(node.importClause).map((name) => [textOf(node.moduleSpecifier), name]);
  }
  if (ts.isExportDeclaration(node) && node.moduleSpecifier !== undefined && !node.isTypeOnly) {
    return namesExported(node.exportClause).map((name) => [textOf(node.moduleSpecifier), name]);
  }
  const [first] = ts.isCallExpression(node) ? node.arguments : [];
  const loads =
    ts.isCallExpression(node) && /^(import|require|.*getBuiltinModule)$/.test(node.expression.getText());
  return loads && first !== undefined ? [[textOf(first), "*"]] : [];
}

function namesImported(clause: ts.ImportClause | undefined): readonly string[] {
  if (clause === undefined || clause.phaseModifier === ts.SyntaxKind.TypeKeyword) return [];
  const bindings = clause.namedBindings;
  const whole =
    clause.name !== undefined || (bindings !== undefined && ts.isNamespaceImport(bindings)) ? ["*"] : [];
  return bindings !== undefined && ts.isNamedImports(bindings)
    ? [...whole, ...valuesOf(bindings.elements)]
    : whole;
}

function namesExported(clause: ts.NamedExportBindings | undefined): readonly string[] {
  return clause !== undefined && ts.isNamedExports(clause) ? valuesOf(clause.elements) : ["*"];
}

function valuesOf(specifiers: readonly (ts.ImportSpecifier | ts.ExportSpecifier)[]): readonly string[] {
  return specifiers
    .filter(({ isTypeOnly }) => !isTypeOnly)
    .map(({ propertyName, name }) => (propertyName ?? name).text);
}

function textOf(node: ts.Expression | undefined): string {
  return node !== undefined && ts.isStringLiteralLike(node) ? node.text : "";
}
