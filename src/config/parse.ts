/** YAML text to a tree with positions, within bounded time whatever the text. The only adapter of `yaml`. Pure. */
import type { Alias, Document, ErrorCode, Node, Pair, YAMLMap } from "yaml";
import { Composer, isAlias, isMap, isScalar, isSeq, Lexer, LineCounter, Parser } from "yaml";
import { quoteName } from "./report.ts";
import type { MapEntry, ParseProblem, ParseResult, Position, ScalarNode, TreeNode } from "./tree.ts";

/** About twice what a file of 1 MiB made of short rules takes. */
const MAX_LEXEMES = 600_000;
/** Collections inside each other; each takes one or two places on the parser's stack (CVE-2026-33532). */
const MAX_STACK = 100;
/** Nodes that aliases may add to those written out: an alias bomb has millions (CVE-2023-2251 and kin). */
const MAX_ALIASED_NODES = 50_000;
const MAX_PROBLEMS = 20;

const OPTIONS = {
  // Ours is linear; theirs compares every key with every other.
  uniqueKeys: false,
  prettyErrors: false,
  strict: true,
  schema: "core",
  merge: false,
  stringKeys: true,
  logLevel: "silent",
} as const;

/** Our own sentences: the library's may quote the text, and the text may be a secret. */
const SENTENCES: Readonly<Record<ErrorCode, string>> = {
  ALIAS_PROPS: "An alias takes neither an anchor nor a tag",
  BAD_ALIAS: "`*` starts an alias in YAML; a pattern with `*` needs quotes",
  BAD_COLLECTION_TYPE: "Tags are not supported",
  BAD_DIRECTIVE: "Directives are not supported",
  BAD_DQ_ESCAPE: "Unknown escape in double quotes; a backslash is written `\\\\`, or use single quotes",
  BAD_INDENT: "This line is not indented as its neighbours are, or a bracket is not closed",
  BAD_PROP_ORDER: "An anchor or tag stands in the wrong place",
  BAD_SCALAR_START: "This character cannot start a plain value; put the value in quotes",
  BLOCK_AS_IMPLICIT_KEY: "A second `key:` on one line; a value with `: ` in it needs quotes",
  BLOCK_IN_FLOW: "A block cannot stand inside brackets or braces",
  DUPLICATE_KEY: "Duplicate key",
  IMPOSSIBLE: "This cannot be read as YAML",
  KEY_OVER_1024_CHARS: "A key has more than 1,024 characters",
  MISSING_CHAR: "A comma, colon, quote or bracket is missing",
  MULTILINE_IMPLICIT_KEY: "A key goes over several lines, or a `:` is missing",
  MULTIPLE_ANCHORS: "A value has more than one anchor",
  MULTIPLE_DOCS: "The file holds more than one document",
  MULTIPLE_TAGS: "Tags are not supported",
  NON_STRING_KEY: "A key must be plain text",
  RESOURCE_EXHAUSTION: "The file is nested too deeply",
  TAB_AS_INDENT: "A tab cannot indent; use spaces",
  TAG_RESOLVE_FAILED: "Tags are not supported",
  UNEXPECTED_TOKEN: "This is not expected here; a value with `{ } [ ] , #` in it needs quotes",
};

type Token = Parameters<Composer["next"]>[0];
type Located = { readonly offset: number; readonly message: string };

/** Reads one document of plain YAML 1.2: no tags, directives, merge keys or duplicate keys; aliases within bounds. */
export function parseYaml(text: string): ParseResult {
  const lines = new LineCounter();
  lines.addNewLine(0);
  try {
    const root = new TreeBuilder(lines).build(compose(text, lines));
    return { ok: true, root };
  } catch (error) {
    return { ok: false, problems: describe(error, lines) };
  }
}

/** Why a text is no config, at one or more places. Thrown and caught in this file alone. */
class Unreadable extends Error {
  readonly places: readonly Located[];

  constructor(places: readonly Located[]) {
    super("Unreadable");
    this.places = places;
  }
}

function describe(error: unknown, lines: LineCounter): readonly ParseProblem[] {
  // What else can be thrown is a stack overflow in the library, on a stack that was nearly full when we were called.
  const places =
    error instanceof Unreadable ? error.places : [{ offset: 0, message: SENTENCES.RESOURCE_EXHAUSTION }];
  return places.map(({ offset, message }) => ({ at: position(lines, offset), message }));
}

function position(lines: LineCounter, offset: number): Position {
  const { line, col } = lines.linePos(offset);
  return { line, column: col };
}

/** The one document of a text, or `Unreadable`. */
function compose(text: string, lines: LineCounter): Node {
  const composer = new Composer(OPTIONS);
  // There is always one, be it empty.
  const first = composer.compose(tokenize(text, lines), true, text.length).next();
  const document = first.value as Document.Parsed;
  // What it warns of are directives and tags.
  const errors = [...document.errors, ...document.warnings].map(({ pos, code }) => ({
    offset: pos[0],
    message: SENTENCES[code],
  }));
  if (errors.length > 0) throw new Unreadable(errors.slice(0, MAX_PROBLEMS));
  const { yaml, tags } = document.directives;
  if (yaml.explicit === true || Object.keys(tags).length > 1) throw unreadable(0, SENTENCES.BAD_DIRECTIVE);
  if (document.contents === null) throw unreadable(0, "The file is empty");
  return document.contents;
}

/** The tokens of one document. */
function tokenize(text: string, lines: LineCounter): readonly Token[] {
  const tokens: Token[] = [];
  let documents = 0;
  for (const token of streamTokens(text, new Parser(lines.addNewLine))) {
    if (token.type === "error") throw unreadable(token.offset, SENTENCES.UNEXPECTED_TOKEN);
    if (token.type === "document" && documents++ > 0) throw unreadable(token.offset, SENTENCES.MULTIPLE_DOCS);
    tokens.push(token);
  }
  return tokens;
}

/** Lexes and parses piece by piece, so that a hostile text is given up on before it is read to its end. */
function* streamTokens(text: string, parser: Parser): Generator<Token> {
  let lexemes = 0;
  for (const lexeme of new Lexer().lex(text)) {
    yield* parser.next(lexeme);
    if (++lexemes > MAX_LEXEMES) throw unreadable(parser.offset, "The file has too many parts");
    if (parser.stack.length > MAX_STACK) throw unreadable(parser.offset, SENTENCES.RESOURCE_EXHAUSTION);
  }
  yield* parser.end();
}

function unreadable(offset: number, message: string): Unreadable {
  return new Unreadable([{ offset, message }]);
}

/** A finished node behind an anchor, and how many nodes it stands for once its own aliases are followed. */
type Anchored = { readonly node: TreeNode; readonly weight: number };

class TreeBuilder {
  private readonly lines: LineCounter;
  private readonly anchors = new Map<string, Anchored>();
  private total = 0;
  private aliased = 0;

  constructor(lines: LineCounter) {
    this.lines = lines;
  }

  build(node: Node): TreeNode {
    if (isAlias(node)) return this.follow(node);
    const before = this.total++;
    if (node.tag !== undefined) throw unreadable(start(node), SENTENCES.TAG_RESOLVE_FAILED);
    const built = this.convert(node);
    const { anchor } = node as { anchor?: string };
    if (anchor !== undefined) this.anchors.set(anchor, { node: built, weight: this.total - before });
    return built;
  }

  private convert(node: Node): TreeNode {
    const at = position(this.lines, start(node));
    if (isMap(node)) return { kind: "map", at, entries: this.entries(node) };
    if (isSeq(node)) {
      return { kind: "list", at, items: node.items.map((item) => this.build(item as Node)) };
    }
    return scalar(at, node);
  }

  private entries(map: YAMLMap): readonly MapEntry[] {
    const lineOfKey = new Map<string, number>();
    return map.items.map((pair: Pair) => {
      const { key, offset } = readKey(pair);
      const keyAt = position(this.lines, offset);
      if (key === "<<") throw unreadable(offset, "Merge keys are not supported; write the keys out");
      const first = lineOfKey.get(key);
      if (first !== undefined) {
        throw unreadable(offset, `Duplicate key ${quoteName(key)}; it is on line ${first} already`);
      }
      lineOfKey.set(key, keyAt.line);
      return { key, keyAt, value: this.value(pair, keyAt) };
    });
  }

  private value(pair: Pair, keyAt: Position): TreeNode {
    // `? key` without a value has no node.
    if (pair.value === null) return { kind: "scalar", at: keyAt, value: null, source: "" };
    return this.build(pair.value as Node);
  }

  /** An alias is the very node that its anchor stands at, so problems point there. */
  private follow(alias: Alias): TreeNode {
    const target = this.anchors.get(alias.source);
    if (target === undefined) {
      throw unreadable(
        start(alias),
        `No anchor ${quoteName(alias.source)} stands before this alias; a pattern with \`*\` needs quotes`,
      );
    }
    this.total += target.weight;
    this.aliased += target.weight;
    if (this.aliased > MAX_ALIASED_NODES) throw unreadable(start(alias), "Aliases make the file too large");
    return target.node;
  }
}

function readKey(pair: Pair): { readonly key: string; readonly offset: number } {
  const node = pair.key as Node;
  const offset = start(node);
  if (!isScalar(node) || typeof node.value !== "string" || node.tag !== undefined) {
    throw unreadable(offset, SENTENCES.NON_STRING_KEY);
  }
  return { key: node.value, offset };
}

function scalar(at: Position, node: Node): ScalarNode {
  // A plain scalar, which a number is, has its source.
  const { value, source } = node as { value: string | number | boolean | null; source: string };
  return { kind: "scalar", at, value, source: typeof value === "number" ? source : "" };
}

/** Every node that was parsed has a range. */
function start(node: Node): number {
  return (node.range as readonly number[])[0] as number;
}
