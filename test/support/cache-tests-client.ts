/**
 * Runs the client of `http-cache-tests` on undici and prints its results as JSON.
 * Arguments: base URL, the address to dial instead of asking for the name (`-`: none), and a proxy's URL where there is one.
 */
import type { LookupFunction } from "node:net";
import { Agent, ProxyAgent, fetch as undiciFetch } from "undici";

interface Suite {
  readonly tests: readonly SuiteTest[];
}

interface SuiteTest {
  readonly id: string;
}

interface Runner {
  runTests(suites: readonly Suite[], fetch: unknown, browserCache: boolean, base: string): Promise<void>;
  getResults(): Readonly<Record<string, unknown>>;
}

const [base = "", address = "-", proxy] = process.argv.slice(2);
const dispatcher = proxy === undefined ? new Agent({ connect: { lookup } }) : new ProxyAgent(proxy);

const runner = (await import(nameOf("client/runner.mjs"))) as Runner;
const suites = (await import(nameOf("tests/index.mjs"))) as { readonly default: readonly Suite[] };

await runner.runTests(suites.default, fetchOnce, false, base);
process.stdout.write(JSON.stringify(runner.getResults()), () => process.exit());

/** Not a literal: the package has no types. */
function nameOf(module: string): string {
  return `http-cache-tests/${module}`;
}

async function fetchOnce(url: string, options: object): Promise<unknown> {
  return await undiciFetch(url, { ...options, dispatcher });
}

function lookup(...[, options, answer]: Parameters<LookupFunction>): void {
  if (options.all === true) answer(null, [{ address, family: 4 }]);
  else answer(null, address, 4);
}
