/** Where the head of an HTTP/1 message ends. Pure. */

const HTAB = 9;
const LF = 10;
const CR = 13;
const SP = 32;
const DEL = 127;
const END = Buffer.from("\r\n\r\n", "latin1");

/**
 * The index after the head's empty line, or -1 where more bytes are needed. `from` is where the search starts: 0, or
 * the length of the last buffer less 3, so that a head that drips in is not scanned again and again.
 * A buffer that can no longer become a head (a bare CR or LF, a control) has its end after the byte that shows it:
 * the parser then refuses it at once, where waiting for the rest would end in a timeout.
 */
export function findHeadEnd(bytes: Buffer, from: number): number {
  // A negative offset would count from the buffer's end.
  const start = Math.max(0, from);
  const end = bytes.indexOf(END, start);
  return end >= 0 ? end + END.length : firstFault(bytes, start);
}

function firstFault(bytes: Buffer, from: number): number {
  for (let at = from; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (byte !== undefined && (byte < SP || byte >= DEL) && !mayStand(bytes, at)) {
      return at + 1;
    }
  }
  return -1;
}

function mayStand(bytes: Buffer, at: number): boolean {
  const byte = Number(bytes[at]);
  switch (byte) {
    case HTAB:
      return true;
    case CR:
      return at + 1 === bytes.length || bytes[at + 1] === LF;
    case LF:
      return bytes[at - 1] === CR;
    default:
      return byte > DEL && at > 0;
  }
}
