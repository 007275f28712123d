/** What package managers fetch in the client matrix: one package in the shape of each of their registries. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Bodies by path; a page for browsers among them. */
export function packageFiles(directory: string, host: string): ReadonlyMap<string, Buffer> {
  const wheel = Buffer.from("hello from a wheel\n");
  const deb = Buffer.from("hello from a deb\n");
  const tarball = npmTarball(directory);
  const packument = {
    name: "thing",
    "dist-tags": { latest: "1.0.0" },
    versions: {
      "1.0.0": {
        name: "thing",
        version: "1.0.0",
        dist: {
          tarball: `https://${host}/npm/thing/-/thing-1.0.0.tgz`,
          integrity: `sha512-${createHash("sha512").update(tarball).digest("base64")}`,
        },
      },
    },
  };
  return new Map([
    ["/page", Buffer.from("<!doctype html><title>Page</title>")],
    ["/npm/thing", Buffer.from(JSON.stringify(packument))],
    ["/npm/thing/-/thing-1.0.0.tgz", tarball],
    ["/simple/thing/", Buffer.from(`<a href="../../files/thing.whl#sha256=${sha256(wheel)}">thing.whl</a>`)],
    ["/files/thing.whl", wheel],
    ["/index/config.json", Buffer.from(`{"dl":"https://${host}/hello"}\n`)],
    ["/index/th/in/thing", Buffer.from('{"name":"thing","vers":"1.0.0"}\n')],
    ["/apt/./Packages", debIndex(deb)],
    ["/apt/Packages", debIndex(deb)],
    ["/apt/hello-thing_1.0_all.deb", deb],
    ["/apt/./hello-thing_1.0_all.deb", deb],
  ]);
}

function npmTarball(directory: string): Buffer {
  const folder = join(directory, "npm", "package");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), '{"name":"thing","version":"1.0.0"}');
  writeFileSync(join(folder, "hello.txt"), "hello from a tarball\n");
  const file = join(directory, "thing.tgz");
  execFileSync("tar", ["-C", join(directory, "npm"), "-czf", file, "package"]);
  return readFileSync(file);
}

function debIndex(deb: Buffer): Buffer {
  return Buffer.from(
    [
      "Package: hello-thing",
      "Version: 1.0",
      "Architecture: all",
      "Maintainer: Nobody <nobody@example.com>",
      "Filename: ./hello-thing_1.0_all.deb",
      `Size: ${deb.length}`,
      `SHA256: ${sha256(deb)}`,
      "Description: says hello",
      "",
      "",
    ].join("\n"),
  );
}

function sha256(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}
