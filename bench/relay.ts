/** A bare relay as a contender for HTTP/2: what `node:http2` alone costs on both sides, with no policy and no records. */
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { createAuthority } from "../test/support/pki.ts";
import { type Internet, PUBLIC_V4 } from "../test/support/private-internet.ts";
import type { Contender } from "./contender.ts";
import type { RelayOptions } from "./relay-program.ts";
import { INJECTED_HOST } from "./workloads.ts";

const PORT = 8090;
const PROGRAM = fileURLToPath(new URL("./relay-program.ts", import.meta.url));

export async function startRelay(internet: Internet, core: number): Promise<Contender> {
  const directory = join(internet.directory, "relay");
  mkdirSync(directory, { recursive: true });
  const authority = createAuthority("Throw-away CA of the relay");
  const caFile = join(directory, "ca.pem");
  writeFileSync(caFile, authority.certPem);
  const leaf = authority.issue({ names: [INJECTED_HOST] });
  const options: RelayOptions = {
    port: PORT,
    cert: leaf.certPem,
    key: leaf.keyPem,
    origin: { address: PUBLIC_V4, name: INJECTED_HOST, ca: internet.authority.certPem },
    secret: internet.canary.secret,
  };
  const child = internet.gate.spawn(["taskset", "-c", String(core), process.execPath, PROGRAM], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const { stdin, stdout } = child;
  if (stdin === null || stdout === null) throw new Error("The relay has no pipes");
  const ended = once(child, "exit");
  async function stop(): Promise<void> {
    child.kill("SIGTERM");
    await ended;
  }
  internet.onClose(stop);
  stdin.end(JSON.stringify(options));
  await once(createInterface({ input: stdout }), "line");
  return { pid: child.pid ?? 0, port: PORT, caFile, audit: async () => undefined, stop };
}
