/** Squid as a contender: ssl_bump with generated certificates, an access log, and the same list of names. */
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { createAuthority } from "../test/support/pki.ts";
import { type Internet, PUBLIC_V4 } from "../test/support/private-internet.ts";
import type { Contender } from "./contender.ts";
import { INJECTED_HOST, TUNNELLED_HOST } from "./workloads.ts";

const PORT = 3128;
const CERTGEN = "/usr/lib/squid/security_file_certgen";
/** Whom Squid becomes where it is started by root. */
const USER = "proxy";
const START_MS = 15_000;

export async function startSquid(internet: Internet, core: number): Promise<Contender> {
  // Not below the internet's own directory, which only its owner may enter.
  const directory = mkdtempSync(join(tmpdir(), "sallyport-bench-squid-"));
  const caFile = prepare(directory, internet);
  const config = join(directory, "squid.conf");
  const command = ["taskset", "-c", String(core), "squid", "-N", "-f", config];
  const child = internet.gate.spawn(command, { cwd: directory, stdio: ["ignore", "ignore", "inherit"] });
  const ended = once(child, "exit");
  async function stop(): Promise<void> {
    child.kill("SIGTERM");
    await ended;
    rmSync(directory, { recursive: true, force: true });
  }
  internet.onClose(stop);
  await untilListening(internet, () => child.exitCode !== null);
  return {
    pid: child.pid ?? 0,
    port: PORT,
    caFile,
    async audit({ injected }, requests) {
      const logged = statSync(join(directory, "access.log")).size;
      if (injected && logged < requests) throw new Error("Squid does not write its access log");
    },
    stop,
  };
}

function prepare(directory: string, internet: Internet): string {
  const authority = createAuthority("Throw-away CA of Squid");
  const caFile = join(directory, "ca.pem");
  mkdirSync(join(directory, "spool"));
  writeFileSync(caFile, authority.certPem);
  writeFileSync(join(directory, "ca-and-key.pem"), authority.certPem + authority.keyPem, { mode: 0o600 });
  writeFileSync(join(directory, "root.pem"), internet.authority.certPem);
  const hosts = [INJECTED_HOST, TUNNELLED_HOST].map((name) => `${PUBLIC_V4} ${name}\n`);
  writeFileSync(join(directory, "hosts"), hosts.join(""));
  writeFileSync(join(directory, "squid.conf"), configOf(directory, internet.canary.secret), { mode: 0o600 });
  mustRun(CERTGEN, "-c", "-s", join(directory, "certificates"), "-M", "16MB");
  mustRun("chown", "-R", USER, directory);
  return caFile;
}

/** What only costs is off (cache, ICMP, reverse names); what Sallyport does too is on. */
function configOf(directory: string, secret: string): string {
  const file = (name: string) => join(directory, name);
  const names = [
    "registry.example.org llm.example.org api.example.org .packages.example.net .static.example.net",
    ...Array.from({ length: 10 }, (_, index) => `service-${index}.example.com`),
  ];
  return `
http_port 127.0.0.1:${PORT} ssl-bump cert=${file("ca-and-key.pem")} generate-host-certificates=on dynamic_cert_mem_cache_size=16MB
sslcrtd_program ${CERTGEN} -s ${file("certificates")} -M 16MB
sslcrtd_children 1 startup=1 idle=1
tls_outgoing_options cafile=${file("root.pem")} min-version=1.2
acl denied dstdomain tracker.example.com .ads.example.com
acl injected dstdomain ${INJECTED_HOST}
acl listed dstdomain ${INJECTED_HOST} ${TUNNELLED_HOST} ${names.join(" ")}
acl connect method CONNECT
acl tls_port port 443
acl step1 at_step SslBump1
acl tunnelled ssl::server_name ${TUNNELLED_HOST}
acl tunnelled_name dstdomain ${TUNNELLED_HOST}
ssl_bump peek step1 tunnelled_name
ssl_bump splice tunnelled
ssl_bump bump all
http_access deny denied
http_access deny connect !tls_port
http_access allow listed
http_access deny all
request_header_access Authorization deny injected
request_header_add Authorization "Bearer ${secret}" injected
cache deny all
cache_mem 8 MB
access_log stdio:${file("access.log")} squid
buffered_logs on
cache_log ${file("cache.log")}
hosts_file ${file("hosts")}
client_persistent_connections on
server_persistent_connections on
via off
forwarded_for delete
pinger_enable off
shutdown_lifetime 0 seconds
coredump_dir none
pid_filename none
visible_hostname bench
`;
}

async function untilListening(internet: Internet, over: () => boolean): Promise<void> {
  for (const end = Date.now() + START_MS; ; ) {
    try {
      const socket = await internet.gate.connect("127.0.0.1", PORT);
      socket.destroy();
      return;
    } catch (error) {
      if (over() || Date.now() > end) throw new Error("Squid does not listen", { cause: error });
      await delay(50);
    }
  }
}

function mustRun(command: string, ...args: readonly string[]): void {
  const { status, stderr, error } = spawnSync(command, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`${command} failed: ${error?.message ?? stderr}`);
}
