/** The composition root: joins the rooms to one gate, and owns its reload, its drain and its end. */
import type { Server, Socket } from "node:net";
import { ConnectionCaps } from "./accept/connection-caps.ts";
import { createListener } from "./accept/listener.ts";
import { openRedirections } from "./accept/original-destination.ts";
import { createDeadlines } from "./base/deadlines.ts";
import { LiveSet } from "./base/live-set.ts";
import { createTurn } from "./base/turn.ts";
import { runConnection } from "./connection.ts";
import { decideParentAddress } from "./decide/decide-endpoint.ts";
import { compilePolicy } from "./decide/policy.ts";
import { get, post } from "./errand.ts";
import { Forwarder } from "./forward/forwarder.ts";
import { createParent } from "./forward/parent.ts";
import { createResolver } from "./forward/resolve.ts";
import { createSurroundings } from "./forward/surroundings.ts";
import { createUpstreamTls } from "./forward/upstream-tls.ts";
import { createGatewayDoor, type GatewayDoor } from "./gateway-door.ts";
import { renderApproval } from "./hooks/approval-record.ts";
import { ApprovalBook, type ApprovalKey, type PendingApproval, type Resolution } from "./hooks/approvals.ts";
import { createHookDesk } from "./hooks/hook-desk.ts";
import { type JailDoor, openJailDoor } from "./jail-door.ts";
import type { Config, Endpoint, GatewayEndpoint } from "./model/config.ts";
import type { AddressDecision } from "./model/decision.ts";
import type { IpAddress } from "./model/exchange.ts";
import type { Limits } from "./model/limits.ts";
import type { NetworkSource, ParentSource } from "./model/policy.ts";
import type { Recorder } from "./model/record.ts";
import type { Ca } from "./pki/ca.ts";
import { createLeafCache, type LeafCache } from "./pki/leaf-cache.ts";
import { createLog, type Log } from "./record/log.ts";
import { createMetrics, type Metrics, type MetricsPart } from "./record/metrics.ts";
import { createRecorder } from "./record/recorder.ts";
import { createRecordWriter, type RecordWriter } from "./record/writer.ts";
import type { ReverseDoor } from "./reverse-door.ts";
import { runForSecret } from "./secrets/exec.ts";
import { createSecrets, type Secrets } from "./secrets/secrets.ts";
import { createSupplyDesk, type SupplyDesk } from "./secrets/supply-desk.ts";
import type { InForce, World } from "./world.ts";

export interface GateOptions {
  readonly config: Config;
  readonly ca: Ca;
  /** 32 bytes, the same in all workers. */
  readonly ticketSecret: Uint8Array;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly version: string;
  /** Names this process's life in records. */
  readonly session: string;
  /** Told of an approval that was heard here and holds for longer: the other workers have to learn it. */
  readonly spread?: ((key: ApprovalKey, resolution: Resolution) => void) | undefined;
}

/** What the operator's pages say of one gate. */
export interface GateState {
  readonly secretsUnavailable: readonly string[];
  readonly recordsDropped: number;
}

export interface Gate {
  /** Takes connections of this listener from now on. */
  readonly listener: Server;
  /** A door for one sandbox whose network is ours alone; without an id for whoever the top-level `network` is for. */
  openDoor(sandbox: string | undefined): JailDoor;
  /** Takes what the firewall redirects here, from now until the drain. Rejects with `E_CONFIG`. */
  openGateway(gateway: GatewayEndpoint): Promise<void>;
  /** Takes base-URL requests at this address, from now until the drain. Rejects with `E_CONFIG`. */
  openReverse(reverse: Endpoint): Promise<void>;
  /** Puts another config in force: at once, as a whole, and for what is under way too. Throws `E_CONFIG`. */
  apply(config: Config): void;
  metrics(): Promise<MetricsPart>;
  state(): GateState;
  /** Hides what is secret in a text. */
  redact(text: string): string;
  /** What waits for a person's word here. */
  approvals(): readonly PendingApproval[];
  /** Gives it; undefined where nothing of this id waits here. */
  resolveApproval(id: string, resolution: Resolution): PendingApproval | undefined;
  /** A word that holds for longer. */
  learnApproval(key: ApprovalKey, resolution: Resolution): void;
  /** Opens the records file anew, after a rotation. */
  reopenRecords(): void;
  /** Stops accepting, lets what is under way end, cuts what has not after `drain_timeout`; then all is closed. */
  drain(): Promise<void>;
}

/** How often deadlines are looked at; no limit is kept more exactly than this. */
const TICK_MS = 100;

export function createGate(options: GateOptions): Gate {
  return new RunningGate(options);
}

class RunningGate implements Gate {
  readonly listener: Server;
  readonly #options: GateOptions;
  /** One object for everybody who obeys limits; a reload changes what is in it. */
  readonly #limits: { -readonly [K in keyof Limits]: Limits[K] };
  readonly #deadlines = createDeadlines(performance.now());
  readonly #turn = createTurn(setImmediate);
  readonly #metrics: Metrics;
  readonly #writer: RecordWriter;
  readonly #log: Log;
  readonly #recorder: Recorder;
  readonly #leaves: LeafCache;
  readonly #world: World;
  readonly #ticking: NodeJS.Timeout;
  #gateway: GatewayDoor | undefined = undefined;
  #reverse: ReverseDoor | undefined = undefined;
  readonly #supplies: SupplyDesk;
  #inForce: InForce;
  #ids: Ids;
  #outward: Outward;
  #draining = false;

  constructor(options: GateOptions) {
    const { config } = options;
    this.#options = options;
    this.#limits = { ...config.limits };
    this.#ids = idsOf(config);
    this.#metrics = createMetrics({
      version: options.version,
      node: process.versions.node,
      rules: () => this.#ids.rules,
      sandboxes: () => this.#ids.sandboxes,
    });
    this.#writer = createRecordWriter({
      file: config.recordsFile,
      bufferBytes: this.#limits.record_buffer_bytes,
      onDrop: (count) => this.#metrics.recordsDropped(count),
    });
    this.#log = createLog(process.stderr, (text) => this.redact(text));
    this.#recorder = createRecorder({
      metrics: this.#metrics,
      writer: this.#writer,
      log: this.#log,
      session: options.session,
    });
    this.#leaves = createLeafCache({
      ca: options.ca,
      limits: this.#limits,
      now: Date.now,
      ticketSecret: options.ticketSecret,
      onEvent: this.#recorder.leafCertificate,
    });
    this.#supplies = this.#openSupplies();
    this.#inForce = this.#takeUp(config, undefined);
    this.#outward = this.#openOutward(config);
    this.#world = this.#createWorld();
    this.#ticking = setInterval(() => this.#deadlines.tick(performance.now()), TICK_MS);
    this.listener = createListener((socket: Socket) => runConnection(socket, "explicit", this.#world));
  }

  openDoor(sandbox: string | undefined): JailDoor {
    return openJailDoor(sandbox, this.#world, () => performance.now());
  }

  async openGateway(gateway: GatewayEndpoint): Promise<void> {
    const redirections = await openRedirections();
    const options = { gateway, redirections, now: () => performance.now() };
    this.#gateway = createGatewayDoor(options, this.#world);
    await this.#gateway.listen();
  }

  async openReverse(reverse: Endpoint): Promise<void> {
    // Here and not above: whoever has no such door does not load its library.
    const { createReverseDoor } = await import("./reverse-door.ts");
    this.#reverse = createReverseDoor(reverse, this.#world);
    await this.#reverse.listen();
  }

  apply(config: Config): void {
    // Whatever may fail comes first, so that a config is taken up whole or not at all; secrets last of it, since with
    // the new ones the redactor forgets the old.
    const outward = this.#openOutward(config);
    const force = this.#takeUp(config, this.#inForce.secrets);
    const before = this.#outward;
    this.#outward = outward;
    this.#inForce = force;
    this.#ids = idsOf(config);
    Object.assign(this.#limits, config.limits);
    this.#world.live.recheck(force);
    this.#world.approvals.keepOnly(new Set(config.policy.sandboxes.map(({ id }) => id)));
    before.forwarder.retire();
  }

  metrics(): Promise<MetricsPart> {
    this.#metrics.leafCacheEntries(this.#leaves.entries);
    this.#metrics.secretsUnavailable(this.state().secretsUnavailable.length);
    return this.#metrics.json();
  }

  state(): GateState {
    return {
      secretsUnavailable: this.#inForce.secrets.unavailable().map(({ key }) => key),
      recordsDropped: this.#writer.dropped,
    };
  }

  redact(text: string): string {
    return this.#inForce.secrets.redact(text);
  }

  approvals(): readonly PendingApproval[] {
    return this.#world.approvals.pending();
  }

  resolveApproval(id: string, resolution: Resolution): PendingApproval | undefined {
    return this.#world.approvals.resolve(id, resolution);
  }

  learnApproval(key: ApprovalKey, resolution: Resolution): void {
    this.#world.approvals.learn(key, resolution);
  }

  reopenRecords(): void {
    void this.#writer.reopen();
  }

  async drain(): Promise<void> {
    this.#draining = true;
    this.listener.close();
    this.#gateway?.close();
    this.#reverse?.close();
    const { connections, live } = this.#world;
    for (const connection of [...connections]) connection.drain();
    const last = performance.now() + this.#limits.drain_timeout;
    while (connections.size + live.size > 0 && performance.now() < last) await pause(TICK_MS / 2);
    live.clear();
    for (const connection of [...connections]) connection.cut();
    // What was cut still writes its record.
    await pause(0);
    this.#world.approvals.close();
    await this.#world.hooks.close();
    this.#outward.forwarder.close();
    this.#leaves.close();
    clearInterval(this.#ticking);
    await this.#writer.close();
  }

  #createWorld(): World {
    const surroundings = createSurroundings({
      endpoints: () => this.#outward.endpoints(),
      now: () => performance.now(),
    });
    const forwarder = () => this.#outward.forwarder;
    return {
      inForce: () => this.#inForce,
      limits: this.#limits,
      deadlines: this.#deadlines,
      turn: this.#turn,
      recorder: this.#recorder,
      get forwarder() {
        return forwarder();
      },
      leaves: this.#leaves,
      surroundings: surroundings.current,
      caps: new ConnectionCaps(this.#limits),
      live: new LiveSet(),
      approvals: new ApprovalBook({
        now: Date.now,
        resolved: (pending, resolution) =>
          this.#writer.write(renderApproval(pending, resolution, Date.now())),
        spread: this.#options.spread,
      }),
      webhookFailed: (problem) => this.#log.warn("The approvals webhook failed", { problem }),
      hooks: createHookDesk({
        session: this.#options.session,
        env: this.#options.env,
        write: (line) => this.#writer.write(line),
        failed: (hook, problem, said) => this.#log.warn("A policy hook failed", { hook, problem, said }),
        now: Date.now,
      }),
      connections: new Set(),
      draining: () => this.#draining,
    };
  }

  #takeUp({ policy, templates, ...suppliers }: Config, previous: Secrets | undefined): InForce {
    const { env } = this.#options;
    const supply = this.#supplies.supply(suppliers);
    const compiled = compilePolicy(policy);
    const secrets = createSecrets(templates, { env, now: () => performance.now(), previous, supply });
    this.#supplies.adopt(secrets, templates);
    return {
      policy: compiled,
      digest: policy.digest.slice(0, 12),
      sandboxes: policy.sandboxes,
      hooks: policy.hooks,
      hookOptions: policy.hookOptions,
      placeholders: policy.placeholders,
      approvals: policy.approvals,
      secrets,
    };
  }

  #openSupplies(): SupplyDesk {
    const limits = this.#limits;
    const within = () => AbortSignal.timeout(limits.secret_timeout);
    const around = () => ({ force: this.#inForce, world: this.#world });
    return createSupplyDesk({
      post: (order) => post(order, within(), around()),
      // The first are asked for while the gate is still being made.
      get: async (order) => get(order, within(), await Promise.resolve().then(around)),
      ttl: () => limits.secret_ttl,
      run: (command) => runForSecret(command, this.#options.env, limits),
      failed: (what, problem) =>
        this.#log.warn("A secret cannot be had; what needs it is refused", { what, problem }),
      now: () => performance.now(),
    });
  }

  #openOutward({ policy, upstream, listen }: Config): Outward {
    const resolver = createResolver({
      servers: upstream.dnsServers,
      hosts: upstream.dnsHosts,
      limits: this.#limits,
      now: () => performance.now(),
    });
    const admin = listen.admin === undefined ? [] : [`${listen.admin.host} ${listen.admin.port}`];
    const tls = createUpstreamTls({ caFile: upstream.caFile });
    const source = policy.parent;
    const guard = (address: IpAddress): AddressDecision =>
      decideParentAddress((source as ParentSource).destination, address);
    const parent =
      source === undefined
        ? undefined
        : createParent({ source, guard, hosts: upstream.dnsHosts, resolver, tls, limits: this.#limits });
    const own = [...resolver.servers(), ...admin];
    const forwarder = new Forwarder({
      parent,
      limits: this.#limits,
      deadlines: this.#deadlines,
      turn: this.#turn,
      resolver,
      tls,
      onConnected: this.#recorder.upstreamConnected,
    });
    return { forwarder, endpoints: parent === undefined ? () => own : joined(own, parent.endpoints) };
  }
}

interface Outward {
  readonly forwarder: Forwarder;
  /** `address port` of what the gate itself connects to, or listens on for its operator. */
  readonly endpoints: () => readonly string[];
}

/** One list out of two, the same object for as long as the second one is. */
function joined(fixed: readonly string[], moving: () => readonly string[]): () => readonly string[] {
  let last = moving();
  let all = [...fixed, ...last];
  return () => {
    if (moving() !== last) {
      last = moving();
      all = [...fixed, ...last];
    }
    return all;
  };
}

interface Ids {
  readonly rules: readonly string[];
  readonly sandboxes: readonly string[];
}

/** Of what metrics may be labelled by. */
function idsOf({ policy }: Config): Ids {
  const rules = new Set<string>();
  const networks = [policy.network, ...policy.sandboxes.map(({ network }) => network)];
  for (const { id } of policy.denylist) rules.add(id);
  for (const network of networks) for (const id of idsOfNetwork(network)) rules.add(id);
  return { rules: [...rules], sandboxes: policy.sandboxes.map(({ id }) => id) };
}

function idsOfNetwork(network: NetworkSource): readonly string[] {
  if (network.kind === "disabled") return [];
  return [...network.rules, ...network.denylist].map(({ id }) => id);
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
