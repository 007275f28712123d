/**
 * What the launcher starts: keeps what was compiled, then starts the program. JavaScript, for with anything else Node.js
 * would load its TypeScript parser before it could find out that nothing has to be parsed.
 */
import * as module from "node:module";
import { join } from "node:path";

// Absent from a Node.js that main.ts refuses.
module.enableCompileCache?.(join(import.meta.dirname, "../.runtime/compile-cache"));
await import("./main.ts");
