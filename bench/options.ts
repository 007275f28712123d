/** The bench's command line: what is asked for, or what to say instead. */
import { mkdtempSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { WORKLOADS, type Workload } from "./workloads.ts";

export interface Plan {
  /** This contender alone. */
  readonly only: string | undefined;
  readonly workloads: readonly Workload[];
  readonly rounds: number;
  readonly measureMs: number;
  readonly warmUpMs: number;
  /** Where results and profiles are put. */
  readonly directory: string;
  /** Whether Sallyport runs under the CPU profiler. */
  readonly profile: boolean;
}

export type Asked =
  | { readonly kind: "plan"; readonly plan: Plan }
  | { readonly kind: "text"; readonly text: string; readonly status: number };

const THOROUGH = {
  rounds: "21",
  seconds: "0.7",
  "warm-up": "4",
  workload: WORKLOADS.map(({ name }) => name),
};
const QUICK = { rounds: "7", seconds: "0.7", "warm-up": "3", workload: ["inspected"] };
const PROFILE = { rounds: "1", seconds: "6", "warm-up": "3", workload: ["inspected"] };

const HELP = `usage: npm run bench -- [options]
       npm run bench -- h2 [options]     the workloads of HTTP/2
       npm run bench -- jail             what a jail costs
       npm run bench -- scrub [ROUNDS]   what the search of answers costs

  --quick            a first impression: the first workload, seven rounds
  --profile          Sallyport alone under Node's CPU profiler; prints who spent the time
  --only NAME        sallyport, squid or relay (node:http2) alone
  --workload NAME    ${WORKLOADS.map(({ name }) => name).join(", ")}; may be repeated; default all
  --rounds N         default ${THOROUGH.rounds}
  --seconds N        of measurement in each round; default ${THOROUGH.seconds}
  --warm-up N        seconds, once for each contender and workload; default ${THOROUGH["warm-up"]}

Needs root, two cores, nginx and squid (on Debian: nginx-light, squid-openssl).
`;

export function ask(args: readonly string[]): Asked {
  const { values } = parseArgs({
    args: [...args],
    options: {
      help: { type: "boolean" },
      quick: { type: "boolean" },
      profile: { type: "boolean" },
      only: { type: "string" },
      workload: { type: "string", multiple: true },
      rounds: { type: "string" },
      seconds: { type: "string" },
      "warm-up": { type: "string" },
    },
  });
  if (values.help === true) return { kind: "text", text: HELP, status: 0 };
  const problem = obstacle();
  if (problem !== undefined) return { kind: "text", text: `${problem}\n`, status: 2 };
  const { quick = false, profile = false } = values;
  const chosen = { ...defaultsOf(quick, profile), ...values };
  const only = profile ? "sallyport" : chosen.only;
  const workloads = WORKLOADS.filter(({ name }) => chosen.workload.includes(name));
  if (workloads.length === 0) return { kind: "text", text: "There is no such workload\n", status: 2 };
  const plan = {
    only,
    workloads,
    rounds: Number(chosen.rounds),
    measureMs: Number(chosen.seconds) * 1000,
    warmUpMs: Number(chosen["warm-up"]) * 1000,
    directory: mkdtempSync(join(tmpdir(), "sallyport-bench-")),
    profile,
  };
  return { kind: "plan", plan };
}

function defaultsOf(quick: boolean, profile: boolean): typeof THOROUGH {
  if (profile) return PROFILE;
  return quick ? QUICK : THOROUGH;
}

function obstacle(): string | undefined {
  if (process.getuid?.() !== 0) return "The bench needs root: it makes network namespaces and starts Squid";
  if (availableParallelism() < 2) return "The bench needs two cores, one for the contender alone";
  return undefined;
}
