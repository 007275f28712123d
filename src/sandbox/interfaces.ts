/** Which of a namespace's interfaces lead out of it. Pure. */

/** Every namespace has these where the kernel's modules are loaded; down, they lead nowhere. */
const FALLBACK_TUNNELS: ReadonlySet<string> = new Set([
  "tunl0",
  "gre0",
  "gretap0",
  "erspan0",
  "ip_vti0",
  "ip6_vti0",
  "sit0",
  "ip6tnl0",
  "ip6gre0",
]);

/** Reads what `ip -o link show` prints; returns names without their peers. */
export function parseWaysOut(links: string): readonly string[] {
  return links.split("\n").flatMap((line) => {
    const match = /^\d+: ([^:@\s]+)(?:@\S*)?: <([^>]*)>/.exec(line);
    const [, name = "", flags = ""] = match ?? [];
    if (match === null || name === "lo") return [];
    const up = flags.split(",").includes("UP");
    return FALLBACK_TUNNELS.has(name) && !up ? [] : [name];
  });
}
