/** A process in a network namespace of its own, as an ordinary user can make one. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { TestContext } from "node:test";
import { unrefAll } from "./namespace.ts";

/** Resolves with its pid; it ends with the test. */
export async function unshared(context: TestContext): Promise<number> {
  const child = spawn("unshare", ["-Urn", "sh", "-c", "echo ready; exec sleep 600"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  context.after(() => child.kill("SIGKILL"));
  await once(createInterface({ input: child.stdout }), "line");
  unrefAll(child);
  return child.pid ?? 0;
}
