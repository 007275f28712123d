/** Smart HTTP as sites serve it: nginx, fcgiwrap and git http-backend, for who brings the secret. */
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { unrefAll } from "../namespace.ts";
import { startNginx } from "../nginx.ts";
import type { Internet } from "../private-internet.ts";

export async function createGitOrigin(internet: Internet, host: string, address: string): Promise<void> {
  const directory = join(internet.directory, "git");
  mkdirSync(join(directory, "repositories"), { recursive: true });
  createRepository(directory);
  const child = internet.net.spawn(["fcgiwrap", "-s", `unix:${directory}/fcgi.sock`], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  unrefAll(child);
  internet.onClose(() => child.kill("SIGTERM"));
  const http = serverOf(directory, address, internet.canary.secret);
  await startNginx(internet, { directory, hosts: [host], address, http });
}

function createRepository(directory: string): void {
  const bare = join(directory, "repositories", "hello.git");
  const work = join(directory, "first");
  const git = (...args: readonly string[]): void =>
    void execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b.test", ...args], {
      stdio: "ignore",
    });
  git("init", "-q", "--bare", "-b", "main", bare);
  git("-C", bare, "config", "http.receivepack", "true");
  git("init", "-q", "-b", "main", work);
  writeFileSync(join(work, "hello.txt"), "hello from a repository\n");
  git("-C", work, "add", "hello.txt");
  git("-C", work, "commit", "-q", "-m", "First");
  git("-C", work, "push", "-q", bare, "main");
  chmodSync(bare, 0o777);
}

function serverOf(directory: string, address: string, secret: string): string {
  return `
  server {
    listen ${address}:443 ssl;
    client_max_body_size 0;
    location / {
      if ($http_authorization != "Bearer ${secret}") { return 401; }
      fastcgi_pass unix:${directory}/fcgi.sock;
      fastcgi_param SCRIPT_FILENAME /usr/lib/git-core/git-http-backend;
      fastcgi_param GIT_PROJECT_ROOT ${directory}/repositories;
      fastcgi_param GIT_HTTP_EXPORT_ALL 1;
      fastcgi_param REMOTE_USER somebody;
      fastcgi_param PATH_INFO $uri;
      fastcgi_param QUERY_STRING $args;
      fastcgi_param REQUEST_METHOD $request_method;
      fastcgi_param CONTENT_TYPE $content_type;
      fastcgi_param CONTENT_LENGTH $content_length;
      fastcgi_param GIT_PROTOCOL $http_git_protocol;
      fastcgi_param HTTP_CONTENT_ENCODING $http_content_encoding;
    }
  }`;
}
