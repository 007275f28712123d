/** The program's entry: refuses an unsafe runtime, then hands over to the command line. */
import { isAtFloor, RUNTIME_FLOOR } from "./base/runtime-floor.ts";

if (isAtFloor(process.versions.node)) {
  const { runCommandLine } = await import("./cli/command-line.ts");
  process.exitCode = await runCommandLine(process.argv.slice(2));
} else {
  process.stderr.write(
    `sallyport: Node.js ${process.versions.node} is below the floor (${RUNTIME_FLOOR.join(", ")}, or newer majors): older ones carry holes that a sandbox can reach\n`,
  );
  process.exitCode = 2;
}
