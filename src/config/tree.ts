/** A parsed config text: values with the place they stand at. Types only; `parse.ts` makes them. */

export interface Position {
  /** From 1. */
  readonly line: number;
  /** From 1. */
  readonly column: number;
}

export type TreeNode = ScalarNode | ListNode | MapNode;

export interface ScalarNode {
  readonly kind: "scalar";
  readonly at: Position;
  readonly value: string | number | boolean | null;
  /** A number as it was written; empty for other values. */
  readonly source: string;
}

export interface ListNode {
  readonly kind: "list";
  readonly at: Position;
  readonly items: readonly TreeNode[];
}

export interface MapNode {
  readonly kind: "map";
  readonly at: Position;
  /** In the order of the file; keys are unique. */
  readonly entries: readonly MapEntry[];
}

export interface MapEntry {
  readonly key: string;
  readonly keyAt: Position;
  readonly value: TreeNode;
}

export type ParseResult =
  | { readonly ok: true; readonly root: TreeNode }
  | { readonly ok: false; readonly problems: readonly ParseProblem[] };

export interface ParseProblem {
  readonly at: Position;
  /** Quotes nothing but keys and anchors. */
  readonly message: string;
}
