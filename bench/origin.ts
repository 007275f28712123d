/** The origin: one nginx worker that answers 200 only to those who know the secret. */
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Internet } from "../test/support/private-internet.ts";
import { PUBLIC_V4 } from "../test/support/private-internet.ts";
import { INJECTED_HOST, TUNNELLED_HOST } from "./workloads.ts";

const SMALL_BYTES = 200;
const LARGE_BYTES = 65_536;
const START_MS = 5_000;

/** Resolves once it answers. It ends with the internet. */
export async function startOrigin(internet: Internet, core: number): Promise<void> {
  const directory = join(internet.directory, "origin");
  mkdirSync(directory);
  const leaf = internet.authority.issue({ names: [INJECTED_HOST, TUNNELLED_HOST] });
  writeFileSync(join(directory, "leaf.pem"), leaf.certPem);
  writeFileSync(join(directory, "leaf.key"), leaf.keyPem, { mode: 0o600 });
  writeFileSync(join(directory, "large"), "x".repeat(LARGE_BYTES));
  writeFileSync(join(directory, "nginx.conf"), configOf(directory, internet.canary.secret));
  const command = [
    "taskset",
    "-c",
    String(core),
    "nginx",
    "-p",
    directory,
    "-c",
    join(directory, "nginx.conf"),
  ];
  const child = internet.net.spawn(command, { stdio: ["ignore", "inherit", "inherit"] });
  const ended = once(child, "exit");
  internet.onClose(async () => {
    child.kill("SIGTERM");
    await ended;
  });
  await untilListening(internet);
}

async function untilListening(internet: Internet): Promise<void> {
  for (const end = Date.now() + START_MS; ; ) {
    try {
      const socket = await internet.gate.connect(PUBLIC_V4, 443);
      socket.destroy();
      return;
    } catch (error) {
      if (Date.now() > end) throw new Error("nginx does not listen", { cause: error });
      await delay(20);
    }
  }
}

/** Keep-alive without end: what is measured is the contender, not how often nginx hangs up. */
function configOf(directory: string, secret: string): string {
  const file = (name: string) => join(directory, name);
  return `
daemon off;
master_process off;
pid ${file("pid")};
error_log stderr error;
events { worker_connections 8192; }
http {
    access_log off;
    sendfile on;
    tcp_nodelay on;
    keepalive_requests 1000000000;
    keepalive_timeout 3600s;
    client_body_temp_path ${file("body")};
    proxy_temp_path ${file("proxy")};
    fastcgi_temp_path ${file("fastcgi")};
    uwsgi_temp_path ${file("uwsgi")};
    scgi_temp_path ${file("scgi")};
    ssl_certificate ${file("leaf.pem")};
    ssl_certificate_key ${file("leaf.key")};
    ssl_protocols TLSv1.2 TLSv1.3;
    ssl_session_cache shared:tls:4m;
    map_hash_bucket_size 256;
    map "$host $http_authorization" $stranger {
        default 1;
        "${INJECTED_HOST} Bearer ${secret}" "";
        "~^${TUNNELLED_HOST} " "";
    }
    server {
        listen ${PUBLIC_V4}:443 ssl http2 backlog=4096;
        default_type text/plain;
        location = /small { if ($stranger) { return 403; } return 200 ${"x".repeat(SMALL_BYTES)}; }
        location = /large { if ($stranger) { return 403; } alias ${file("large")}; }
    }
}
`;
}
