/** A world for the sentences: a real policy and real sockets on the loopback, and upstreams that the test plays. */
import type { Socket } from "node:net";
import type { TestContext } from "node:test";
import type { TLSSocket } from "node:tls";
import { ConnectionCaps } from "../../src/accept/connection-caps.ts";
import { parseIpAddress } from "../../src/base/ip.ts";
import { LiveSet } from "../../src/base/live-set.ts";
import { Roster } from "../../src/base/roster.ts";
import type { Opened } from "../../src/forward/dial.ts";
import { Forwarder, type ForwarderParts } from "../../src/forward/forwarder.ts";
import { ApprovalBook } from "../../src/hooks/approvals.ts";
import { createHookDesk } from "../../src/hooks/hook-desk.ts";
import type { Template } from "../../src/model/config.ts";
import { Failure } from "../../src/model/failure.ts";
import type { Acquired, Route } from "../../src/model/leg.ts";
import type { Limits } from "../../src/model/limits.ts";
import type { ExchangeRecord, Recorder } from "../../src/model/record.ts";
import type { LeafCache } from "../../src/pki/leaf-cache.ts";
import { createSecrets } from "../../src/secrets/secrets.ts";
import type { InForce, World } from "../../src/world.ts";
import { buildPolicy, buildSource, type Settings } from "../decide/build.ts";
import { type Around, around, createPair, eventually, listenTo, type Peer } from "./loopback.ts";
import { createAuthority } from "./pki.ts";

export interface WorldOptions {
  readonly limits?: Partial<Limits>;
  /** Values of secrets by their keys; `undefined` stands for one that cannot be had. */
  readonly secrets?: Readonly<Record<string, string | undefined>>;
}

export interface TestWorld extends Around {
  readonly world: World;
  readonly records: ExchangeRecord[];
  /** What the operator's log was told of. */
  readonly broken: unknown[];
  /** What the log was told of the webhook for approvals. */
  readonly webhookProblems: string[];
  /** Upstreams dialled so far, in order; the one of this index once it is there. */
  readonly origins: Peer[];
  origin(index: number): Promise<Peer>;
  /** Called instead of a dial. */
  refuse: (() => Acquired<Socket>) | undefined;
  /** Resolves with the record of this index. */
  record(index: number): Promise<ExchangeRecord>;
  /** Puts another policy in force, and rechecks what is live. */
  reload(settings: Settings): void;
  draining: boolean;
}

/** Where the upstreams of the test seem to be. */
export const PEER = "9.9.9.9";

const authority = createAuthority("Throw-away root");
/** What a client of the tests trusts. */
export const ROOT_PEM: string = authority.certPem;

export function createWorld(context: TestContext, settings: Settings, options: WorldOptions = {}): TestWorld {
  const surroundings = around(options.limits);
  const records: ExchangeRecord[] = [];
  const broken: unknown[] = [];
  const webhookProblems: string[] = [];
  const origins: Peer[] = [];
  let inForce = takeUp(settings, options);
  const made: TestWorld = {
    ...surroundings,
    records,
    broken,
    webhookProblems,
    origins,
    refuse: undefined,
    draining: false,
    async origin(index) {
      await eventually(() => origins.length > index);
      return origins[index] as Peer;
    },
    async record(index) {
      await eventually(() => records.length > index);
      return records[index] as ExchangeRecord;
    },
    reload(next) {
      inForce = takeUp(next, options);
      made.world.live.recheck(inForce);
    },
    world: {
      ...surroundings,
      inForce: () => inForce,
      recorder: recorderInto(records, broken),
      forwarder: new LoopbackForwarder(partsOf(surroundings), async () => {
        if (made.refuse !== undefined) return made.refuse();
        const { near, far } = await createPair(context);
        near.on("error", () => undefined);
        Object.defineProperty(near, "remoteAddress", { value: PEER });
        origins.push(listenTo(far));
        return { kind: "ready", upstream: near };
      }),
      leaves: LEAVES,
      surroundings: () => ({ own: new Set(), endpoints: new Set() }),
      caps: new ConnectionCaps(surroundings.limits),
      live: new LiveSet(),
      approvals: new ApprovalBook({ now: Date.now, resolved: () => undefined }),
      hooks: createHookDesk({
        session: "test",
        env: {},
        write: () => undefined,
        failed: () => undefined,
        now: Date.now,
      }),
      webhookFailed: (problem) => void webhookProblems.push(problem),
      connections: new Roster(),
      draining: () => made.draining,
    },
  };
  return made;
}

/** Dials nobody: the loopback is no place that a policy lets one reach. */
class LoopbackForwarder extends Forwarder {
  readonly #dial: () => Promise<Acquired<Socket>>;

  constructor(parts: ForwarderParts, dial: () => Promise<Acquired<Socket>>) {
    super(parts);
    this.#dial = dial;
  }

  override async open(_route: Route, signal: AbortSignal): Promise<Acquired<Opened>> {
    const opened = await this.#dial();
    signal.throwIfAborted();
    if (opened.kind === "refused") return opened;
    const { upstream: socket } = opened;
    const peer = parseIpAddress(socket.remoteAddress ?? "");
    return { kind: "ready", upstream: { socket, early: Buffer.alloc(0), peer } };
  }
}

function partsOf({ limits, deadlines, turn }: Around): ForwarderParts {
  return {
    limits,
    deadlines,
    turn,
    resolver: {
      resolve: () => Promise.reject(new Failure("E_RESOLVE", "upstream", "Tests resolve nothing")),
      servers: () => [],
      close: () => undefined,
    },
    // The tests' upstreams read plain HTTP where real ones read TLS.
    tls: { secure: (socket) => Promise.resolve(socket as TLSSocket) },
    onConnected: () => undefined,
  };
}

const LEAVES: LeafCache = {
  contextFor: (_sandbox, name) => (name === "spent.example" ? undefined : authority.context(name)),
  entries: 0,
  close: () => undefined,
};

function takeUp(settings: Settings, { secrets = {} }: WorldOptions): InForce {
  const templates = new Map<string, Template>();
  for (const [key, value] of Object.entries(secrets)) {
    const part = value === undefined ? ({ kind: "env", name: "ABSENT" } as const) : literal(value);
    templates.set(key, [part]);
  }
  return {
    policy: buildPolicy(settings),
    hooks: buildSource(settings).hooks,
    hookOptions: buildSource(settings).hookOptions,
    placeholders: buildSource(settings).placeholders,
    approvals: buildSource(settings).approvals,
    digest: "0123456789ab",
    sandboxes: buildSource(settings).sandboxes,
    secrets: createSecrets(templates, { env: {}, now: () => 0 }),
  };
}

function literal(text: string) {
  return { kind: "literal", text } as const;
}

function recorderInto(records: ExchangeRecord[], broken: unknown[]): Recorder {
  return {
    exchange: (record) => void records.push(record),
    upstreamConnected: () => undefined,
    connectionOpened: () => undefined,
    connectionClosed: () => undefined,
    leafCertificate: () => undefined,
    broke: (cause) => void broken.push(cause),
  };
}
