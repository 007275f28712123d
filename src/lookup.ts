/**
 * One lookup, end to end: accept -> identify -> decide -> record. Answered from here whatever the policy says, so
 * that a refusal can be read where the client connects; no query ever leaves for a sandbox.
 */
import { isLocalhost, parseHostname } from "./base/hostname.ts";
import { parseIpAddress } from "./base/ip.ts";
import { addressOfReverseName, SYNTHETIC_TTL, type SyntheticNames } from "./base/synthetic.ts";
import { decideName } from "./decide/decide-name.ts";
import type { Client, Hostname, IpAddress } from "./model/exchange.ts";
import { ExchangeDraft } from "./record/draft.ts";
import {
  CLASS_IN,
  DNS_CODE,
  DNS_TYPE,
  type DnsAnswer,
  type DnsQuery,
  encodeDnsName,
  readDnsQuery,
  renderDnsAnswer,
} from "./wire/dns-message.ts";
import type { World } from "./world.ts";

/** Whose front was asked, and the addresses that this sandbox's names have. */
export interface Asker {
  readonly client: Client;
  readonly names: SyntheticNames;
}

/** The answer's bytes, or undefined where there is nothing that may be answered. Never throws. */
export function runLookup(message: Buffer, asker: Asker, world: World): Buffer | undefined {
  const read = readDnsQuery(message);
  if (read.kind === "drop") return undefined;
  if (read.kind === "answer") return read.bytes;
  const { query } = read;
  const host = query.name === undefined ? undefined : parseHostname(query.name);
  record(query, host, asker.client, world);
  return renderDnsAnswer(query, answerOf(query, host, asker.names));
}

function answerOf(query: DnsQuery, host: Hostname | undefined, names: SyntheticNames): DnsAnswer {
  if (query.dnsClass !== CLASS_IN) return bare(DNS_CODE.refused);
  switch (query.type) {
    case DNS_TYPE.A:
    case DNS_TYPE.AAAA:
      return host === undefined ? bare(DNS_CODE.noName) : addressAnswer(query.type, host, names);
    // They could carry a key for ECH, another port or an address: whoever gets none asks for A.
    case DNS_TYPE.HTTPS:
    case DNS_TYPE.SVCB:
      return bare(DNS_CODE.ok);
    case DNS_TYPE.PTR:
      return pointerAnswer(query, names);
    default:
      return bare(DNS_CODE.refused);
  }
}

function addressAnswer(type: number, host: Hostname, names: SyntheticNames): DnsAnswer {
  // RFC 6761 section 6.3: it stays the sandbox's own.
  const addresses = isLocalhost(host) ? LOCALHOST : names.addressesOf(host);
  if (addresses === undefined) return bare(DNS_CODE.failed);
  const { octets } = type === DNS_TYPE.A ? addresses.v4 : addresses.v6;
  return { code: DNS_CODE.ok, data: [Buffer.from(octets)], ttl: SYNTHETIC_TTL };
}

function pointerAnswer({ name }: DnsQuery, names: SyntheticNames): DnsAnswer {
  const address = name === undefined ? undefined : addressOfReverseName(name);
  const host = address === undefined ? undefined : names.nameOf(address);
  if (host === undefined) return bare(DNS_CODE.refused);
  return { code: DNS_CODE.ok, data: [encodeDnsName(host)], ttl: SYNTHETIC_TTL };
}

function record(query: DnsQuery, host: Hostname | undefined, client: Client, world: World): void {
  const force = world.inForce();
  const draft = new ExchangeDraft(world.recorder, { listener: "dns", address: client.address });
  draft.protocol = "dns";
  draft.visibility = "destination";
  draft.method = TYPE_NAMES.get(query.type) ?? `TYPE${query.type}`;
  draft.policy = force.digest;
  draft.sandbox = client.sandbox;
  if (host !== undefined) {
    draft.asked({ client, destination: { kind: "name", host, port: 0 } });
    const decision = decideName(host, client, force.policy);
    draft.verdict = decision.verdict;
    draft.reason = decision.reason;
    draft.rule = decision.rule;
    draft.would = decision.verdict === "allow" ? decision.would : undefined;
  } else draft.reason = "no-name";
  draft.end();
}

function bare(code: number): DnsAnswer {
  return { code, data: [], ttl: 0 };
}

const TYPE_NAMES: ReadonlyMap<number, string> = new Map([
  ...Object.entries(DNS_TYPE).map(([name, type]) => [type, name] as const),
  ...([
    [2, "NS"],
    [5, "CNAME"],
    [6, "SOA"],
    [10, "NULL"],
    [15, "MX"],
    [16, "TXT"],
    [33, "SRV"],
  ] as const),
  [255, "ANY"],
]);

const LOCALHOST = {
  v4: parseIpAddress("127.0.0.1") as IpAddress,
  v6: parseIpAddress("::1") as IpAddress,
};
