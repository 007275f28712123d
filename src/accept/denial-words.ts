/** The words for every reason of a denial: what was refused and why, and what would change it. Pure. */
import type { Reason } from "../model/decision.ts";
import type { Listener } from "../model/exchange.ts";

/** `{host}` in `message` is replaced. */
export interface Words {
  readonly message: string;
  readonly hint: string;
}

const SAME_AGAIN = "Retrying will not help.";

/** Every reason, so that one without words does not compile. No address, no rule text, no secret: see G13 and I22. */
const DENIALS: Readonly<Record<Reason, Words>> = {
  "rule-allows": {
    message: "Blocked by sandbox policy: {host} was refused although a rule allows it",
    hint: `${SAME_AGAIN} This is a fault of the gate: the operator should report it.`,
  },
  "no-rule-matched": {
    message: "Blocked by sandbox policy: no rule allows this request to {host}",
    hint: `${SAME_AGAIN} The operator would have to add the host, or this port, method or path of it, to network.allowlist.`,
  },
  "rule-denies": {
    message: "Blocked by sandbox policy: a rule forbids {host}",
    hint: `${SAME_AGAIN} The operator would have to take the host off network.denylist.`,
  },
  "network-disabled": {
    message: "Blocked by sandbox policy: this sandbox has no network, so {host} cannot be reached",
    hint: `${SAME_AGAIN} The operator would have to give the sandbox a network with an allowlist.`,
  },
  loopback: {
    message: "Blocked by sandbox policy: {host} is the gate's own machine",
    hint: `${SAME_AGAIN} No setting opens it. A service inside the sandbox is reached without the proxy: set NO_PROXY=localhost,127.0.0.1.`,
  },
  "address-not-public": {
    message: "Blocked by sandbox policy: {host} is not at a public address",
    hint: `${SAME_AGAIN} If it is an internal service, the operator would have to name it by an exact rule and list its range in upstream.allow_ranges.`,
  },
  "address-denied": {
    message: "Blocked by sandbox policy: the address of {host} is in a refused range",
    hint: `${SAME_AGAIN} The operator would have to change upstream.deny_ranges.`,
  },
  "names-disagree": {
    message: "Blocked by sandbox policy: the connection was made for another name than {host}",
    hint: `${SAME_AGAIN} The names in CONNECT, in the TLS handshake and in Host must be the same: use a connection of its own for each host.`,
  },
  "no-name": {
    message: "Blocked by sandbox policy: the connection does not say which host it is for",
    hint: `${SAME_AGAIN} Address the host by name, not by a bare address, and send the name in the TLS handshake (SNI).`,
  },
  "plaintext-secret": {
    message: "Blocked by sandbox policy: a secret is added for {host}, and not over unencrypted HTTP",
    hint: `${SAME_AGAIN} Use https:// instead of http://.`,
  },
  "needs-inspection": {
    message: "Blocked by sandbox policy: what was sent to {host} is no TLS that the gate can check",
    hint: `${SAME_AGAIN} Use TLS with the host's name in the handshake, or let the operator allow the port with protocol: tcp.`,
  },
  "method-refused": {
    message: "Blocked by sandbox policy: the method, or a field that overrides it, is refused for {host}",
    hint: `${SAME_AGAIN} TRACE and method or URL override fields are refused where rules depend on the request; leave them out.`,
  },
  "path-ambiguous": {
    message:
      "Blocked by sandbox policy: the path can be read in more than one way, so no rule for {host} can be trusted with it",
    hint: `${SAME_AGAIN} Send the path without dot segments, doubled slashes, backslashes, semicolons and encoded separators.`,
  },
  "identity-unknown": {
    message: "Blocked by sandbox policy: the gate does not know this sandbox",
    hint: "Retrying without credentials will not help. Send the sandbox's id and token in Proxy-Authorization (http://ID:TOKEN@PROXY in HTTPS_PROXY), or before the host of a base URL (http://LISTENER/~ID:TOKEN/HOST), from the sandbox that they belong to.",
  },
  "secret-unavailable": {
    message:
      "Blocked by sandbox policy: the secret for {host} is not available, and nothing is sent without it",
    hint: "Retrying will not help until the operator provides the secret; /readyz of the gate names what is missing.",
  },
  "placeholder-misplaced": {
    message: "Blocked by sandbox policy: a credential placeholder was sent where it is not replaced",
    hint: `${SAME_AGAIN} Send the placeholder only to the hosts, and only in the place, that the credential is meant for.`,
  },
  "hook-denied": {
    message: "Blocked by sandbox policy: the operator's policy hook refused this request to {host}",
    hint: `${SAME_AGAIN} The operator's hook decides; ask the operator.`,
  },
  "approval-timeout": {
    message: "Blocked by sandbox policy: nobody approved this request to {host} in time",
    hint: "Retrying at once will not help. Ask the operator to be there to approve it.",
  },
  "budget-exceeded": {
    message: "Blocked by sandbox policy: the budget for {host} is used up",
    hint: "Retrying at once will not help. The operator would have to raise the budget, or it renews with time.",
  },
  "limit-exceeded": {
    message: "Blocked by sandbox policy: this request to {host} exceeds a limit of the gate",
    hint: "Retrying at once will not help. Use fewer connections or smaller messages, or let the operator raise the limit.",
  },
  "cross-site": {
    message:
      "Blocked by sandbox policy: the request to {host} comes from a page of another site, or is addressed to another name than the listener's",
    hint: `${SAME_AGAIN} The base-URL listener serves programs, not web pages: address it as localhost or by its own address, without an Origin of another site.`,
  },
};

/** Where nobody was told of a proxy, its variables are no remedy. */
const UNTOLD_LOOPBACK = `${SAME_AGAIN} No setting opens it. A service inside the sandbox is reached there by its own loopback address, on a port that the gate does not listen on: not 53, 80 or 443, nor one that a rule names.`;

/** `listener`: by which way it came, since what would help differs. */
export function denialWords(reason: Reason, listener: Listener | undefined): Words {
  const words = DENIALS[reason];
  const untold = listener === "jail" || listener === "gateway";
  return untold && reason === "loopback" ? { ...words, hint: UNTOLD_LOOPBACK } : words;
}
