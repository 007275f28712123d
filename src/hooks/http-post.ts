/**
 * The one HTTP call of the hook runner. It runs inside the sandbox, as one more client whose traffic passes the gate,
 * so it dials like any program there does: nothing that the gate itself does may call it.
 */
import type { IncomingMessage } from "node:http";
// biome-ignore lint/style/noRestrictedImports: the runner is a client in the sandbox, not a part of the gate
import { Agent, request } from "node:https";

export interface PostOrder {
  readonly url: URL;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string;
  readonly timeoutMs: number;
  readonly maxBytes: number;
  readonly signal?: AbortSignal | undefined;
}

/** What the client's surroundings say of the way out. */
export interface Way {
  /** `HTTPS_PROXY`, `NO_PROXY` and their lower-case forms are read; Node.js itself reads `NODE_EXTRA_CA_CERTS`. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** PEM roots in place of the usual ones. */
  readonly ca?: string | undefined;
}

/** `problem` reads after the hook's name; it quotes nothing that the server sent but its status. */
export type PostEnd =
  | { readonly kind: "answered"; readonly text: string }
  | { readonly kind: "failed"; readonly problem: string };

/** Never rejects. One request, no redirect, no second try, one deadline over all of it. */
export function postJson(order: PostOrder, way: Way): Promise<PostEnd> {
  const { url, headers, body, timeoutMs, maxBytes, signal } = order;
  return new Promise((resolve) => {
    const agent = new Agent({ keepAlive: false, proxyEnv: { ...way.env } });
    const outgoing = request(url, {
      method: "POST",
      agent,
      headers: {
        "content-type": "application/json",
        accept: "application/json",
        "accept-encoding": "identity",
        "user-agent": "sallyport-hook",
        ...Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value])),
        "content-length": Buffer.byteLength(body),
      },
      ...(way.ca === undefined ? {} : { ca: way.ca }),
    });
    const abort = (): void => finish({ kind: "failed", problem: "was not waited for" });
    const timer = setTimeout(
      () => finish({ kind: "failed", problem: `did not answer within ${timeoutMs / 1_000} s` }),
      timeoutMs,
    );
    let over = false;
    function finish(end: PostEnd): void {
      if (over) return;
      over = true;
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
      outgoing.destroy();
      agent.destroy();
      resolve(end);
    }
    outgoing.on("error", (error) =>
      finish({ kind: "failed", problem: `could not be reached${codeOf(error)}` }),
    );
    outgoing.once("response", (response) => take(response, maxBytes, finish));
    signal?.addEventListener("abort", abort, { once: true });
    if (signal?.aborted === true) abort();
    else outgoing.end(body);
  });
}

function take(response: IncomingMessage, maxBytes: number, finish: (end: PostEnd) => void): void {
  const status = response.statusCode ?? 0;
  if (status < 200 || status > 299) {
    // A refusal of the gate's own says why in this field.
    const reason = response.headers["x-sallyport-reason"];
    const why = typeof reason === "string" && /^[a-z-]{1,40}$/.test(reason) ? `, ${reason}` : "";
    finish({ kind: "failed", problem: `answered with status ${status}${why}` });
    return;
  }
  const pieces: Buffer[] = [];
  let length = 0;
  response.on("error", () => finish({ kind: "failed", problem: "broke off its answer" }));
  response.on("data", (bytes: Buffer) => {
    pieces.push(bytes);
    length += bytes.length;
    if (length > maxBytes) finish({ kind: "failed", problem: `answered with more than ${maxBytes} bytes` });
  });
  response.on("end", () => {
    if (!response.complete) finish({ kind: "failed", problem: "broke off its answer" });
    else finish({ kind: "answered", text: Buffer.concat(pieces).toString("utf8") });
  });
}

function codeOf(error: Error): string {
  const code = "code" in error ? String(error.code) : "";
  return /^[A-Z][A-Z0-9_]{0,60}$/.test(code) ? ` (${code})` : "";
}
