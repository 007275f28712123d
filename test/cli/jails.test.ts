/** Namespaces that come, go and return, with a gate that the test plays. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { type JailEvents, Jails, loggedJails, placesOf } from "../../src/cli/jails.ts";
import { loadConfigText } from "../../src/config/load.ts";
import type { Gate } from "../../src/gate.ts";
import type { Config } from "../../src/model/config.ts";
import { unshared } from "../support/unshared.ts";

const WHOLE = { index: 0, count: 1 };

function configOf(sandboxes: readonly object[]): Config {
  const loaded = loadConfigText(
    JSON.stringify({ version: 1, network: { allowlist: [] }, sandboxes }),
    "/c.yaml",
    1,
  );
  assert.ok(loaded.ok);
  return loaded.config;
}

function box(netns: string, ports: readonly number[] = [80]): object {
  return { id: "box", netns, network: { allowlist: [{ domain: "a.test", ports }] } };
}

interface Heard {
  readonly gate: Gate;
  readonly events: JailEvents;
  readonly said: string[];
  readonly open: Set<Server>;
}

function hear(): Heard {
  const said: string[] = [];
  const open = new Set<Server>();
  const door = {
    accept: (handle: Server) => {
      const server = createServer().listen(handle);
      open.add(server);
      server.once("close", () => open.delete(server));
      return server;
    },
    answer: () => undefined,
  };
  const events: JailEvents = {
    attached: ({ sandbox }, ports, taken) => void said.push(`attached ${sandbox} ${ports} ${taken}`),
    ended: ({ sandbox }) => void said.push(`ended ${sandbox}`),
    failed: (_, error) => void said.push(`failed ${error.message}`),
  };
  return { gate: { openDoor: () => door } as unknown as Gate, events, said, open };
}

async function until(condition: () => boolean): Promise<void> {
  for (let tries = 0; !condition(); tries++) {
    assert.ok(tries < 500, "It never came");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

test("placesOf: each process has some of the sandboxes, and together they have all", () => {
  const config = configOf(
    ["a", "b", "c"].map((id) => ({ id, netns: `/run/netns/${id}`, network: "disabled" })),
  );
  const shares = [0, 1].map((index) => placesOf(config, { index, count: 2 }).map(({ sandbox }) => sandbox));
  assert.deepEqual(shares, [["a", "c"], ["b"]]);
  assert.deepEqual(placesOf(configOf([{ id: "x", source: ["10.0.0.1"], network: "disabled" }]), WHOLE), []);
});

test("Jails: attaches when the namespace is there, follows its ports, and lets go of what a reload took away", async (context) => {
  const folder = mkdtempSync(join(tmpdir(), "sallyport-jails-"));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "box");
  const { gate, events, said, open } = hear();
  const last = (): string => said.at(-1) ?? "";
  const first = configOf([box(path)]);
  const jails = new Jails(gate, first, events);
  context.after(() => jails.close());
  await jails.apply(first, placesOf(first, WHOLE));
  assert.equal(last(), "");

  const pid = await unshared(context);
  symlinkSync(`/proc/${pid}/ns/net`, path);
  await until(() => last() !== "");
  assert.deepEqual([...said], ["attached box 53,80,443 "]);
  const second = configOf([box(path, [80, 8081])]);
  await jails.apply(second, placesOf(second, WHOLE));
  await until(() => open.size === 4);
  process.kill(pid, "SIGKILL");
  await until(() => last() === "ended box");
  await until(() => open.size === 0);

  const next = await unshared(context);
  rmSync(path);
  symlinkSync(`/proc/${next}/ns/net`, path);
  await until(() => last().startsWith("attached") && open.size === 4);
  await jails.apply(first, []);
  await until(() => open.size === 0);
});

test("Jails: what keeps a namespace from being attached to is told once", async (context) => {
  const { gate, events, said } = hear();
  const config = configOf([box("/proc/self/ns/net")]);
  const jails = new Jails(gate, config, events);
  context.after(() => jails.close());
  // Our own network leads elsewhere, or is not ours to enter.
  await jails.apply(config, placesOf(config, WHOLE));
  await jails.apply(config, placesOf(config, WHOLE));
  assert.equal(said.length, 1);
  assert.match(said[0] ?? "", /^failed The namespace /);
});

test("loggedJails: one line for each event", () => {
  const lines: string[] = [];
  const note = (level: string) => (message: string, fields: object) =>
    void lines.push(`${level} ${message} ${JSON.stringify(fields)}`);
  const log = { info: note("info"), warn: note("warn"), error: note("error"), flush: () => undefined };
  const events = loggedJails(log as unknown as Parameters<typeof loggedJails>[0]);
  const place = { sandbox: undefined, target: { path: "/n", pid: undefined }, force: false };
  events.attached(place, [53, 80], [80]);
  events.ended(place);
  events.failed(place, new Error("No"));
  assert.deepEqual(
    lines.map((line) => line.split(" ")[0]),
    ["info", "warn", "info", "error"],
  );
});
