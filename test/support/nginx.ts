/** nginx in the private internet, with a certificate of its authority. Needs Debian's `nginx-light`. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { unrefAll } from "./namespace.ts";
import type { Internet } from "./private-internet.ts";

export interface NginxOptions {
  /** Where it has its files; relative paths of the config start there. Made if it is not there. */
  readonly directory: string;
  /** What its certificate is for. */
  readonly hosts: readonly string[];
  /** Where it listens with TLS, on port 443. */
  readonly address: string;
  /** What its `http` block holds beside the certificate: the servers. */
  readonly http: string;
}

/** Resolves once it accepts connections; it ends with the internet. */
export async function startNginx(internet: Internet, options: NginxOptions): Promise<void> {
  const { directory, hosts, address, http } = options;
  mkdirSync(directory, { recursive: true });
  const { certPem, keyPem } = internet.authority.issue({ names: hosts });
  writeFileSync(join(directory, "cert.pem"), certPem);
  writeFileSync(join(directory, "key.pem"), keyPem);
  writeFileSync(join(directory, "nginx.conf"), confOf(directory, http));
  const command = ["nginx", "-p", directory, "-c", "nginx.conf", "-e", "stderr"];
  const child = internet.net.spawn(command, { stdio: ["ignore", "ignore", "inherit"] });
  unrefAll(child);
  internet.onClose(() => child.kill("SIGTERM"));
  for (const end = Date.now() + 10_000; ; await delay(20)) {
    const probe = await internet.gate.connect(address, 443).catch(() => undefined);
    if (probe !== undefined) return void probe.destroy();
    if (Date.now() > end || child.exitCode !== null) throw new Error("nginx did not start");
  }
}

/** One process: workers would outlive it, and hold the test's stderr open. */
function confOf(directory: string, http: string): string {
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (name) => `${name}_temp_path ${directory}/${name};`,
  );
  return `
daemon off; master_process off; user root; worker_processes 1; pid ${directory}/pid; error_log stderr crit;
events { worker_connections 256; }
http {
  access_log off; ${temporary.join(" ")}
  ssl_certificate cert.pem; ssl_certificate_key key.pem;
${http}
}
`;
}
