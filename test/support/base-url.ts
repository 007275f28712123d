/** The base-URL door as tests ask it: its address, and one question over a connection of its own. */
import { head } from "./ask.ts";
import type { Gate } from "./gate.ts";
import { SECRET, startGate } from "./gate.ts";
import type { Message } from "./message-reader.ts";
import type { Connection, Origin } from "./origin.ts";
import { createOrigin, respond } from "./origin.ts";
import type { Internet } from "./private-internet.ts";
import { PUBLIC_V4 } from "./private-internet.ts";
import type { TakeOptions, Wire } from "./wire-client.ts";
import { dial } from "./wire-client.ts";

export const REVERSE = { host: "127.0.0.1", port: 8081 } as const;
export const REVERSE_URL = `http://${REVERSE.host}:${REVERSE.port}`;
/** The field that every request to the door carries. */
export const OWN_HOST = `Host: ${REVERSE.host}:${REVERSE.port}`;
/** Opens this door and the operator's. */
export const REVERSE_LISTEN = {
  listen: { reverse: `${REVERSE.host}:${REVERSE.port}`, admin: "127.0.0.1:9464" },
} as const;

export function dialReverse(internet: Internet): Promise<Wire> {
  return dial(internet, REVERSE);
}

/** `start` is method and path: `GET /api.example.com/v1`. */
export async function askReverse(
  internet: Internet,
  start: string,
  lines: readonly string[] = [],
  options: TakeOptions & { readonly body?: string } = {},
): Promise<Message> {
  const wire = await dialReverse(internet);
  const bytes = head(`${start} HTTP/1.1`, OWN_HOST, ...lines) + (options.body ?? "");
  return await wire.send(bytes, options).finally(() => wire.destroy());
}

export interface HeldOpen {
  readonly origin: Origin;
  readonly gate: Gate;
  /** Of requests whose path has `/held` in it: the test answers them. */
  readonly held: Connection[];
}

/** The base-URL door with a secret for `host`, whose origin answers all else with `ok`. */
export async function startHolding(internet: Internet, host: string): Promise<HeldOpen> {
  const held: Connection[] = [];
  internet.dns.set(host, { A: [PUBLIC_V4] });
  const origin = await createOrigin(internet, {
    tls: [host],
    bound: true,
    answer: ({ start }, connection) => {
      if (!start.includes("/held")) return respond("ok");
      held.push(connection);
      return undefined;
    },
  });
  const allowlist = [{ domain: host, transform: { Authorization: SECRET } }];
  const gate = await startGate(internet, { ...REVERSE_LISTEN, network: { allowlist } });
  return { origin, gate, held };
}
