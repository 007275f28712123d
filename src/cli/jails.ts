/** The namespaces that `serve` and `attach` make go out through one gate: opened when they are there, again when they return. */
import type { Gate } from "../gate.ts";
import type { JailDoor } from "../jail-door.ts";
import type { Config } from "../model/config.ts";
import type { Log } from "../record/log.ts";
import { Attachment, type Target } from "../sandbox/attachment.ts";
import { portsOf } from "../sandbox/ports.ts";

export interface Place {
  /** Undefined for whoever the top-level `network` is for. */
  readonly sandbox: string | undefined;
  readonly target: Target;
  readonly force: boolean;
}

export interface JailEvents {
  readonly attached: (place: Place, ports: readonly number[], taken: readonly number[]) => void;
  readonly ended: (place: Place) => void;
  /** What keeps a namespace from being attached to; told once for each message. */
  readonly failed: (place: Place, error: Error) => void;
}

export function loggedJails(log: Log): JailEvents {
  const named = ({ sandbox, target }: Place): { sandbox: string; namespace: string } => ({
    sandbox: sandbox ?? "-",
    namespace: target.path,
  });
  return {
    attached: (place, ports, taken) => {
      log.info("Attached to a namespace", { ...named(place), ports: ports.join(" ") });
      if (taken.length === 0) return;
      log.warn("Its own programs listen there, so nothing leaves by it", {
        ...named(place),
        ports: taken.join(" "),
      });
    },
    ended: (place) => log.info("A namespace ended", named(place)),
    failed: (place, error) => {
      log.error("A namespace cannot be attached to", { ...named(place), problem: error.message });
    },
  };
}

/** How often the namespaces are looked at. */
const LOOK_MS = 250;
/** How long a place that could not be attached to is left alone. */
const RETRY_MS = 5_000;

/** The processes of one gate share its sandboxes: each has some to itself, with their names and connections. */
export interface Share {
  readonly index: number;
  readonly count: number;
}

export function placesOf({ sandboxes }: Config, { index, count }: Share): readonly Place[] {
  return sandboxes
    .filter((_, at) => at % count === index)
    .flatMap(({ id, netns }) =>
      netns === undefined ? [] : [{ sandbox: id, target: { path: netns, pid: undefined }, force: false }],
    );
}

export class Jails {
  readonly #gate: Gate;
  readonly #events: JailEvents;
  readonly #keepers = new Map<string, Keeper>();
  readonly #looking: NodeJS.Timeout;
  #config: Config;

  constructor(gate: Gate, config: Config, events: JailEvents) {
    this.#gate = gate;
    this.#config = config;
    this.#events = events;
    this.#looking = setInterval(() => void this.#look(), LOOK_MS);
  }

  /** Resolves once each place was tried: what is not there yet is waited for. */
  async apply(config: Config, places: readonly Place[]): Promise<void> {
    this.#config = config;
    const wanted = new Map(places.map((place) => [JSON.stringify(place), place]));
    for (const [key, keeper] of this.#keepers) {
      if (wanted.has(key)) continue;
      keeper.close();
      this.#keepers.delete(key);
    }
    for (const [key, place] of wanted) {
      if (!this.#keepers.has(key)) {
        this.#keepers.set(key, new Keeper(place, this.#gate.openDoor(place.sandbox), this.#events));
      }
    }
    await this.#look();
  }

  close(): void {
    clearInterval(this.#looking);
    for (const keeper of this.#keepers.values()) keeper.close();
    this.#keepers.clear();
  }

  async #look(): Promise<void> {
    const { policy } = this.#config;
    await Promise.all(
      [...this.#keepers.values()].map((keeper) => keeper.look(portsOf(policy, keeper.place.sandbox))),
    );
  }
}

/** One place: empty, or attached to. */
class Keeper {
  readonly place: Place;
  readonly #door: JailDoor;
  readonly #events: JailEvents;
  #attachment: Attachment | undefined = undefined;
  #ports: readonly number[] = [];
  #looking: Promise<void> | undefined = undefined;
  #told = "";
  #retryAt = 0;
  #closed = false;

  constructor(place: Place, door: JailDoor, events: JailEvents) {
    this.place = place;
    this.#door = door;
    this.#events = events;
  }

  /** One look at a time: opening takes longer than the time between two. */
  look(ports: readonly number[]): Promise<void> {
    this.#looking ??= this.#lookNow(ports).finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  close(): void {
    this.#closed = true;
    this.#attachment?.close();
    this.#attachment = undefined;
  }

  async #lookNow(ports: readonly number[]): Promise<void> {
    if (this.#closed || performance.now() < this.#retryAt) return;
    if (this.#attachment !== undefined && !this.#attachment.alive) {
      this.#attachment.close();
      this.#attachment = undefined;
      this.#events.ended(this.place);
    }
    try {
      if (this.#attachment === undefined) await this.#attach(ports);
      else if (String(ports) !== String(this.#ports)) {
        await this.#attachment.update(ports);
        this.#ports = ports;
      }
    } catch (error) {
      this.#fail(error instanceof Error ? error : new Error("Something broke"));
    }
  }

  async #attach(ports: readonly number[]): Promise<void> {
    const attachment = new Attachment({ ...this.place, ...this.#door });
    if (!attachment.alive) return;
    const taken = await attachment.open(ports);
    if (this.#closed) {
      attachment.close();
      return;
    }
    this.#attachment = attachment;
    this.#ports = ports;
    this.#told = "";
    this.#events.attached(this.place, ports, taken);
  }

  #fail(error: Error): void {
    this.#retryAt = performance.now() + RETRY_MS;
    if (error.message === this.#told) return;
    this.#told = error.message;
    this.#events.failed(this.place, error);
  }
}
