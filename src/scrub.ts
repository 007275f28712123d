/** The answer to what left with a secret in it: searched for that secret on its way back. A sentence of `exchange.ts`. */
import { secretForms } from "./base/secret-forms.ts";
import { scrubStage } from "./forward/scrub-stage.ts";
import type { Injection, Permit } from "./model/decision.ts";
import type { Framing, ResponseHead } from "./model/exchange.ts";
import type { Answer, Leg, Room } from "./model/leg.ts";
import type { Secrets } from "./secrets/secrets.ts";
import { compileNeedles, type Needles } from "./transform/needles.ts";
import { BodyScrubber } from "./transform/scrub-body.ts";
import { acceptReadable, decodedHead, planBody, scrubFields, scrubHead } from "./transform/scrub-head.ts";

interface Compiled {
  readonly secrets: Secrets;
  readonly generation: string;
  readonly needles: Needles | undefined;
}

/** By the injections of a rule, which are one list for as long as its policy lives. */
const COMPILED = new WeakMap<readonly Injection[], Compiled>();
/** By the names of the secrets, for lists made for one exchange. */
const BY_NAMES = new WeakMap<Secrets, Map<string, Compiled>>();
/** Ways to combine them that are kept: a sandbox chooses which placeholders it sends, and each way takes 100 KiB. */
const COMBINATIONS = 64;

/** What a leg is searched with. */
export interface Search {
  readonly secrets: Secrets;
  readonly generation: string;
  /** For what is decoded. */
  readonly room: () => Room;
  /** Told each time that something is found. */
  readonly found: () => void;
}

/** The same leg where nothing is injected, the rule says no, or no secret is long enough to be told from a word. */
export function scrubLeg(leg: Leg, permit: Permit, search: Search): Leg {
  if (permit.injections.length === 0 || permit.scrub === false) return leg;
  const compiled = needlesOf(permit.injections, search);
  if (compiled === undefined) return leg;
  const needles = telling(compiled, search.found);
  return {
    ...leg,
    head: acceptReadable(leg.head),
    response: (head) => scrubHead(leg.response(head), needles),
    answer: (head, framing) => scrubAnswer(head, framing, leg, { needles, room: search.room }),
    responseTrailers: (trailers) => scrubFields(leg.responseTrailers(trailers), needles),
  };
}

function scrubAnswer(
  head: ResponseHead,
  framing: Framing,
  leg: Leg,
  { needles, room }: { readonly needles: Needles; readonly room: Search["room"] },
): Answer {
  const passed = scrubHead(leg.response(head), needles);
  // A WebSocket: its frames are nobody's HTTP, and what is held back of them may be waited for.
  if (leg.extended === true && head.status >= 200 && head.status < 300) return { head: passed, framing };
  // As the upstream says it: a field that it nominates for its hop is about the body all the same.
  const plan = planBody(head, framing);
  if (plan === undefined) return { head: passed, framing };
  const body = scrubStage(new BodyScrubber(needles, head.status === 206), plan.decode, room);
  if (plan.decode.length === 0) return { head: passed, framing, body };
  return { head: decodedHead(passed), framing: { kind: "chunked" }, body };
}

function telling(needles: Needles, found: () => void): Needles {
  return {
    ...needles,
    each: (bytes, place) =>
      needles.each(bytes, (start, end) => {
        found();
        place(start, end);
      }),
    leading(part) {
      const length = needles.leading(part);
      if (length > 0) found();
      return length;
    },
    trailing(part) {
      const from = needles.trailing(part);
      if (from < part.length) found();
      return from;
    },
  };
}

/** A secret that changed takes those before it along, for as long as they are remembered. */
function needlesOf(injections: readonly Injection[], { secrets, generation }: Search): Needles | undefined {
  const known = COMPILED.get(injections);
  if (known?.secrets === secrets && known.generation === generation) return known.needles;
  const names = injections.map(({ secret }) => secret);
  const kept = BY_NAMES.get(secrets) ?? new Map<string, Compiled>();
  BY_NAMES.set(secrets, kept);
  const all = names.join(" ");
  const before = kept.get(all);
  const compiled = before?.generation === generation ? before : compile(names, { secrets, generation });
  kept.delete(all);
  kept.set(all, compiled);
  if (kept.size > COMBINATIONS) kept.delete(kept.keys().next().value ?? "");
  COMPILED.set(injections, compiled);
  return compiled.needles;
}

function compile(
  names: readonly string[],
  { secrets, generation }: Pick<Search, "secrets" | "generation">,
): Compiled {
  const texts = secrets.needles(names).filter(({ length }) => length >= 8);
  return { secrets, generation, needles: compileNeedles(texts.flatMap(secretForms)) };
}
