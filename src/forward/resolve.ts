/** The gate's own resolver: real DNS alone, never the hosts file or a search list; answers kept for their TTL. */
import { Resolver as Channel } from "node:dns/promises";
import { parseIpAddress } from "../base/ip.ts";
import type { Hostname, IpAddress } from "../model/exchange.ts";
import { Failure } from "../model/failure.ts";
import type { Limits } from "../model/limits.ts";

export interface Resolver {
  /** At least one address, IPv6 and IPv4 in turn. Not vetted. Fails with `E_RESOLVE`. */
  resolve(host: Hostname, signal: AbortSignal): Promise<readonly IpAddress[]>;
  /** `address port` of the servers in use, canonical: they are no destinations for a sandbox. */
  servers(): string[];
  close(): void;
}

export interface ResolverOptions {
  /** `address`, `address:port` or `[address]:port`; empty: the system's. */
  readonly servers: readonly string[];
  /** Answers that win over DNS. */
  readonly hosts: ReadonlyMap<string, readonly IpAddress[]>;
  readonly limits: Pick<Limits, "dns_min_ttl" | "dns_max_ttl" | "dns_addresses">;
  /** Monotonic milliseconds. */
  readonly now: () => number;
}

interface Answer {
  /** Empty: a failure, kept for a moment. */
  readonly addresses: readonly IpAddress[];
  readonly expiresAt: number;
}

/** What one of the two queries brought. */
interface Half {
  readonly addresses: readonly IpAddress[];
  /** Milliseconds; the least of its records. */
  readonly ttl: number;
}

interface Channels {
  current(): Channel;
  close(): void;
}

const MAX_NAMES = 4_096;
const NEGATIVE_TTL_MS = 5_000;
/** c-ares: two tries a server, the second after a little longer. */
const QUERY = { timeout: 1_500, tries: 2, maxTimeout: 2_500 };
/** Whatever the number of servers. */
const TOTAL_MS = 4_500;
/** Some servers never answer AAAA; with one family in hand the other has this long (RFC 8305 section 3). */
const SECOND_FAMILY_MS = 200;
/** /etc/resolv.conf changes under a running gate. */
const SYSTEM_SERVERS_MS = 60_000;
const DNS_PORT = 53;

export function createResolver(options: ResolverOptions): Resolver {
  const { hosts, now } = options;
  const answers = new Map<string, Answer>();
  const flights = new Map<string, Promise<Answer>>();
  const channels = createChannels(options);

  function fly(host: Hostname): Promise<Answer> {
    const flight = ask(channels.current(), host, options)
      .then((answer) => {
        keep(answers, host, answer);
        return answer;
      })
      .finally(() => flights.delete(host));
    flights.set(host, flight);
    return flight;
  }

  return {
    async resolve(host, signal) {
      const fixed = hosts.get(host);
      if (fixed !== undefined) return orFail(fixed);
      const kept = answers.get(host);
      if (kept !== undefined && now() < kept.expiresAt) {
        keep(answers, host, kept);
        return orFail(kept.addresses);
      }
      // Whoever gives up does so alone: others may wait for the same answer.
      const answer = await unlessAborted(flights.get(host) ?? fly(host), signal);
      return orFail(answer.addresses);
    },
    servers: () => channels.current().getServers().map(endpointOf),
    close() {
      answers.clear();
      channels.close();
    },
  };
}

/** Both families at once; whatever one of them brings is an answer. Never rejects. */
async function ask(
  channel: Channel,
  host: Hostname,
  { limits, now }: Pick<ResolverOptions, "limits" | "now">,
): Promise<Answer> {
  const six = half(() => channel.resolve6(host, { ttl: true }));
  const four = half(() => channel.resolve4(host, { ttl: true }));
  const halves = await bothWithin(six, four);
  const answered = halves.filter((each) => each.addresses.length > 0);
  if (answered.length === 0) return { addresses: [], expiresAt: now() + NEGATIVE_TTL_MS };

  const ttl = Math.min(...answered.map((each) => each.ttl), limits.dns_max_ttl);
  return {
    addresses: merge(halves, limits.dns_addresses),
    expiresAt: now() + Math.max(ttl, limits.dns_min_ttl),
  };
}

async function half(query: () => Promise<readonly { address: string; ttl: number }[]>): Promise<Half> {
  try {
    const records = await query();
    const addresses = records.flatMap(({ address }) => parseIpAddress(address) ?? []);
    return { addresses, ttl: records.reduce((least, { ttl }) => Math.min(least, ttl), Infinity) * 1_000 };
  } catch {
    // NXDOMAIN, no data, SERVFAIL, a timeout: none of them gives an address, and none is an address.
    return NOTHING;
  }
}

const NOTHING: Half = { addresses: [], ttl: Infinity };

/** Waits for both; once one of them has addresses, for the other only a moment longer. */
function bothWithin(first: Promise<Half>, second: Promise<Half>): Promise<readonly Half[]> {
  return new Promise((resolve) => {
    const halves: Half[] = [NOTHING, NOTHING];
    let pending = halves.length;
    let timer = setTimeout(() => resolve(halves), TOTAL_MS);
    for (const [index, query] of [first, second].entries()) {
      void query.then((brought) => {
        halves[index] = brought;
        pending -= 1;
        if (pending > 0 && brought.addresses.length === 0) return;
        clearTimeout(timer);
        if (pending === 0) resolve(halves);
        else timer = setTimeout(() => resolve(halves), SECOND_FAMILY_MS);
      });
    }
  });
}

/** Each address once, the families in turn, so that a flood of one does not push out the other. */
function merge(halves: readonly Half[], limit: number): readonly IpAddress[] {
  const merged = new Map<string, IpAddress>();
  const longest = Math.max(...halves.map((each) => each.addresses.length));
  for (let index = 0; index < longest && merged.size < limit; index++) {
    for (const { addresses } of halves) {
      const address = addresses[index];
      if (address !== undefined && merged.size < limit) merged.set(address.text, address);
    }
  }
  return [...merged.values()];
}

/** The most recently used last; the first make room. */
function keep(answers: Map<string, Answer>, host: string, answer: Answer): void {
  answers.delete(host);
  answers.set(host, answer);
  const [oldest] = answers.keys();
  if (answers.size > MAX_NAMES && oldest !== undefined) answers.delete(oldest);
}

function createChannels({ servers, now }: ResolverOptions): Channels {
  let channel = open(servers);
  let openedAt = now();
  return {
    current() {
      if (servers.length === 0 && now() - openedAt > SYSTEM_SERVERS_MS) {
        // The old one lives on until its queries are answered.
        channel = open(servers);
        openedAt = now();
      }
      return channel;
    },
    close: () => channel.cancel(),
  };
}

function open(servers: readonly string[]): Channel {
  const channel = new Channel(QUERY);
  if (servers.length > 0) channel.setServers(servers);
  return channel;
}

/** `1.2.3.4`, `1.2.3.4:53`, `2001:db8::1` or `[2001:db8::1]:53` as `address port`. */
function endpointOf(server: string): string {
  const [, bracketed, dotted, port] = /^(?:\[(.+)\]|([0-9.]+)):([0-9]+)$/.exec(server) ?? [];
  const address = (bracketed ?? dotted ?? server).replace(/%.*$/, "");
  return `${parseIpAddress(address)?.text ?? address} ${port ?? DNS_PORT}`;
}

function orFail(addresses: readonly IpAddress[]): readonly IpAddress[] {
  if (addresses.length > 0) return addresses;
  throw new Failure("E_RESOLVE", "upstream", "The name of the upstream does not resolve");
}

function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) return Promise.reject(abandoned(signal));
  return new Promise((resolve, reject) => {
    const abandon = () => reject(abandoned(signal));
    signal.addEventListener("abort", abandon, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abandon));
  });
}

function abandoned({ reason }: AbortSignal): Failure {
  return reason instanceof Failure
    ? reason
    : new Failure("E_RESOLVE", "client", "Nobody waits for the answer any more");
}
