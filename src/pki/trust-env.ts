/** The variables by which clients are told whom to trust. Pure. */

export interface TrustPaths {
  /** PEM: the machine's roots and the gate's authority, since most of these variables replace what a client trusts. */
  readonly bundle: string;
  /** PKCS#12 of the same, for Java. */
  readonly truststore: string | undefined;
}

/** Each takes the path of a PEM file. */
const BUNDLE_VARIABLES = [
  // OpenSSL, and with it Python's ssl and httpx, Ruby, PHP; Go and rustls read it too.
  "SSL_CERT_FILE",
  "CURL_CA_BUNDLE",
  "GIT_SSL_CAINFO",
  // Bring roots of their own and never ask the machine.
  "REQUESTS_CA_BUNDLE",
  "PIP_CERT",
  "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
  // These two add to their own roots.
  "NODE_EXTRA_CA_CERTS",
  "DENO_CERT",
  "npm_config_cafile",
  "CARGO_HTTP_CAINFO",
  "AWS_CA_BUNDLE",
  "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
  "NIX_SSL_CERT_FILE",
] as const;

/**
 * What makes ordinary clients trust the gate without losing the machine's roots. `SSL_CERT_DIR` is left alone: OpenSSL
 * and Go read the directory beside the file, so whatever it names only adds.
 */
export function trustEnvironment({ bundle, truststore }: TrustPaths): Readonly<Record<string, string>> {
  const variables: Record<string, string> = {};
  for (const name of BUNDLE_VARIABLES) variables[name] = bundle;
  if (truststore !== undefined) variables["JAVA_TOOL_OPTIONS"] = javaOptions(truststore);
  return variables;
}

/** Where the truststore of a bundle is, so that whoever has found the one knows the other. */
export function truststoreBeside(bundle: string): string {
  return `${bundle.replace(/\.(?:pem|crt)$/, "")}.p12`;
}

export type Shell = "sh" | "fish";

/** One line that sets a variable for what the shell starts from then on. */
export function exportLine(name: string, value: string, shell: Shell = "sh"): string {
  if (shell === "fish") return `set -gx ${name} '${value.replace(/[\\']/g, "\\$&")}'`;
  return `export ${name}='${value.replaceAll("'", "'\\''")}'`;
}

/** The JVM splits the variable at blanks, except inside quotes. */
function javaOptions(truststore: string): string {
  const store = `-Djavax.net.ssl.trustStore=${truststore}`;
  return `${/\s/.test(store) ? `"${store}"` : store} -Djavax.net.ssl.trustStoreType=PKCS12`;
}
