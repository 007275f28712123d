/** A small DNS server, UDP and TCP, whose answers a test sets name by name and whose queries it can count. */
import type { Socket } from "node:net";
import type { Answer, Packet } from "dns-packet";
import { AUTHORITATIVE_ANSWER, decode, encode, streamDecode, streamEncode } from "dns-packet";
import type { Namespace } from "./namespace.ts";

export interface Zone {
  readonly A?: readonly string[];
  readonly AAAA?: readonly string[];
  readonly cname?: string;
  /** Seconds; 60 where absent. */
  readonly ttl?: number;
  readonly rcode?: "SERVFAIL" | "NXDOMAIN" | "REFUSED";
  /** No answer at all. */
  readonly silent?: boolean;
  /** UDP answers are empty and truncated; the client must come again over TCP. */
  readonly truncate?: boolean;
}

export interface Query {
  readonly name: string;
  readonly type: string;
  readonly transport: "udp" | "tcp";
}

export interface DnsServer {
  /** The first query of each type gets the first zone, the next one the next, and the last stays. */
  set(name: string, ...zones: readonly Zone[]): void;
  /** In order of arrival; names in lower case. */
  readonly queries: readonly Query[];
  close(): void;
}

interface Entry {
  readonly zones: readonly Zone[];
  readonly asked: Map<string, number>;
}

const NXDOMAIN = 3;
const RCODES = { SERVFAIL: 2, NXDOMAIN, REFUSED: 5 } as const;
const TRUNCATED_RESPONSE = 1 << 9;

export async function createDnsServer(net: Namespace, address: string): Promise<DnsServer> {
  const entries = new Map<string, Entry>();
  const queries: Query[] = [];
  const datagrams = await net.bind(address, 53);
  const server = await net.listen(address, 53);
  datagrams.on("message", (message, peer) => {
    const answer = answerTo(decode(message), "udp", { entries, queries });
    if (answer !== undefined) datagrams.send(encode(answer), peer.port, peer.address);
  });
  server.on("connection", (socket) => serveStream(socket, { entries, queries }));
  datagrams.unref();
  server.unref();
  return {
    queries,
    set(name, ...zones) {
      entries.set(name, { zones, asked: new Map() });
    },
    close() {
      datagrams.close();
      server.close();
    },
  };
}

interface State {
  readonly entries: Map<string, Entry>;
  readonly queries: Query[];
}

function serveStream(socket: Socket, state: State): void {
  let pending = Buffer.alloc(0);
  socket.on("error", () => undefined);
  socket.on("end", () => socket.end());
  socket.on("data", (chunk: Buffer) => {
    pending = Buffer.concat([pending, chunk]);
    while (pending.length >= 2 && pending.length >= 2 + pending.readUInt16BE(0)) {
      const size = 2 + pending.readUInt16BE(0);
      const answer = answerTo(streamDecode(pending.subarray(0, size)), "tcp", state);
      if (answer !== undefined) socket.write(streamEncode(answer));
      pending = pending.subarray(size);
    }
  });
}

function answerTo(query: Packet, transport: "udp" | "tcp", state: State): Packet | undefined {
  const question = query.questions?.[0];
  if (question === undefined) return undefined;
  const name = question.name.toLowerCase();
  state.queries.push({ name, type: question.type, transport });
  const zone = nextZone(state.entries.get(name), question.type);
  if (zone?.silent === true) return undefined;
  const reply = { id: query.id ?? 0, type: "response" as const, questions: query.questions ?? [] };
  const rcode = zone === undefined ? NXDOMAIN : zone.rcode === undefined ? 0 : RCODES[zone.rcode];
  const truncated = zone?.truncate === true && transport === "udp" ? TRUNCATED_RESPONSE : 0;
  const answers = zone === undefined || truncated !== 0 ? [] : follow(state, name, question.type, zone);
  return { ...reply, flags: AUTHORITATIVE_ANSWER | rcode | truncated, answers };
}

/** The records of a name and of what its CNAME points to, as a recursive resolver puts them together. */
function follow(state: State, name: string, type: string, first: Zone): Answer[] {
  const answers: Answer[] = [];
  let zone: Zone | undefined = first;
  let owner = name;
  for (let hops = 0; zone !== undefined && hops < 64; hops += 1) {
    const ttl: number = zone.ttl ?? 60;
    for (const data of addressesOf(zone, type)) answers.push({ type: type as "A", name: owner, ttl, data });
    if (zone.cname === undefined) break;
    answers.push({ type: "CNAME", name: owner, ttl, data: zone.cname });
    owner = zone.cname;
    zone = nextZone(state.entries.get(owner), type);
  }
  return answers;
}

function addressesOf(zone: Zone, type: string): readonly string[] {
  if (type === "A") return zone.A ?? [];
  return type === "AAAA" ? (zone.AAAA ?? []) : [];
}

function nextZone(entry: Entry | undefined, type: string): Zone | undefined {
  if (entry === undefined) return undefined;
  const turn = entry.asked.get(type) ?? 0;
  entry.asked.set(type, turn + 1);
  return entry.zones[Math.min(turn, entry.zones.length - 1)];
}
