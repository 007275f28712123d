/** Addresses that stand for names inside one sandbox: given out by the DNS front, never dialled. Pure: it is told the time. */
import type { Hostname, IpAddress } from "../model/exchange.ts";
import { ipFromOctets } from "./ip.ts";

export interface SyntheticAddresses {
  readonly v4: IpAddress;
  readonly v6: IpAddress;
}

export interface SyntheticOptions {
  /** Names that may have an address at once; at most `MOST_NAMES`. Read at each use. */
  readonly limits: { readonly dns_names: number };
  /** Monotonic milliseconds. */
  readonly now: () => number;
}

interface Entry {
  readonly host: Hostname;
  readonly index: number;
  answeredAt: number;
  /** Connections to it that live now. */
  held: number;
}

/** The name server of a jail, inside the range and never given out. */
export const NAME_SERVER = "198.18.0.1";
/** What a client may keep an answer for, in seconds. */
export const SYNTHETIC_TTL = 60;
/** How long after its last answer an address may mean another name: well past the TTL, for clients that round up. */
export const REUSE_AGE_MS = 600_000;
/** The first 256 addresses of 198.18.0.0/15 (RFC 2544) are not given out. */
const FIRST = 256;
export const MOST_NAMES = 131_072 - FIRST;
/** `2001:2::/48` (RFC 5180) is the same for IPv6: an address is this prefix with the IPv4 one behind it. */
const V6_PREFIX = [0x20, 0x01, 0x00, 0x02, 0, 0, 0, 0, 0, 0, 0, 0];

export class SyntheticNames {
  readonly #options: SyntheticOptions;
  /** The one that was answered longest ago comes first. */
  readonly #byHost = new Map<Hostname, Entry>();
  readonly #byIndex = new Map<number, Entry>();
  #next = FIRST;

  constructor(options: SyntheticOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#byHost.size;
  }

  /** The name's addresses, the same as long as it is asked for; undefined where none is free or old enough. */
  addressesOf(host: Hostname): SyntheticAddresses | undefined {
    const entry = this.#byHost.get(host) ?? this.#allot(host);
    if (entry === undefined) return undefined;
    this.#touch(entry);
    return addressesAt(entry.index);
  }

  /** What an address stands for. */
  nameOf(address: IpAddress): Hostname | undefined {
    return this.#entryOf(address)?.host;
  }

  /** Keeps the address for its name until the function that it returns is called. */
  hold(address: IpAddress): () => void {
    const entry = this.#entryOf(address);
    if (entry === undefined) return () => {};
    entry.held += 1;
    let holding = true;
    return () => {
      if (holding) entry.held -= 1;
      holding = false;
    };
  }

  #entryOf(address: IpAddress): Entry | undefined {
    const index = indexOf(address);
    return index === undefined ? undefined : this.#byIndex.get(index);
  }

  #touch(entry: Entry): void {
    entry.answeredAt = this.#options.now();
    this.#byHost.delete(entry.host);
    this.#byHost.set(entry.host, entry);
  }

  #allot(host: Hostname): Entry | undefined {
    const most = Math.min(this.#options.limits.dns_names, MOST_NAMES);
    const index = this.#byHost.size < most ? this.#next++ : this.#recycled();
    if (index === undefined) return undefined;
    const entry: Entry = { host, index, answeredAt: 0, held: 0 };
    this.#byHost.set(host, entry);
    this.#byIndex.set(index, entry);
    return entry;
  }

  /** The one that was answered longest ago, if that is long enough; one that is in use counts as just answered. */
  #recycled(): number | undefined {
    for (let tries = this.#byHost.size; tries > 0; tries--) {
      const oldest = this.#byHost.values().next().value as Entry;
      if (this.#options.now() - oldest.answeredAt < REUSE_AGE_MS) return undefined;
      if (oldest.held > 0) {
        this.#touch(oldest);
        continue;
      }
      this.#byHost.delete(oldest.host);
      this.#byIndex.delete(oldest.index);
      return oldest.index;
    }
    return undefined;
  }
}

/** The address in a name below `in-addr.arpa` or `ip6.arpa`; undefined for every other name. */
export function addressOfReverseName(name: string): IpAddress | undefined {
  const labels = name.toLowerCase().replace(/\.$/, "").split(".");
  const zone = labels.splice(-2).join(".");
  labels.reverse();
  if (zone === "in-addr.arpa" && labels.length === 4 && labels.every((label) => /^\d{1,3}$/.test(label))) {
    const octets = labels.map(Number);
    return octets.every((octet) => octet < 256) ? ipFromOctets(Uint8Array.from(octets)) : undefined;
  }
  if (zone !== "ip6.arpa" || labels.length !== 32 || !labels.every((label) => /^[0-9a-f]$/.test(label))) {
    return undefined;
  }
  return ipFromOctets(Buffer.from(labels.join(""), "hex"));
}

function addressesAt(index: number): SyntheticAddresses {
  const octets = [198, 18 + (index >> 16), (index >> 8) & 0xff, index & 0xff];
  return {
    v4: ipFromOctets(Uint8Array.from(octets)) as IpAddress,
    v6: ipFromOctets(Uint8Array.from([...V6_PREFIX, ...octets])) as IpAddress,
  };
}

function indexOf({ family, octets }: IpAddress): number | undefined {
  if (family === 6 && !V6_PREFIX.every((octet, at) => octets[at] === octet)) return undefined;
  const [a, b = 0, c = 0, d = 0] = family === 6 ? octets.subarray(12) : octets;
  return a === 198 && (b & 0xfe) === 18 ? ((b & 1) << 16) | (c << 8) | d : undefined;
}
