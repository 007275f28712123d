/** What the gate sends to the rest of the private internet: each packet that opens or carries something, as text. */
import { once } from "node:events";
import { createInterface } from "node:readline";
import { unrefAll } from "./namespace.ts";
import type { Internet } from "./private-internet.ts";
import { DNS_V4 } from "./private-internet.ts";

export interface Packets {
  /** The packets since the last call, for example `tcp 11.0.0.1.40000 > 11.0.0.10.443 S`. */
  take(): Promise<readonly string[]>;
}

const MARK_PORT = 7;
const MARK = ` > ${DNS_V4}.${MARK_PORT} `;

// tcpdump gives up its user id at the start, which an ordinary user's namespace does not allow. Late
// acknowledgements and closes of older connections say nothing about what was asked last: they are left out, as is
// what the kernel reports of the multicast groups of its own addresses.
const CAPTURE = `
import ipaddress, socket, struct
packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
packets.bind(("dn0", 0))
print("ready", flush=True)
def name(raw): return str(ipaddress.ip_address(raw))
while True:
    frame, where = packets.recvfrom(65536)
    if where[2] == socket.PACKET_OUTGOING: continue
    kind, ip = struct.unpack("!H", frame[12:14])[0], frame[14:]
    if kind == 0x0800:
        proto, at, end, src, dst = ip[9], (ip[0] & 15) * 4, struct.unpack("!H", ip[2:4])[0], ip[12:16], ip[16:20]
    elif kind == 0x86DD:
        proto, at, end, src, dst = ip[6], 40, 40 + struct.unpack("!H", ip[4:6])[0], ip[8:24], ip[24:40]
    else:
        print("other %04x" % kind, flush=True)
        continue
    if name(dst) == "ff02::16": continue
    if proto not in (6, 17):
        print("ip-%d %s > %s" % (proto, name(src), name(dst)), flush=True)
        continue
    ports = struct.unpack("!HH", ip[at:at + 4])
    flags = "".join(c for i, c in enumerate("FSRPA") if proto == 6 and ip[at + 13] >> i & 1)
    if proto == 6 and "S" not in flags and end == at + (ip[at + 12] >> 4) * 4: continue
    label = "tcp" if proto == 6 else "udp"
    print("%s %s.%d > %s.%d %s" % (label, name(src), ports[0], name(dst), ports[1], flags), flush=True)
`;

/** Packets are seen in order, so that a mark sent last proves that all before it were seen. */
export async function watchPackets(internet: Internet): Promise<Packets> {
  const child = internet.net.spawn(["/usr/bin/python3", "-c", CAPTURE], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  internet.onClose(() => child.kill("SIGKILL"));
  if (child.stdout === null) throw new Error("The capture has no output");
  const lines = createInterface({ input: child.stdout });
  await once(lines, "line");
  unrefAll(child);
  let seen: string[] = [];
  let marked: (() => void) | undefined;
  lines.on("line", (line) => {
    if (line.includes(MARK)) marked?.();
    else seen.push(line);
  });
  return {
    async take() {
      const mark = new Promise<void>((resolve) => {
        marked = resolve;
      });
      await internet.gate.sendDatagram(DNS_V4, MARK_PORT);
      await mark;
      const taken = seen;
      seen = [];
      return taken;
    },
  };
}
