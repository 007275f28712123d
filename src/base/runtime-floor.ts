/** Which Node.js releases are safe to run on. Pure. */

/** Each carries the fixes of its line up to November 2026: cross-connection memory reads, TLS name checks, DNS truncation. */
export const RUNTIME_FLOOR: readonly string[] = ["22.23.5", "24.22.3", "26.13.1"];

/** Odd majors between are never at the floor; majors after the last are. */
export function isAtFloor(version: string): boolean {
  const [major = 0, minor = 0, patch = 0] = version.split(".").map((part) => Number.parseInt(part, 10));
  let newest = 0;
  for (const floor of RUNTIME_FLOOR) {
    const [floorMajor = 0, floorMinor = 0, floorPatch = 0] = floor.split(".").map(Number);
    newest = Math.max(newest, floorMajor);
    if (major === floorMajor) return minor > floorMinor || (minor === floorMinor && patch >= floorPatch);
  }
  return major > newest;
}
