/** Shared by the codec's tests: heads from lines, and what a refusal must look like. */
import assert from "node:assert/strict";
import type { Field } from "../../src/model/exchange.ts";
import { Failure, type FailureCode } from "../../src/model/failure.ts";
import { DEFAULT_LIMITS, type Limits } from "../../src/model/limits.ts";

export const limits: Limits = DEFAULT_LIMITS;

/** Start line and field lines, in latin1, with the empty line. */
export function headBytes(...lines: string[]): Buffer {
  return latin1(`${lines.join("\r\n")}\r\n\r\n`);
}

export function latin1(text: string): Buffer {
  return Buffer.from(text, "latin1");
}

export function field(name: string, value: string): Field {
  return { name, key: name.toLowerCase(), value };
}

/** For `assert.throws`: a Failure of this code and status, whose message quotes nothing of the input. */
export function failure(code: FailureCode, status?: number): (error: unknown) => true {
  return (error) => {
    assert.ok(error instanceof Failure, `not a Failure: ${String(error)}`);
    assert.deepEqual({ code: error.code, status: error.status }, { code, status });
    assert.match(error.message, /^[A-Z][A-Za-z0-9./ -]*[A-Za-z0-9]$/);
    return true;
  };
}
