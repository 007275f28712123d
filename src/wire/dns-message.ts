/** DNS messages of a stub resolver, RFC 1035 section 4 with RFC 6891: strict queries in, short answers out. Pure. */

export interface DnsQuery {
  readonly id: number;
  /** Dotted and as received, `.` for the root; undefined where a label is no printable ASCII or holds a dot. */
  readonly name: string | undefined;
  readonly type: number;
  readonly dnsClass: number;
  /** The flags that an answer repeats: RD and CD. */
  readonly flags: number;
  /** The question's bytes: an answer repeats the letters' case (draft-vixie-dnsext-dns0x20). */
  readonly question: Buffer;
  readonly edns: boolean;
}

export type DnsRead =
  | { readonly kind: "query"; readonly query: DnsQuery }
  /** Malformed, or not for us: what to answer. */
  | { readonly kind: "answer"; readonly bytes: Buffer }
  /** Nothing that may be answered: too short to have an id, or an answer itself, which could go back and forth. */
  | { readonly kind: "drop" };

export interface DnsAnswer {
  readonly code: number;
  /** Records of the question's own name and type. */
  readonly data: readonly Buffer[];
  /** Seconds. */
  readonly ttl: number;
}

export const DNS_TYPE = { A: 1, PTR: 12, AAAA: 28, SVCB: 64, HTTPS: 65 } as const;
export const DNS_CODE = { ok: 0, malformed: 1, failed: 2, noName: 3, notBuilt: 4, refused: 5 } as const;
export const CLASS_IN = 1;

const HEADER = 12;
const OPT = 41;
/** Of the extended code BADVERS (16) the upper bits go into the OPT record. */
const BAD_VERSION = 16;
/** What fits a packet on every path (DNS flag day 2020). */
const UDP_BYTES = 1_232;
const MAX_NAME = 255;

const QR = 0x8000;
const OPCODE = 0x7800;
const TC = 0x0200;
const RD = 0x0100;
const RA = 0x0080;
const CD = 0x0010;

/** Reads one query; never throws. Everything that a stub resolver does not send is malformed. */
export function readDnsQuery(bytes: Buffer): DnsRead {
  if (bytes.length < HEADER || (bytes.readUInt16BE(2) & QR) !== 0) return { kind: "drop" };
  const flags = bytes.readUInt16BE(2);
  if ((flags & OPCODE) !== 0) return refused(bytes, DNS_CODE.notBuilt);
  const name = asksOnce(bytes) ? readName(bytes, HEADER) : undefined;
  if (name === undefined || name.end + 4 > bytes.length) return refused(bytes, DNS_CODE.malformed);
  const end = name.end + 4;
  const version = readRest(bytes, end);
  if (version === "malformed") return refused(bytes, DNS_CODE.malformed);
  const query: DnsQuery = {
    id: bytes.readUInt16BE(0),
    name: name.text,
    type: bytes.readUInt16BE(name.end),
    dnsClass: bytes.readUInt16BE(name.end + 2),
    flags: flags & (RD | CD),
    question: Buffer.from(bytes.subarray(HEADER, end)),
    edns: version !== undefined,
  };
  if (version !== undefined && version !== 0) {
    return { kind: "answer", bytes: renderDnsAnswer(query, { code: BAD_VERSION, data: [], ttl: 0 }) };
  }
  return { kind: "query", query };
}

/** At most 600 bytes for an answer of one record. */
export function renderDnsAnswer(query: DnsQuery, { code, data, ttl }: DnsAnswer): Buffer {
  const header = Buffer.alloc(HEADER);
  header.writeUInt16BE(query.id, 0);
  header.writeUInt16BE(QR | RA | query.flags | (code & 0xf), 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(data.length, 6);
  header.writeUInt16BE(query.edns ? 1 : 0, 10);
  const records = data.map((bytes) => record(query.type, ttl, bytes));
  const opt = query.edns ? [renderOpt(code >> 4)] : [];
  return Buffer.concat([header, query.question, ...records, ...opt]);
}

/** A name as record data; `name` is a hostname. */
export function encodeDnsName(name: string): Buffer {
  const labels = name.split(".").map((label) => Buffer.from(label, "latin1"));
  return Buffer.concat([...labels.flatMap((label) => [Buffer.from([label.length]), label]), Buffer.alloc(1)]);
}

/** One question, at most one record beside it, and the message is whole. */
function asksOnce(bytes: Buffer): boolean {
  const [flags = 0, questions, answers, authorities, additional = 0] = [2, 4, 6, 8, 10].map((at) =>
    bytes.readUInt16BE(at),
  );
  return questions === 1 && answers === 0 && authorities === 0 && additional <= 1 && (flags & TC) === 0;
}

/** The id alone is repeated: what follows could not be read. */
function refused(bytes: Buffer, code: number): DnsRead {
  const answer = Buffer.alloc(HEADER);
  bytes.copy(answer, 0, 0, 2);
  const flags = bytes.readUInt16BE(2);
  answer.writeUInt16BE(QR | RA | (flags & (OPCODE | RD | CD)) | code, 2);
  return { kind: "answer", bytes: answer };
}

/** Labels alone: a query has nothing before its name that a pointer could mean. */
function readName(
  bytes: Buffer,
  from: number,
): { readonly text: string | undefined; readonly end: number } | undefined {
  const labels: string[] = [];
  let printable = true;
  for (let at = from; ; ) {
    const length = bytes[at];
    if (length === undefined || length > 63 || at - from + 1 > MAX_NAME) return undefined;
    if (length === 0) {
      return { text: printable ? labels.join(".") || "." : undefined, end: at + 1 };
    }
    const label = bytes.subarray(at + 1, at + 1 + length);
    printable &&= label.every((octet) => octet > 0x20 && octet < 0x7f && octet !== 0x2e);
    labels.push(label.toString("latin1"));
    at += 1 + length;
  }
}

/** The EDNS version of an OPT record that is the message's whole rest; undefined where there is no rest. */
function readRest(bytes: Buffer, at: number): number | undefined | "malformed" {
  if (bytes.readUInt16BE(10) === 0) return bytes.length === at ? undefined : "malformed";
  if (bytes.length < at + 11 || bytes[at] !== 0 || bytes.readUInt16BE(at + 1) !== OPT) return "malformed";
  const data = bytes.subarray(at + 11);
  if (data.length !== bytes.readUInt16BE(at + 9)) return "malformed";
  for (let next = 0; next < data.length; ) {
    if (data.length < next + 4) return "malformed";
    next += 4 + data.readUInt16BE(next + 2);
    if (next > data.length) return "malformed";
  }
  return bytes[at + 6] as number;
}

function record(type: number, ttl: number, data: Buffer): Buffer {
  const head = Buffer.alloc(12);
  // A pointer to the question's name.
  head.writeUInt16BE(0xc000 | HEADER, 0);
  head.writeUInt16BE(type, 2);
  head.writeUInt16BE(CLASS_IN, 4);
  head.writeUInt32BE(ttl, 6);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}

function renderOpt(extendedCode: number): Buffer {
  const opt = Buffer.alloc(11);
  opt.writeUInt16BE(OPT, 1);
  opt.writeUInt16BE(UDP_BYTES, 3);
  opt[5] = extendedCode;
  return opt;
}
