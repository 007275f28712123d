/** Replaces the placeholders of credentials in a request that is allowed, or refuses what carries one elsewhere. */
import { overrideKind } from "./base/override-fields.ts";
import { findPlaceholders } from "./decide/find-placeholders.ts";
import type { PlaceholderLocation, PlaceholderSource } from "./model/credential.ts";
import { type Allowance, type Denial, deny, type Injection, type Reason } from "./model/decision.ts";
import type { Question, RequestHead } from "./model/exchange.ts";
import { Failure } from "./model/failure.ts";
import type { BodyStage, Leg } from "./model/leg.ts";
import {
  type BodyForm,
  BodySwap,
  holds,
  type Swaps,
  type SwapValue,
  swapHead,
} from "./transform/placeholders.ts";
import { isGrpc } from "./wire/grpc.ts";
import type { InForce } from "./world.ts";

export interface Swapped {
  readonly leg: Leg;
  /** Names of the fields that a secret was put into, and `:query` where the query is one of the places. */
  readonly fields: readonly string[];
  /** Changes whenever a secret that was put in does. */
  readonly generation: string;
  /** Why the exchange was broken off, once it was for what its body held. */
  readonly refusal: () => Denial | undefined;
  /** What may come back in the answer. */
  readonly secrets: readonly Injection[];
  readonly stop?: undefined;
}

/** A secret that takes a while to be had: then it is decided again. */
export interface Awaiting {
  readonly verdict: "wait";
  readonly wait: () => Promise<void>;
}

export interface ToSwap {
  readonly question: Question;
  readonly allowance: Allowance;
  /** As it would leave otherwise. */
  readonly leg: Leg;
  /** Told, by the name that records have for it, once a secret was put into the body. */
  readonly putIn: (place: typeof BODY) => void;
}

/** As records name them; no field can have these names. */
const QUERY = ":query";
const BODY = ":body";
const ECHOING = /^trac[ek]$/i;

/** Where the config has no placeholders this costs nothing. */
export function swapPlaceholders(
  order: ToSwap,
  force: InForce,
): Swapped | { readonly stop: Denial | Awaiting } {
  const { allowance, leg } = order;
  let denial: Denial | undefined;
  const refusal = (): Denial | undefined => denial;
  if (force.placeholders.length === 0) return { leg, fields: [], generation: "", secrets: [], refusal };
  const state = new Swapping(order, force);
  const { rule, injections } = allowance.permit;
  const done = swapHead(leg.head, state, new Set(injections.map(({ key }) => key)));
  if (state.wait !== undefined) return { stop: { verdict: "wait", wait: state.wait } };
  if (!done.ok) return { stop: deny(done.reason, rule) };
  const places = done.head.target === leg.head.target ? done.fields : [...done.fields, QUERY];
  const left = { fields: places, generation: state.generation, secrets: state.secrets(), refusal };
  // A WebSocket's frames are no body: nobody looks into them.
  if (leg.framing.kind === "none" || leg.upgrade) return { leg: { ...leg, head: done.head }, ...left };
  const unreadable = unscannable(leg.head, state.inBody);
  if (unreadable !== undefined)
    return { stop: { ...deny("placeholder-misplaced", rule), detail: unreadable } };
  state.fetchForBody();
  if (state.wait !== undefined) return { stop: { verdict: "wait", wait: state.wait } };
  const requestBody = stageOf(state, formOf(leg.head), (reason) => {
    denial = deny(reason, rule);
  });
  const framing = state.inBody ? ({ kind: "chunked" } as const) : leg.framing;
  return { leg: { ...leg, head: done.head, framing, requestBody }, ...left };
}

class Swapping implements Swaps {
  readonly needles: readonly string[];
  /** Something may be put into the body. */
  readonly inBody: boolean;
  generation = "";
  wait: (() => Promise<void>) | undefined = undefined;
  readonly #used = new Set<string>();
  readonly #order: ToSwap;
  readonly #force: InForce;
  readonly #trusted: readonly PlaceholderSource[];

  constructor(order: ToSwap, force: InForce) {
    this.#order = order;
    this.#force = force;
    this.needles = force.placeholders.map(({ placeholder }) => placeholder);
    // What policy would refuse is forwarded with nothing put in.
    const opinion = order.allowance.would !== undefined;
    this.#trusted = opinion ? [] : findPlaceholders(order.question.destination, force.policy);
    this.inBody =
      !isGrpc(order.leg.head.fields) && this.#trusted.some(({ locations }) => locations.includes("body"));
  }

  /** What has never been asked for is, before the body is on its way. */
  fetchForBody(): void {
    for (const { secret, locations } of this.inBody ? this.#trusted : []) {
      const rendered = locations.includes("body") ? this.#force.secrets.render(secret) : undefined;
      if (rendered?.ok === false && rendered.untried === true) this.wait ??= rendered.whenKnown;
    }
  }

  /** What was put in, and what the body may yet ask for. */
  secrets(): readonly Injection[] {
    const sent = this.#trusted.filter(
      ({ placeholder, locations }) =>
        this.#used.has(placeholder) || (this.inBody && locations.includes("body")),
    );
    return sent.map(({ secret }) => ({ field: "", key: "", secret }));
  }

  value(needle: string, location: PlaceholderLocation, field = ""): SwapValue {
    const found = this.#trusted.find(({ placeholder }) => placeholder === needle);
    const right =
      found?.locations.includes(location) === true &&
      (location !== "header" || found.headerNames.includes(field)) &&
      (location !== "body" || this.inBody);
    if (found === undefined || !right) return { ok: false, reason: "placeholder-misplaced" };
    if (this.#order.question.scheme !== "https") return { ok: false, reason: "plaintext-secret" };
    if (echoes(this.#order.leg.head)) return { ok: false, reason: "method-refused" };
    const rendered = this.#force.secrets.render(found.secret);
    if (!rendered.ok) {
      this.wait ??= rendered.whenKnown;
      return { ok: false, reason: "secret-unavailable" };
    }
    if (!this.#used.has(needle)) this.generation += `.${found.id}:${rendered.generation}`;
    this.#used.add(needle);
    if (location === "body") this.#order.putIn(BODY);
    return { ok: true, value: rendered.value };
  }
}

/** An answer that repeats the request would repeat the secret. */
function echoes({ method, fields }: RequestHead): boolean {
  return (
    ECHOING.test(method) ||
    fields.some(({ key, value }) => overrideKind(key) === "method" && /\btrac[ek]\b/i.test(value))
  );
}

/** What keeps a body from being searched, or changed; undefined where nothing does. */
function unscannable({ fields }: RequestHead, changes: boolean): string | undefined {
  for (const { key, value } of fields) {
    if (key === "content-encoding" && !/^(?:identity)?$/i.test(value.trim()))
      return "A body with a Content-Encoding cannot be searched for placeholders";
    if (key === "content-type" && /charset\s*=\s*"?(?:utf-?(?:16|32|7)|ucs)/i.test(value))
      return "A body in this charset cannot be searched for placeholders";
    if (key === "content-range" && changes) return "A part of a body cannot have placeholders replaced";
  }
  return undefined;
}

function formOf({ fields }: RequestHead): BodyForm {
  const type = fields.find(({ key }) => key === "content-type")?.value ?? "";
  if (/^application\/x-www-form-urlencoded\b/i.test(type)) return "form";
  return /^[^;]*[/+]json\b/i.test(type) ? "json" : "raw";
}

function stageOf(state: Swapping, form: BodyForm, refuse: (reason: Reason) => void): BodyStage {
  return (next, events) => {
    const swap = new BodySwap(state, form);
    let over = false;
    function take(made: Buffer | Reason): made is Buffer {
      if (typeof made !== "string") return true;
      over = true;
      refuse(made);
      events.failed(new Failure("E_BAD_REQUEST", "client", "The body holds a placeholder where it may not"));
      return false;
    }
    return {
      write(bytes) {
        if (over) return true;
        const made = swap.write(bytes);
        return take(made) && made.length > 0 ? next.write(made) : true;
      },
      end(trailers) {
        if (over) return;
        const late = trailers.some(({ name, value }) => holds(`${name}: ${value}`, state.needles));
        const made = late ? "placeholder-misplaced" : swap.end();
        if (!take(made)) return;
        if (made.length > 0) next.write(made);
        next.end(trailers);
      },
      drained: () => events.drained(),
      close: () => {
        over = true;
      },
    };
  };
}
