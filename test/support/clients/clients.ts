/** The rows of the client matrix: each client as a line of shell, in which `$HOST` is whom it asks. */
import { join } from "node:path";

export interface Row {
  readonly name: string;
  /** What is proved beside the three checks of every row. */
  readonly does: string;
  /** Succeeds, and prints `hello`, only if the origin got the secret. */
  readonly script: string;
  /** What an explicit door needs beyond the proxy and trust variables; for the docs. */
  readonly byHand: string;
}

const HERE = join(import.meta.dirname, "programs");
const NODE = `'${process.execPath}' '${HERE}/node.mjs'`;
const PYTHON = "/usr/bin/python3";
const CURL = "curl -sS --fail-with-body --max-time 20";
/** `${HTTPS_PROXY:+…}` is there only where the proxy is set. */
const JAVA_PROXY = `\${HTTPS_PROXY:+-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=8080}`;

export const ROWS: readonly Row[] = [
  { name: "curl", does: "GET over HTTP/1.1", script: `${CURL} --http1.1 https://$HOST/hello`, byHand: "" },
  {
    name: "curl, HTTP/2",
    does: "GET over HTTP/2 to the origin's end",
    script: `${CURL} --http2 -w ' %{http_version}' https://$HOST/hello >out || { cat out; exit 1; }; cat out; grep -q ' 2$' out`,
    byHand: "",
  },
  {
    name: "curl, upload",
    does: "1 MB by PUT, counted by the origin",
    script: `head -c 1000000 /dev/zero | ${CURL} -T - https://$HOST/count | tee out; grep -q 1000000 out`,
    byHand: "",
  },
  {
    name: "curl, resume",
    does: "the rest of a file by a range",
    script: `printf hel >part; ${CURL} -C - -o part https://$HOST/range && cat part`,
    byHand: "",
  },
  {
    name: "curl, SOCKS5",
    does: "GET, the name asked of the proxy",
    script: `${CURL} \${HTTPS_PROXY:+--proxy socks5h://127.0.0.1:8080} https://$HOST/hello`,
    byHand: "`ALL_PROXY=socks5h://HOST:PORT`",
  },
  {
    name: "wget",
    does: "GET",
    script: `wget -nv -t 1 -T 20 \${HTTPS_PROXY:+--ca-certificate="$SSL_CERT_FILE"} -O - https://$HOST/hello`,
    byHand: "`ca_certificate` in `~/.wgetrc`",
  },
  {
    name: "Python urllib",
    does: "GET",
    script: `${PYTHON} '${HERE}/python.py' urllib https://$HOST/hello`,
    byHand: "",
  },
  {
    name: "Python requests",
    does: "GET",
    script: `${PYTHON} '${HERE}/python.py' requests https://$HOST/hello`,
    byHand: "",
  },
  {
    name: "Python httpx",
    does: "GET",
    script: `${PYTHON} '${HERE}/python.py' httpx https://$HOST/hello`,
    byHand: "",
  },
  { name: "Node fetch", does: "GET", script: `${NODE} fetch $HOST`, byHand: "`NODE_USE_ENV_PROXY=1`" },
  { name: "undici", does: "GET", script: `${NODE} undici $HOST`, byHand: "`EnvHttpProxyAgent`" },
  {
    name: "axios",
    does: "GET",
    script: `${NODE} axios $HOST`,
    byHand: "",
  },
  {
    name: "ws",
    does: "a WebSocket message and its echo",
    script: `${NODE} ws $HOST`,
    byHand: "an `https.Agent` with `proxyEnv`",
  },
  { name: "@grpc/grpc-js", does: "a unary call", script: `${NODE} grpc $HOST`, byHand: "" },
  { name: "Go net/http", does: "GET", script: `"$BUILT/get-go" https://$HOST/hello`, byHand: "" },
  {
    name: "Java HttpClient",
    does: "GET",
    script: `java -Xshare:auto -cp "$BUILT" ${JAVA_PROXY} Get https://$HOST/hello`,
    byHand: "`-Dhttps.proxyHost` and `-Dhttps.proxyPort`",
  },
  {
    name: "openssl s_client",
    does: "a verified handshake, then GET",
    script: `printf 'GET /hello HTTP/1.1\\r\\nHost: %s\\r\\nConnection: close\\r\\n\\r\\n' $HOST | openssl s_client \${HTTPS_PROXY:+-proxy 127.0.0.1:8080} -connect $HOST:443 -servername $HOST -verify_return_error -quiet -ign_eof >out || { cat out; exit 1; }; cat out; grep -q '^HTTP/1.1 200' out`,
    byHand: "`-proxy HOST:PORT`",
  },
  {
    name: "npm",
    does: "install from a registry: the packument, the tarball, its integrity",
    script: `npm install --silent --loglevel error --no-audit --no-fund --fetch-retries 0 --registry https://$HOST/npm/ thing && cat node_modules/thing/hello.txt`,
    byHand: "",
  },
  {
    name: "pip-style download",
    does: "a simple index, the file, its hash",
    script: `${PYTHON} '${HERE}/pip.py' https://$HOST`,
    byHand: "",
  },
  {
    name: "cargo-style sparse index",
    does: "config.json, an entry, and 304 for its ETag",
    script: `${CURL} https://$HOST/index/config.json && ${CURL} --etag-save tag https://$HOST/index/th/in/thing && test "$(${CURL} --etag-compare tag -w '%{http_code}' https://$HOST/index/th/in/thing)" = 304`,
    byHand: "",
  },
  {
    name: "git",
    does: "clone, commit, push over smart HTTP (nginx, fcgiwrap, git http-backend)",
    script: `git clone -q https://$GIT_HOST/hello.git work && cd work && git -c user.name=a -c user.email=a@b.test commit -q --allow-empty -m "$RANDOM_NAME" && git push -q origin HEAD:refs/heads/$RANDOM_NAME && git ls-remote origin && cat hello.txt`,
    byHand: "",
  },
  {
    name: "apt",
    does: "update and download from a repository over https",
    script: `'${HERE}/apt.sh' $HOST`,
    byHand: "`Acquire::https::CAInfo`",
  },
  {
    name: "Chromium, headless",
    does: "a page over HTTP/2, its fetch, its WebSocket, its event stream",
    // Its hello carries ECH's place-holder, so that the gate answers in the stranger's place too: that it verifies is
    // seen where it is not told of the CA.
    script: `if [ $HOST = stranger.test ]; then export HOME="$PWD"; else '${HERE}/nss.sh'; fi; '${process.execPath}' '${HERE}/browser.mjs' $HOST`,
    byHand: "the CA in `~/.pki/nssdb`, in the jail too",
  },
];

export const DOORS = ["explicit", "jail"] as const;

/** Whether a client passed its row through each door; a door is missing where it was not tried. */
export type Results = ReadonlyMap<string, Readonly<Partial<Record<(typeof DOORS)[number], boolean>>>>;

/** The table of docs/clients.md, as one run of the matrix makes it. */
export function tableOf(rows: readonly Row[], results: Results): string {
  const lines = rows.map(({ name, does, byHand }) => {
    const cells = DOORS.map((door) => SAID.get(results.get(name)?.[door]));
    return `| ${[name, does, ...cells, byHand || "nothing"].join(" | ")} |`;
  });
  return [
    `| client | proved | ${DOORS.join(" | ")} | to set by hand |`,
    "|---|---|---|---|---|",
    ...lines,
  ].join("\n");
}

const SAID: ReadonlyMap<boolean | undefined, string> = new Map([
  [true, "yes"],
  [false, "no"],
  [undefined, "not tried"],
]);

/** What a page says now: all of its lines that are of a table. */
export function tableIn(page: string): string {
  return page
    .split("\n")
    .filter((line) => line.startsWith("|"))
    .join("\n");
}
