/** `upstream.client_certificates`: whom the gate is to an upstream that asks. Pure. */
import { readId } from "./entry.ts";
import { type Fields, readList, readMap, readText } from "./expect.ts";
import { CLIENT_CERTIFICATE_KEYS } from "./keys.ts";
import { nearest, quoteName, type Report } from "./report.ts";
import type { ClientCertificates, Scope } from "./scope.ts";
import { readTemplate } from "./template.ts";
import type { Position, TreeNode } from "./tree.ts";

type Key = (typeof CLIENT_CERTIFICATE_KEYS)[number];

/** Files what they hold under `upstream.client_certificates.ID.cert`, `.key` and `.passphrase`. */
export function readClientCertificates(scope: Scope, node: TreeNode | undefined): ClientCertificates {
  const known = new Map<string, Position>();
  const items = node && readList(scope.report, node, "`client_certificates`");
  for (const item of items ?? []) {
    const fields = readMap(scope.report, item, "A client certificate", CLIENT_CERTIFICATE_KEYS);
    const id = fields && readCertificate(scope, fields);
    if (fields === undefined || id === undefined) continue;
    const first = known.get(id);
    if (first !== undefined) {
      scope.report.error(
        item.at,
        `The id ${quoteName(id)} is taken by the certificate on line ${first.line}`,
      );
    }
    known.set(id, item.at);
  }
  return known;
}

function readCertificate(scope: Scope, fields: Fields<Key>): string | undefined {
  const { report } = scope;
  for (const key of ["id", "cert", "key"] as const) {
    if (!fields.has(key)) report.error(fields.at, `A client certificate needs its \`${key}\``);
  }
  const id = readId(report, fields.get("id"));
  if (id === undefined) return undefined;
  for (const key of ["cert", "key", "passphrase"] as const) {
    const node = fields.get(key);
    if (node === undefined) continue;
    const use = {
      what: `\`${key}\``,
      key: `upstream.client_certificates.${id}.${key}`,
      secret: key !== "cert",
    };
    readTemplate(scope, node, { ...use, lines: key !== "passphrase" });
  }
  return id;
}

/** The certificate that an entry names. */
export function useClientCertificate(
  report: Report,
  known: ClientCertificates,
  node: TreeNode | undefined,
): string | undefined {
  const id = node && readText(report, node, "`client_certificate`");
  if (node === undefined || id === undefined || known.has(id)) return id;
  const meant = nearest(id, [...known.keys()]);
  const advice = meant === undefined ? "" : `; did you mean ${quoteName(meant)}?`;
  report.error(node.at, `No client certificate has the id ${quoteName(id)}${advice}`);
  return undefined;
}
