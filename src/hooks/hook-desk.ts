/** Where exchanges are put to the operator's hooks: numbers the emissions, runs them within bounds, keeps their records. */
import type { Question } from "../model/exchange.ts";
import type { HookOptions, HookPoint, HookSource } from "../model/policy.ts";
import type { ExchangeRecord } from "../model/record.ts";
import { runBounded } from "./bounded-process.ts";
import type { Emitted, Interceptor } from "./emission.ts";
import { emit } from "./emit.ts";
import {
  argsOf,
  contextAfter,
  contextBefore,
  type Envelope,
  type FieldSetting,
  forbidsWriting,
  settingsOf,
} from "./exchange-context.ts";
import type { JsonObject } from "./jcs.ts";
import { createTurnstile } from "./turnstile.ts";
import { ALLOW, type Verdict } from "./verdict.ts";

interface Summary {
  readonly name: string;
  readonly reason?: string;
}

type HttpHandler = Extract<HookSource["handler"], { kind: "http" }>;

export interface DeskOptions {
  /** Names this process's life, as in records. */
  readonly session: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Takes one line of JSON, its end included: ASCII, whatever a hook wrote. */
  readonly write: (line: string) => void;
  /** Told what went wrong with a hook, for the operator: what the hook itself said is in `said`. */
  readonly failed: (hook: string, problem: string, said: string) => void;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

export interface HookOrder {
  /** Those that cover the destination, in the order of the file. */
  readonly hooks: readonly HookSource[];
  readonly options: HookOptions;
  readonly question: Question;
  /** Keys of the fields that the gate injects: no hook sets those. */
  readonly injected: readonly string[];
  /** Asks over HTTP; resolves with the body of a 2xx. */
  readonly post: (handler: HttpHandler, body: string, signal: AbortSignal) => Promise<string>;
  /** Asks a person about a denial that may be lifted; undefined: nobody is there. */
  readonly consult: ((verdict: Verdict) => Promise<boolean>) | undefined;
  /** Aborted: the client went away. */
  readonly signal: AbortSignal;
}

export interface HookAnswer {
  readonly verdict: Verdict;
  readonly settings: readonly FieldSetting[];
  /** To be told of the outcome; undefined where no hook wants to know. */
  readonly after: ((record: ExchangeRecord) => void) | undefined;
}

export interface HookDesk {
  /** Never rejects. */
  ask(order: HookOrder): Promise<HookAnswer>;
  /** Ends what is still running, and resolves once its records are written. */
  close(): Promise<void>;
}

/** Programs at once, and those that wait; a wait counts as the hook's own time. */
const RUNNING = 32;
const WAITING = 1_024;
const MAX_VERDICT_BYTES = 65_536;
/** What a program needs to run at all. The rest of the gate's environment may be secret. */
const PASSED_ON = ["PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR"];

export function createHookDesk(options: DeskOptions): HookDesk {
  return new Desk(options);
}

class Desk implements HookDesk {
  readonly #options: DeskOptions;
  readonly #env: Readonly<Record<string, string | undefined>>;
  readonly #programs = createTurnstile(RUNNING, WAITING);
  readonly #closing = new AbortController();
  readonly #telling = new Set<Promise<unknown>>();
  #sequence = -1;
  #calls = 0;

  constructor(options: DeskOptions) {
    this.#options = options;
    this.#env = Object.fromEntries(
      PASSED_ON.filter((name) => options.env[name] !== undefined).map((name) => [name, options.env[name]]),
    );
  }

  async ask(order: HookOrder): Promise<HookAnswer> {
    this.#calls += 1;
    const call = `x-${this.#calls}`;
    const args = argsOf(order.question, [...new Set(order.hooks.flatMap(({ maySet }) => maySet))]);
    const asked = order.hooks.filter(wants("pre_tool_call"));
    const told = order.hooks.filter(wants("post_tool_call"));
    const emitted =
      asked.length === 0 ? undefined : await this.#emitBefore({ ...order, hooks: asked }, args, call);
    const final = emitted?.target ?? args;
    return {
      verdict: emitted?.verdict ?? ALLOW,
      settings: settingsOf(args, final),
      after:
        told.length === 0
          ? undefined
          : (record) => this.#tell({ ...order, hooks: told }, final as JsonObject, call, record),
    };
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.allSettled(this.#telling);
  }

  async #emitBefore(order: HookOrder, args: JsonObject, call: string): Promise<Emitted> {
    const { options } = order;
    const emitted = await emit({
      context: contextBefore(args, this.#envelope(call)),
      interceptors: order.hooks.map((hook) => this.#interceptor(hook, order)),
      mode: options.mode,
      composition: options,
      signal: AbortSignal.any([order.signal, this.#closing.signal]),
      consult: order.consult,
    });
    this.#write(emitted.record);
    return emitted;
  }

  /** What has left cannot be called back: the verdict is an opinion, and the record says so. */
  #tell(order: HookOrder, args: JsonObject, call: string, record: ExchangeRecord): void {
    if (this.#telling.size >= WAITING || this.#closing.signal.aborted) return;
    const telling = emit({
      context: contextAfter(args, this.#envelope(call), record),
      interceptors: order.hooks.map((hook) => this.#interceptor({ ...hook, maySet: [] }, order)),
      mode: "evaluate_only",
      composition: order.options,
      signal: this.#closing.signal,
    }).then((emitted) => this.#write(emitted.record));
    this.#telling.add(telling);
    void telling.finally(() => this.#telling.delete(telling));
  }

  /** What was answered and is no verdict has been told of by nobody yet. */
  #write(record: JsonObject): void {
    for (const { name, reason } of record["verdicts"] as unknown as readonly Summary[]) {
      if (reason === "host_error:verdict_invalid") this.#options.failed(name, "gave no valid verdict", "");
    }
    const text = JSON.stringify(record).replace(/[\x7f-\uffff]/g, escapeUnit);
    this.#options.write(`${text}\n`);
  }

  #envelope(call: string): Envelope {
    this.#sequence += 1;
    const { session, now } = this.#options;
    return { session, sequence: this.#sequence, call, time: now() };
  }

  #interceptor(hook: HookSource, { injected, post }: HookOrder): Interceptor {
    const { name, timeout, maySet, handler } = hook;
    const free = maySet.filter((field) => !injected.includes(field.toLowerCase()));
    return {
      name,
      timeoutMs: timeout,
      ask: (context, signal) =>
        handler.kind === "http"
          ? this.#post(name, () => post(handler, context, signal))
          : this.#programs.pass(signal, () => this.#run(hook, handler.command, context, signal)),
      forbids: (path, value) => forbidsWriting(free, path, value),
    };
  }

  async #post(name: string, send: () => Promise<string>): Promise<string> {
    try {
      return await send();
    } catch (error) {
      this.#options.failed(name, error instanceof Error ? error.message : "Something broke", "");
      throw error;
    }
  }

  async #run(
    { name, timeout }: HookSource,
    command: readonly [string, ...string[]],
    input: string,
    signal: AbortSignal,
  ): Promise<string> {
    const end = await runBounded({
      command,
      env: this.#env,
      input,
      timeoutMs: timeout,
      maxOutputBytes: MAX_VERDICT_BYTES,
      signal,
    });
    if (end.kind === "exited" && end.code === 0) return end.stdout;
    const problem = end.kind === "failed" ? end.problem : `ended with exit status ${end.code}`;
    this.#options.failed(name, problem, end.stderr);
    throw new Error("The hook failed");
  }
}

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

function wants(point: HookPoint): (hook: HookSource) => boolean {
  return ({ points }) => points.includes(point);
}
