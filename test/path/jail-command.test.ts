/** The command in a jail: its own user, terminal, signals and status, and nothing of the host's that it must not have. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { chownSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fromEnv, fromFile } from "../support/gate.ts";
import {
  type Ended,
  endOf,
  type JailSetup,
  ORDINARY_UID,
  python,
  runJail,
  setUpJail,
  spawnJail,
} from "../support/jail.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet } from "../support/private-internet.ts";

const CONFIG = {
  network: {
    allowlist: [
      { domain: "api.test", transform: { A: fromEnv("SECRET"), B: fromFile("token") } },
      { domain: "odd.test", ports: [8081] },
    ],
  },
  sandboxes: [
    { id: "one", env: { WHO: "one", EMPTY: "" }, network: { allowlist: [] } },
    { id: "two", env: { WHO: "two" }, network: { allowlist: [{ domain: "two.test" }] } },
  ],
  records: { file: "records.jsonl" },
};

let internet: Internet;
let setup: JailSetup;

before(async () => {
  internet = await createInternet();
  setup = setUpJail(internet, CONFIG);
  own(join(setup.directory, "token"), internet.canary.secret, 0o600);
});
after(() => internet.close());

function own(path: string, text: string, mode = 0o644): void {
  writeFileSync(path, text, { mode });
  chownSync(path, ORDINARY_UID, ORDINARY_UID);
}

async function shell(program: string, options: readonly string[] = [], stdin = ""): Promise<Ended> {
  return await runJail(internet, setup, ["sh", "-c", program], { options, stdin });
}

describe("the command", () => {
  test("has its own status, and 128 and the number where a signal ends it", async () => {
    assert.equal((await shell("exit 37")).code, 37);
    assert.equal((await shell("kill -TERM $$")).code, 143);
    assert.equal((await runJail(internet, setup, ["/no/such/program"])).code, 127);
    assert.equal((await runJail(internet, setup, ["true"])).code, 0);
  });

  test("has its own stdin, stdout, stderr, folder, arguments and user", async () => {
    const words = ["a b", "c'd", "$e", "", "-f"];
    const program = 'cat; pwd; id -u; id -g; printf "<%s>" "$@"; echo oops >&2';
    const ended = await runJail(internet, setup, ["sh", "-c", program, "x", ...words], { stdin: "input\n" });
    const shown = words.map((word) => `<${word}>`).join("");
    assert.equal(ended.stdout, `input\n${setup.directory}\n${ORDINARY_UID}\n${ORDINARY_UID}\n${shown}`);
    assert.equal(ended.stderr, "oops\n");
  });

  test("gets TERM and HUP that the program is sent", async () => {
    for (const [signal, name] of [
      ["SIGTERM", "TERM"],
      ["SIGHUP", "HUP"],
    ] as const) {
      const program = `trap 'echo got ${name}; exit 9' ${name}; echo ready; while :; do sleep 0.05; done`;
      const child = spawnJail(internet, setup, ["sh", "-c", program]);
      const ended = endOf(internet, child);
      await once(child.stdout ?? child, "data");
      child.kill(signal);
      const { code, stdout } = await ended;
      assert.deepEqual([code, stdout], [9, `ready\ngot ${name}\n`]);
    }
  });

  test("has the terminal: Ctrl-C ends it, Ctrl-Z stops it and it goes on", async () => {
    const ended = await onTerminal();
    assert.deepEqual(ended, ["interrupted 5", "stopped", "went on 7"]);
  });

  test("takes all that it started with it when it ends", async () => {
    const marker = join(setup.directory, "marker");
    await shell(`(sleep 0.5; echo late > ${marker}) >/dev/null 2>&1 & exit 0`);
    await new Promise((resolve) => setTimeout(resolve, 900));
    assert.equal(existsSync(marker), false);
  });
});

/** Python is the user at a terminal, and a shell with one job: it says when the job stops, and lets it go on. */
async function onTerminal(): Promise<readonly string[]> {
  const program = `
import os, pty, signal, sys, select
def start(script):
    report, told = os.pipe()
    pid, fd = pty.fork()
    if pid: return os.fdopen(report), fd
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    job = os.fork()
    if job == 0:
        os.setpgid(0, 0); os.tcsetpgrp(0, os.getpid())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        os.execvp(sys.argv[1], sys.argv[1:] + [script])
    while True:
        status = os.waitpid(job, os.WUNTRACED)[1]
        if not os.WIFSTOPPED(status):
            os.write(told, b"%d\\n" % os.waitstatus_to_exitcode(status)); os._exit(0)
        os.write(told, b"stopped\\n")
        os.killpg(job, signal.SIGCONT)
def until(fd, word):
    seen = b""
    while word not in seen:
        if not select.select([fd], [], [], 15)[0]: raise SystemExit("no " + word.decode() + " in " + seen.decode())
        seen += os.read(fd, 4096)
report, fd = start("trap 'exit 5' INT; echo ready; while :; do sleep 0.05; done")
until(fd, b"ready"); os.write(fd, b"\\x03")
print("interrupted", report.readline().strip(), flush=True)
report, fd = start("echo ready; read line; echo got $line; exit 7")
until(fd, b"ready"); os.write(fd, b"\\x1a")
print(report.readline().strip(), flush=True)
os.write(fd, b"hello\\n"); until(fd, b"got hello")
print("went on", report.readline().strip(), flush=True)
`;
  const main = new URL("../../src/start.mjs", import.meta.url).pathname;
  const run = [process.execPath, "--disable-warning=ExperimentalWarning", main, "run"];
  const command = ["/usr/bin/python3", "-c", program, ...run, "--config", setup.configFile, "--", "sh", "-c"];
  const child = internet.gate.spawn([...setup.prefix, ...command], {
    cwd: setup.directory,
    env: { PATH: "/usr/bin:/bin", SECRET: internet.canary.secret },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const { stdout, stderr } = await endOf(internet, child);
  assert.equal(stderr, "");
  return stdout.trim().split("\n");
}

describe("inside", () => {
  test("there is no capability, no new privilege, no descriptor past the third, no secret variable", async () => {
    const { stdout } = await shell(
      "grep -E '^(CapInh|CapPrm|CapEff|CapAmb|NoNewPrivs)' /proc/self/status | cut -f2; ls -m /proc/$$/fd; env",
    );
    const [none, ...rest] = stdout.split("\n");
    assert.equal(none, "0000000000000000");
    assert.deepEqual(rest.slice(0, 3), [none, none, none]);
    assert.equal(rest[3], "1");
    // No pipe there: the shell's own ends of it would be seen until it has closed them.
    assert.equal(rest[4], "0, 1, 2");
    assert.doesNotMatch(stdout, /^SECRET=|NODE_CHANNEL/m);
  });

  test("the routes and mounts are not its to change", async () => {
    const program = [
      "ip route flush table local 2>/dev/null || echo routes",
      "umount /run/sallyport 2>/dev/null || echo umount",
      "mount -t tmpfs x /tmp 2>/dev/null || echo mount",
      "echo x 2>/dev/null >> /etc/resolv.conf || echo resolv",
      "echo x 2>/dev/null >> $SSL_CERT_FILE || echo bundle",
      "rm -f $SSL_CERT_FILE 2>/dev/null || echo removed",
      "unshare -r true 2>/dev/null && unshare -rn sh -c 'ip link set lo up && curl -s --max-time 2 https://api.test' || echo nested",
    ].join(";");
    const { stdout } = await shell(program);
    assert.equal(stdout, "routes\numount\nmount\nresolv\nbundle\nremoved\nnested\n");
  });

  test("the CA's key, secret files and host sockets are masked, config and records cannot be changed", async () => {
    const path = join(setup.directory, "host.sock");
    await listenUnix(path);
    const ended = await runJail(
      internet,
      setup,
      python(`
import os, socket
for name in ("certs/ca.key", "token"): print(len(open(name).read()))
for name in ("sallyport.yaml", "certs/ca.pem", "records.jsonl"):
    try: open(name, "a"); print("open", name)
    except OSError as error: print(error.errno)
for name in ("sallyport.yaml", "certs", "token", "records.jsonl"):
    try: os.rename(name, name + "2"); print("renamed", name)
    except OSError as error: print(error.errno)
try: socket.socket(socket.AF_UNIX).connect("host.sock"); print("connected")
except OSError as error: print(error.errno)
print(sorted(os.listdir("/run")), len(open("sallyport.yaml").read()) > 9)
`),
    );
    // EROFS, EBUSY, ECONNREFUSED.
    assert.deepEqual(ended.stdout.split("\n"), [
      "0",
      "0",
      ...["30", "30", "30"],
      ...["16", "16", "16", "16"],
      "111",
      "['sallyport'] True",
      "",
    ]);
    assert.equal(ended.stderr, "");
  });
});

/** A program of the host's own, in the network that the jail is started from. */
async function listenUnix(path: string): Promise<void> {
  const program = `
import os, socket, sys
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); os.chmod(sys.argv[1], 0o777); s.listen(5)
print("ready", flush=True)
while True: s.accept()
`;
  const child = internet.gate.spawn([...python(program), path], { stdio: ["ignore", "pipe", "inherit"] });
  internet.onClose(() => child.kill("SIGKILL"));
  await once(child.stdout ?? child, "data");
}

describe("outside", () => {
  test("the program's processes are not there to be seen or signalled", async () => {
    const { stdout } = await shell(
      "ls /proc | grep -c '^[0-9]*$'; kill -0 $PPID && echo parent; ps -e | wc -l",
    );
    const [count] = stdout.split("\n");
    assert.ok(Number(count) < 8, stdout);
  });

  test("there is one resolver, without a search list, and XDG_RUNTIME_DIR is empty", async () => {
    const { stdout } = await shell("grep -v options /etc/resolv.conf; ls -A /run");
    assert.equal(stdout, "nameserver 198.18.0.1\nsallyport\n");
  });
});

describe("the roots and the resolver", () => {
  test("are ours wherever a program looks for them, and not the command's to change", async () => {
    const places = "/etc/ssl/certs/ca-certificates.crt /run/sallyport/ca-bundle.pem /etc/resolv.conf";
    const script = [
      `cmp /etc/ssl/certs/ca-certificates.crt "$SSL_CERT_FILE"`,
      `for file in ${places}; do chmod u+w $file 2>/dev/null && echo changed; echo x 2>/dev/null >>$file && echo written; done`,
      "echo done",
    ].join("\n");
    const ended = await runJail(internet, setup, ["bash", "-c", script]);
    assert.deepEqual([ended.stdout, ended.code], ["done\n", 0]);
  });
});

describe("a sandbox of the config", () => {
  test("gives its variables and its network, several at once, each under its own name", async () => {
    const program = 'echo "$WHO<$EMPTY>"; curl -sS http://two.test/ -o /dev/null -w "%{http_code}"';
    const ended = await Promise.all(["one", "two"].map((id) => shell(program, ["--sandbox", id])));
    assert.equal(ended[0]?.stdout, "one<>\n403");
    // Allowed, and unknown to the name server.
    assert.equal(ended[1]?.stdout, "two<>\n502");
    const records = readFileSync(join(setup.directory, "records.jsonl"), "utf8");
    const jail = records
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter(({ host, listener }) => host === "two.test" && listener === "jail");
    assert.deepEqual(jail.map(({ sandbox, reason }) => `${String(sandbox)} ${String(reason)}`).sort(), [
      "one no-rule-matched",
      "two rule-allows",
    ]);
  });

  test("must be in it, and cannot stand beside a network of its own", async () => {
    const unknown = await shell("true", ["--sandbox", "three"]);
    assert.deepEqual(
      [unknown.code, unknown.stderr.split("\n")[0]],
      [2, 'sallyport: The config names no sandbox "three"; it names one, two'],
    );
    const both = await shell("true", ["--sandbox", "one", "--network", "x.yaml"]);
    assert.equal(both.code, 2);
    assert.equal((await runJail(internet, setup, [])).code, 2);
  });

  test("--network takes another file's network, whose problems are told by its name", async () => {
    own(join(setup.directory, "own.yaml"), "allowlist: [ { domain: own.test } ]\n");
    own(join(setup.directory, "bad.yaml"), "allowlist: [ { domain: own.test, port: 1 } ]\n");
    const program =
      'for host in own.test api.test; do curl -sS http://$host/ -o /dev/null -w "%{http_code} "; done';
    assert.equal((await shell(program, ["--network", "own.yaml"])).stdout, "502 403 ");
    const bad = await shell("true", ["--network", "bad.yaml"]);
    assert.equal(bad.code, 2);
    assert.match(bad.stderr, /bad\.yaml:1:34: Unknown key `port`; did you mean `ports`\?/);
  });
});

describe("the program", () => {
  test("killed leaves nothing: no network, no process", async () => {
    const marker = join(setup.directory, "alive");
    const child = spawnJail(internet, setup, [
      "sh",
      "-c",
      `echo ready; sleep 1; echo still > ${marker}; sleep 60`,
    ]);
    const ended = endOf(internet, child);
    await once(child.stdout ?? child, "data");
    child.kill("SIGKILL");
    await ended;
    await new Promise((resolve) => setTimeout(resolve, 1_300));
    assert.equal(existsSync(marker), false);
  });

  test("says what would help where user namespaces are forbidden", async () => {
    // The switch is of each user namespace, so that it can be turned off for this test alone.
    const inner = `echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"`;
    const main = new URL("../../src/start.mjs", import.meta.url).pathname;
    const run = [process.execPath, "--disable-warning=ExperimentalWarning", main, "run"];
    const child = internet.gate.spawn(
      [
        ...setup.prefix,
        ...["unshare", "-Ur", "sh", "-c", inner, "x"],
        ...[...run, "--config", setup.configFile, "--", "true"],
      ],
      {
        cwd: setup.directory,
        env: { PATH: "/usr/bin:/bin", SECRET: internet.canary.secret },
        stdio: ["ignore", "pipe", "pipe"],
      },
    );
    const { code, stderr } = await endOf(internet, child);
    assert.equal(code, 2);
    assert.match(
      stderr,
      /^sallyport: User namespaces are switched off: sysctl -w user\.max_user_namespaces=\d+/,
    );
  });
});
