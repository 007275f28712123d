/** Tries every way out of a sandbox that is not by name through the gate; what answers is what must not be there. */
import type { Internet } from "./private-internet.ts";
import { DNS_V4, GATE_V4, PUBLIC_V4, PUBLIC_V6 } from "./private-internet.ts";

/** Where the gate's host listens for itself. */
const HOST_PORT = 7_777;

export interface WaysOut {
  /** Further addresses of the gate's host. */
  readonly hosts?: readonly string[];
  /** With a gate, ports 53, 80 and 443 are its own; without one they too must be closed. */
  readonly gate: "alive" | "gone";
}

const HOSTS = [
  "1.2.3.4",
  "10.0.0.5",
  "169.254.169.254",
  "127.0.0.1",
  "::1",
  "2606:4700::1111",
  "198.18.1.0",
  DNS_V4,
  GATE_V4,
  PUBLIC_V4,
  PUBLIC_V6[0],
];
const TCP_PORTS = [22, 25, 853, 8080, 8081, 8443, 9464, 15_001, HOST_PORT];
const UDP_PORTS = [443, 123, 3478, 5353, HOST_PORT];
const GATES_OWN = [53, 80, 443];

// All at once: where packets are dropped each waits in vain. A refusal of the gate's own is no answer.
const PROGRAM = `
import concurrent.futures, json, socket, struct, sys
tcp_ports, udp_ports, hosts = json.loads(sys.argv[1])
PATIENCE = 1.0
def family(host): return socket.AF_INET6 if ":" in host else socket.AF_INET
def named(host): return "[" + host + "]" if ":" in host else host
def tcp(host, port):
    with socket.socket(family(host)) as s:
        s.settimeout(PATIENCE)
        s.connect((host, port)); s.sendall(b"GET / HTTP/1.1\\r\\nHost: " + named(host).encode() + b"\\r\\n\\r\\n")
        return s.recv(4096)
def udp(host, port):
    with socket.socket(family(host), socket.SOCK_DGRAM) as s:
        s.settimeout(PATIENCE)
        s.connect((host, port))
        s.send(b"\\x12\\x34\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0\\5probe\\4test\\0\\0\\1\\0\\1")
        return s.recv(4096)
def attempt(way, host, port):
    try: answer = way(host, port)
    except OSError: return None
    if not answer or b"x-sallyport-reason" in answer.lower(): return None
    return "%s %s %d: %r" % (way.__name__, host, port, answer[:60])
with concurrent.futures.ThreadPoolExecutor(256) as pool:
    tries = [(tcp, h, p) for h in hosts for p in tcp_ports] + [(udp, h, p) for h in hosts for p in udp_ports]
    for line in pool.map(lambda one: attempt(*one), tries):
        if line: print(line)
print("tried", len(tries))
`;

/** A command that prints a line for each answer, and `tried N` at the end. */
export function waysOut({ hosts = [], gate }: WaysOut): readonly string[] {
  const more = gate === "gone" ? GATES_OWN : [];
  const lists = [
    [...TCP_PORTS, ...more],
    [...UDP_PORTS, ...more],
    [...HOSTS, ...hosts],
  ];
  return ["/usr/bin/python3", "-c", PROGRAM, JSON.stringify(lists)];
}

/** What the command prints where nothing answers. */
export function nowhere({ hosts = [], gate }: WaysOut): string {
  const ports = TCP_PORTS.length + UDP_PORTS.length + (gate === "gone" ? 2 * GATES_OWN.length : 0);
  return `tried ${ports * (HOSTS.length + hosts.length)}\n`;
}

/** Something to be found: on the gate's host, TCP and UDP, that answers whoever comes. */
export async function listenOnHost(internet: Internet): Promise<void> {
  const server = await internet.gate.listen("0.0.0.0", HOST_PORT);
  server.on("connection", (socket) => {
    socket.on("error", () => undefined);
    socket.end("the host answers");
  });
  server.unref();
  const datagrams = await internet.gate.bind("0.0.0.0", HOST_PORT);
  datagrams.on("message", (_, { port, address }) => datagrams.send("the host answers", port, address));
  datagrams.unref();
  internet.onClose(() => {
    server.close();
    datagrams.close();
  });
}
