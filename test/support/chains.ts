/** Certificate chains that OpenSSL's own tool makes: a right one, and others wrong in one point each. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

interface Chain {
  readonly label: string;
  readonly cert: string;
  readonly key: string;
}

/** One chain that is right and others that are right but for one thing, all by OpenSSL's own tool. */
export function makeChains(dir: string, name: string): { root: string; chains: [Chain, boolean][] } {
  const path = (file: string) => join(dir, file);
  const issue = (file: string, issuer: string | undefined, ...extensions: string[]) => {
    const by = issuer === undefined ? [] : ["-CA", path(`${issuer}.crt`), "-CAkey", path(`${issuer}.pem`)];
    const key = [
      "-newkey",
      "ec",
      "-pkeyopt",
      "ec_paramgen_curve:P-256",
      "-nodes",
      "-keyout",
      path(`${file}.pem`),
    ];
    const added = extensions.flatMap((extension) => ["-addext", extension]);
    const self = ["-subj", `/CN=${file}`, "-days", "2", "-out", path(`${file}.crt`)];
    execFileSync("openssl", ["req", "-x509", ...by, ...key, ...self, ...added], { stdio: "ignore" });
  };
  const authorityOf = ["basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign"];
  const leaf = ["basicConstraints=critical,CA:FALSE", `subjectAltName=DNS:${name}`];
  issue("root", undefined, ...authorityOf);
  issue("middle", "root", ...authorityOf);
  issue("fenced", "root", ...authorityOf, "nameConstraints=critical,permitted;DNS:example.org");
  issue("no-authority", "root", ...leaf);
  issue("good", "middle", ...leaf, "extendedKeyUsage=serverAuth");
  issue("outside", "fenced", ...leaf);
  issue("client", "middle", ...leaf, "extendedKeyUsage=clientAuth");
  issue("by-leaf", "no-authority", ...leaf);
  const read = (...files: string[]) => files.map((file) => readFileSync(path(file), "utf8")).join("");
  const chain = (file: string, issuer: string): Chain => ({
    label: file,
    cert: read(`${file}.crt`, `${issuer}.crt`),
    key: read(`${file}.pem`),
  });
  return {
    root: path("root.crt"),
    chains: [
      [chain("good", "middle"), true],
      [chain("outside", "fenced"), false],
      [chain("client", "middle"), false],
      [chain("by-leaf", "no-authority"), false],
    ],
  };
}
