/** The composition root: joins the rooms to one gate, and owns its reload, its drain and its end. */
import type { Server, Socket } from "node:net";
import { ConnectionCaps } from "./accept/connection-caps.ts";
import { createListener } from "./accept/listener.ts";
import { openRedirections } from "./accept/original-destination.ts";
import { createDeadlines } from "./base/deadlines.ts";
import { LiveSet } from "./base/live-set.ts";
import { Roster } from "./base/roster.ts";
import { createTurn } from "./base/turn.ts";
import { runConnection } from "./connection.ts";
import { createSurroundings } from "./forward/surroundings.ts";
import type { Gate, GateOptions, GateState } from "./gate.ts";
import { createGatewayDoor, type GatewayDoor } from "./gateway-door.ts";
import { renderApproval } from "./hooks/approval-record.ts";
import { ApprovalBook, type ApprovalKey, type PendingApproval, type Resolution } from "./hooks/approvals.ts";
import { createHookDesk } from "./hooks/hook-desk.ts";
import { takeUp } from "./in-force.ts";
import { type JailDoor, openJailDoor } from "./jail-door.ts";
import type { Config, Endpoint, GatewayEndpoint } from "./model/config.ts";
import type { Limits } from "./model/limits.ts";
import type { Recorder } from "./model/record.ts";
import { type Outward, openOutward } from "./outward.ts";
import { createLeafCache, type LeafCache } from "./pki/leaf-cache.ts";
import { type LabelIds, labelIdsOf } from "./record/label-ids.ts";
import { createLog, type Log } from "./record/log.ts";
import { createMetrics, type Metrics, type MetricsPart } from "./record/metrics.ts";
import { createRecorder } from "./record/recorder.ts";
import { createRecordWriter, type RecordWriter } from "./record/writer.ts";
import type { ReverseDoor } from "./reverse-door.ts";
import type { Secrets } from "./secrets/secrets.ts";
import type { SupplyDesk } from "./secrets/supply-desk.ts";
import { openSupplies } from "./supplies.ts";
import type { InForce, World } from "./world.ts";

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
  #ids: LabelIds;
  #outward: Outward;
  #draining = false;

  constructor(options: GateOptions) {
    const { config } = options;
    this.#options = options;
    this.#limits = { ...config.limits };
    this.#ids = labelIdsOf(config.policy);
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
    this.#supplies = openSupplies({
      env: options.env,
      limits: this.#limits,
      around: () => ({ force: this.#inForce, world: this.#world }),
      failed: (what, problem) =>
        this.#log.warn("A secret cannot be had; what needs it is refused", { what, problem }),
      now: () => performance.now(),
    });
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
    this.#ids = labelIdsOf(config.policy);
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
    connections.each(({ holder }) => holder.drain());
    const last = performance.now() + this.#limits.drain_timeout;
    while (connections.size + live.size > 0 && performance.now() < last) await pause(TICK_MS / 2);
    live.clear();
    connections.each(({ holder }) => holder.cut());
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
      connections: new Roster(),
      draining: () => this.#draining,
    };
  }

  #takeUp(config: Config, previous: Secrets | undefined): InForce {
    const { env } = this.#options;
    return takeUp(config, previous, { env, supplies: this.#supplies, now: () => performance.now() });
  }

  #openOutward(config: Config): Outward {
    return openOutward(config, {
      limits: this.#limits,
      deadlines: this.#deadlines,
      turn: this.#turn,
      now: () => performance.now(),
      onConnected: this.#recorder.upstreamConnected,
    });
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
