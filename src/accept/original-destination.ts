/**
 * Where a redirected connection was meant to go, and by which interface it came: what the kernel knows of the accepted
 * socket and Node.js has no word for. The one adapter of koffi, which is loaded where a gateway is configured.
 */
import type { Socket } from "node:net";
import type * as koffi from "koffi";
import { ipFromOctets } from "../base/ip.ts";
import type { IpAddress } from "../model/exchange.ts";
import { Failure } from "../model/failure.ts";

export interface OriginalDestination {
  readonly address: IpAddress;
  readonly port: number;
}

export interface Redirections {
  /** Undefined where no redirection is on record, or it led to the very address that was asked for. */
  originalOf(socket: Socket): OriginalDestination | undefined;
  /** The interface that the connection came in by; undefined where the kernel does not say. */
  interfaceOf(socket: Socket): string | undefined;
}

/** Descriptor, level, option, value, its length. */
type GetOption = (...parameters: readonly [number, number, number, Buffer, [number]]) => number;
type SetOption = (...parameters: readonly [number, number, number, Buffer, number]) => number;
type NameOf = (index: number, name: Buffer) => unknown;

/** Linux: <linux/in.h>, <linux/in6.h>, <linux/netfilter_ipv4.h>, <linux/netfilter_ipv6/ip6_tables.h>. */
const LEVEL = { ip: 0, ipv6: 41 } as const;
const SO_ORIGINAL_DST = 80;
const IPV6_2292PKTOPTIONS = 6;
const IPV6_RECVPKTINFO = 49;
const IPV6_PKTINFO = 50;
const IP_PKTINFO = 8;
const IP_PKTOPTIONS = 9;
const FAMILY_V6 = 10;
/** Of a control message on 64-bit machines: length (8), level (4), type (4). */
const HEADER_BYTES = 16;
const NAME_BYTES = 16;

/** Rejects with `E_CONFIG` where the machine is none of those that koffi is built for. */
export async function openRedirections(): Promise<Redirections> {
  const libc = await loadLibc();
  return new KernelRedirections(libc);
}

class KernelRedirections implements Redirections {
  readonly #get: GetOption;
  readonly #set: SetOption;
  readonly #nameOf: NameOf;

  constructor(libc: koffi.LibraryHandle) {
    this.#get = libc.func("int getsockopt(int, int, int, _Out_ uint8_t *value, _Inout_ uint32_t *length)");
    this.#set = libc.func("int setsockopt(int, int, int, const uint8_t *value, uint32_t length)");
    this.#nameOf = libc.func("void *if_indextoname(uint32_t index, _Out_ uint8_t *name)");
  }

  originalOf(socket: Socket): OriginalDestination | undefined {
    const fd = descriptorOf(socket);
    if (fd === undefined) return undefined;
    const bytes =
      this.#option(fd, LEVEL.ip, SO_ORIGINAL_DST, 16) ?? this.#option(fd, LEVEL.ipv6, SO_ORIGINAL_DST, 28);
    const original = bytes && destinationIn(bytes);
    const here = socket.address();
    if (original === undefined || !("port" in here)) return undefined;
    const local = here.address?.replace(/^::ffff:(?=[0-9.]+$)/i, "");
    return original.address.text === local && original.port === here.port ? undefined : original;
  }

  interfaceOf(socket: Socket): string | undefined {
    const fd = descriptorOf(socket);
    const index = fd === undefined ? undefined : (this.#indexV6(fd) ?? this.#indexV4(fd));
    if (index === undefined) return undefined;
    const name = Buffer.alloc(NAME_BYTES);
    if (this.#nameOf(index, name) === null) return undefined;
    return name.toString("latin1").split("\0")[0];
  }

  /** An IPv6 socket knows it of IPv4 connections too. */
  #indexV6(fd: number): number | undefined {
    if (this.#set(fd, LEVEL.ipv6, IPV6_RECVPKTINFO, int(1), 4) !== 0) return undefined;
    const bytes = this.#option(fd, LEVEL.ipv6, IPV6_2292PKTOPTIONS, 64);
    // struct in6_pktinfo: address (16), index.
    return bytes && indexIn(bytes, IPV6_PKTINFO, 16);
  }

  #indexV4(fd: number): number | undefined {
    if (this.#set(fd, LEVEL.ip, IP_PKTINFO, int(1), 4) !== 0) return undefined;
    const bytes = this.#option(fd, LEVEL.ip, IP_PKTOPTIONS, 64);
    // struct in_pktinfo: index first.
    return bytes && indexIn(bytes, IP_PKTINFO, 0);
  }

  #option(fd: number, level: number, option: number, most: number): Buffer | undefined {
    const value = Buffer.alloc(most);
    const length: [number] = [most];
    return this.#get(fd, level, option, value, length) === 0 ? value.subarray(0, length[0]) : undefined;
  }
}

/** Resolves libc's functions in the program itself, whichever libc it was built with. */
async function loadLibc(): Promise<koffi.LibraryHandle> {
  try {
    const { default: library } = await import("koffi");
    return library.load(null);
  } catch (error) {
    throw new Failure("E_CONFIG", "operator", "The gateway needs Linux, and koffi could not be loaded", {
      cause: error,
    });
  }
}

/** struct sockaddr_in: family, port, address (4); sockaddr_in6: family, port, flow (4), address (16). */
function destinationIn(bytes: Buffer): OriginalDestination | undefined {
  const v6 = bytes.readUInt16LE(0) === FAMILY_V6;
  const address = ipFromOctets(v6 ? bytes.subarray(8, 24) : bytes.subarray(4, 8));
  return address && { address, port: bytes.readUInt16BE(2) };
}

/** The first control message, if it is of this type and names an interface. */
function indexIn(bytes: Buffer, type: number, at: number): number | undefined {
  if (bytes.length < HEADER_BYTES + at + 4 || bytes.readUInt32LE(12) !== type) return undefined;
  const index = bytes.readUInt32LE(HEADER_BYTES + at);
  return index === 0 ? undefined : index;
}

function int(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32LE(value);
  return bytes;
}

function descriptorOf(socket: Socket): number | undefined {
  const { _handle: handle } = socket as Socket & { readonly _handle?: { readonly fd?: number } | null };
  const fd = handle?.fd;
  return fd === undefined || fd < 0 ? undefined : fd;
}
