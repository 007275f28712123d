/** How each client is asked whether it trusts a TLS server, and what its answer means. Pure. */

/** A client's run, over. */
export interface Outcome {
  /** Undefined: it did not end in time, or a signal ended it. */
  readonly code: number | undefined;
  readonly timedOut: boolean;
  /** stdout and stderr. */
  readonly output: string;
}

export interface Target {
  readonly url: URL;
  /** Of `https_proxy`, for clients that do not read it. */
  readonly proxy: URL | undefined;
}

export interface TrustCheck {
  readonly client: string;
  /** Looked for on PATH; a client that is not there is not asked. */
  readonly program: string;
  /** Arguments of one HTTPS request, which may be answered with anything. */
  argv(target: Target): readonly string[];
  readonly env?: (target: Target) => Readonly<Record<string, string>>;
  /** Exit codes after which the certificate must have been accepted. */
  readonly passed: readonly number[];
  /** What it says where the certificate was accepted and the answer was not to its taste. */
  readonly answered?: RegExp;
  /** Which variable of `trustEnvironment` tells it; undefined where none does. */
  readonly variable: string | undefined;
}

export type Trust = "trusts" | "distrusts" | "absent" | "unclear";

/** In the words of OpenSSL, GnuTLS, Node.js, Java, rustls and Go. */
const DISTRUST =
  /certificate[ _]verify[ _]failed|certificate verification failed|unable to get local issuer|UNABLE_TO_GET_ISSUER|UNABLE_TO_VERIFY_LEAF|self[- _]signed[ _]cert|SSL certificate problem|PKIX path building failed|UnknownIssuer|unknown authority|confirming the ssl certificate|SSL validation failed|(?:ca-|CA )(?:certificates|bundle).{0,40}(?:invalid|not found)|known issuer|cannot verify|CAfile/i;

/** What a client that got as far as HTTP says of the refusal that it got, or of the page. */
const ANSWERED = /\b(?:40[0-9]|421|50[0-9])\b|Forbidden|not found/i;

/** Ends in a word for whatever happened: no exit code of Python's tells one failure from another. */
const PYTHON_TAIL = `
except ImportError:
    print("ABSENT")
except Exception as error:
    print("ANSWERED" if isinstance(error, answers) else "%s: %s" % (type(error).__name__, error))
`;

export const TRUST_CHECKS: readonly TrustCheck[] = [
  {
    client: "curl",
    program: "curl",
    argv: ({ url }) => ["-sS", "-o", "/dev/null", url.href],
    passed: [0],
    variable: "CURL_CA_BUNDLE",
  },
  {
    client: "openssl",
    program: "openssl",
    argv: ({ url, proxy }) => [
      ...["s_client", "-connect", `${url.hostname}:${portOf(url)}`, "-servername", url.hostname],
      ...[
        "-verify_return_error",
        ...(proxy === undefined ? [] : ["-proxy", `${proxy.hostname}:${portOf(proxy)}`]),
      ],
    ],
    passed: [0],
    variable: "SSL_CERT_FILE",
  },
  python("python urllib", "SSL_CERT_FILE", "import urllib.request, urllib.error", {
    answers: "urllib.error.HTTPError",
    get: "urllib.request.urlopen(url)",
  }),
  python("python requests", "REQUESTS_CA_BUNDLE", "import requests", {
    answers: "()",
    get: "requests.get(url)",
  }),
  python("python httpx", "SSL_CERT_FILE", "import httpx", { answers: "()", get: "httpx.get(url)" }),
  {
    client: "pip",
    program: "pip3",
    argv: ({ url }) => [
      ...["index", "versions", "--retries", "0", "--disable-pip-version-check", "--no-input"],
      ...["--index-url", url.href, "sallyport-doctor"],
    ],
    env: () => ({ PIP_CONFIG_FILE: "/dev/null" }),
    passed: [],
    answered: /No matching distribution/,
    variable: "PIP_CERT",
  },
  {
    client: "node",
    program: "node",
    argv: ({ url }) => ["-e", NODE_GET, url.href],
    env: () => ({ NODE_USE_ENV_PROXY: "1" }),
    passed: [],
    answered: /ANSWERED/,
    variable: "NODE_EXTRA_CA_CERTS",
  },
  {
    client: "npm",
    program: "npm",
    argv: ({ url }) => [
      "view",
      "sallyport-doctor",
      "--registry",
      url.href,
      "--fetch-retries=0",
      "--prefer-online",
    ],
    passed: [0],
    answered: /code E[45]\d\d/,
    variable: "npm_config_cafile",
  },
  {
    client: "deno",
    program: "deno",
    argv: ({ url }) => ["eval", `await fetch(${JSON.stringify(url.href)})`],
    passed: [0],
    variable: "DENO_CERT",
  },
  {
    client: "go",
    program: "go",
    argv: () => ["list", "-m", "-versions", "sallyport.invalid/doctor"],
    env: ({ url }) => ({ GOPROXY: url.href, GONOSUMDB: "*", GOFLAGS: "-mod=mod", GOTOOLCHAIN: "local" }),
    passed: [0],
    answered: ANSWERED,
    variable: "SSL_CERT_FILE",
  },
  {
    client: "git",
    program: "git",
    argv: ({ url }) => ["ls-remote", url.href],
    env: () => ({ GIT_TERMINAL_PROMPT: "0" }),
    passed: [0],
    answered: /returned error: \d|not found|not valid|Authentication failed|could not read Username/,
    variable: "GIT_SSL_CAINFO",
  },
  {
    client: "cargo",
    program: "cargo",
    argv: () => ["search", "--registry", "doctor", "--limit", "1", "sallyport"],
    env: ({ url }) => ({ CARGO_REGISTRIES_DOCTOR_INDEX: `sparse+${url.href}`, CARGO_NET_RETRY: "0" }),
    passed: [0],
    answered: /got \d{3}|config\.json|auth-required|at line \d+ column/,
    variable: "CARGO_HTTP_CAINFO",
  },
  {
    client: "java",
    // It fetches a URL as any Java program does, and comes with every Java.
    program: "keytool",
    argv: ({ url, proxy }) => [
      ...(proxy === undefined
        ? []
        : [`-J-Dhttps.proxyHost=${proxy.hostname}`, `-J-Dhttps.proxyPort=${portOf(proxy)}`]),
      ...["-printcrl", "-file", url.href],
    ],
    passed: [0],
    answered: /HTTP response code|FileNotFoundException|CRLException|Empty input/,
    variable: "JAVA_TOOL_OPTIONS",
  },
  {
    client: "wget",
    program: "wget",
    argv: ({ url }) => ["-nv", "--tries=1", "-O", "/dev/null", url.href],
    // 8: the server answered with an error status.
    passed: [0, 8],
    variable: undefined,
  },
  {
    client: "aws",
    program: "aws",
    argv: ({ url }) => [
      "s3api",
      "list-buckets",
      "--no-sign-request",
      "--region",
      "us-east-1",
      "--endpoint-url",
      url.href,
    ],
    env: () => ({ AWS_MAX_ATTEMPTS: "1", AWS_EC2_METADATA_DISABLED: "true" }),
    passed: [0],
    answered: /An error occurred \(/,
    variable: "AWS_CA_BUNDLE",
  },
];

const NODE_GET = `require("node:https").get(process.argv[1], (answer) => { console.log("ANSWERED"); answer.destroy(); })
  .on("error", (error) => console.log(error.code, error.message));`;

export function judge(check: TrustCheck, { code, timedOut, output }: Outcome): Trust {
  if (output.includes("ABSENT")) return "absent";
  if (timedOut) return "unclear";
  // Before anything else: some clients warn of the certificate, go on, and end as if all were well.
  if (DISTRUST.test(output)) return "distrusts";
  if (code !== undefined && check.passed.includes(code)) return "trusts";
  return check.answered?.test(output) === true ? "trusts" : "unclear";
}

function python(
  client: string,
  variable: string,
  imports: string,
  { answers, get }: { readonly answers: string; readonly get: string },
): TrustCheck {
  const program = `import sys\nanswers = ()\ntry:\n    url = sys.argv[1]\n    ${imports}\n    answers = ${answers}\n    ${get}\n    print("ANSWERED")${PYTHON_TAIL}`;
  return {
    client,
    program: "python3",
    argv: ({ url }) => ["-c", program, url.href],
    passed: [],
    answered: /^ANSWERED$/m,
    variable,
  };
}

function portOf({ port, protocol }: URL): string {
  return port || (protocol === "http:" ? "80" : "443");
}
