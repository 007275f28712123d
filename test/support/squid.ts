/** Squid as the parent proxy of the gate: outside, with Basic authentication and an access log. */
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { unrefAll } from "./namespace.ts";
import { DNS_V4, type Internet } from "./private-internet.ts";

export const SQUID = "11.0.0.80";
export const SQUID_PORT = 3128;
/** As it is told to it; `config` refers to it by a variable. */
export const CREDENTIALS = "gate:sword-fish-42";
/** Where it connects nobody to. */
export const FORBIDDEN = "11.0.0.66";
/** Whom Squid becomes where it is started by root. */
const USER = "proxy";
const START_MS = 15_000;

export interface Squid {
  /** Lines of the access log: method, target, user, status. */
  readonly lines: () => readonly string[];
  /** Resolves with the lines once one of them fits. */
  until(fits: (line: string) => boolean): Promise<void>;
}

export async function startSquid(internet: Internet): Promise<Squid> {
  // Not below the internet's own directory, which only its owner may enter.
  const directory = mkdtempSync(join(tmpdir(), "sallyport-squid-"));
  const [user, password] = CREDENTIALS.split(":");
  const hash = spawnSync("openssl", ["passwd", "-apr1", String(password)], {
    encoding: "utf8",
  }).stdout.trim();
  writeFileSync(join(directory, "users"), `${user}:${hash}\n`);
  const config = join(directory, "squid.conf");
  const log = join(directory, "access.log");
  writeFileSync(log, "");
  writeFileSync(config, configOf(directory));
  if (process.getuid?.() === 0) spawnSync("chown", ["-R", USER, directory]);
  const child = internet.net.spawn(["squid", "-N", "-f", config], { cwd: directory, stdio: "ignore" });
  unrefAll(child);
  const ended = once(child, "exit");
  internet.onClose(async () => {
    child.kill("SIGTERM");
    await ended;
    rmSync(directory, { recursive: true, force: true });
  });
  await untilListening(internet, () => child.exitCode !== null);
  const lines = (): readonly string[] => readFileSync(log, "utf8").split("\n").filter(Boolean);
  return {
    lines,
    async until(fits) {
      for (const end = Date.now() + START_MS; !lines().some(fits); await delay(20)) {
        if (Date.now() > end) throw new Error(`Squid logged only:\n${lines().join("\n")}`);
      }
    },
  };
}

function configOf(directory: string): string {
  const file = (name: string) => join(directory, name);
  return `
http_port ${SQUID}:${SQUID_PORT}
auth_param basic program /usr/lib/squid/basic_ncsa_auth ${file("users")}
auth_param basic children 1 startup=1 idle=1
auth_param basic realm words-of-the-parent
acl known proxy_auth REQUIRED
acl forbidden dst ${FORBIDDEN}
acl connect method CONNECT
http_access deny !known
http_access deny forbidden
http_access allow connect
http_access deny all
dns_nameservers ${DNS_V4}
cache deny all
logformat plain %rm %ru %un %>Hs
access_log stdio:${file("access.log")} plain
buffered_logs off
cache_log ${file("cache.log")}
pinger_enable off
shutdown_lifetime 0 seconds
coredump_dir none
pid_filename none
visible_hostname words-of-the-parent
`;
}

async function untilListening(internet: Internet, over: () => boolean): Promise<void> {
  for (const end = Date.now() + START_MS; ; ) {
    try {
      (await internet.gate.connect(SQUID, SQUID_PORT)).destroy();
      return;
    } catch (error) {
      if (over() || Date.now() > end) throw new Error("Squid does not listen", { cause: error });
      await delay(50);
    }
  }
}
