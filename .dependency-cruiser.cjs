// The direction of dependencies: main, app, sentences, stages, supply rooms, base, model. docs/ARCHITECTURE.md says why.
const STAGES = "accept|identify|decide|transform|forward|record";
/** Modules of Node.js that do I/O, keep time or know the process. Types alone may be taken from `stream` and `net`. */
const IO =
  "fs|fs/promises|net|tls|http|https|http2|dns|dns/promises|dgram|child_process|cluster|worker_threads|process|" +
  "timers|timers/promises|readline|readline/promises|os|inspector|repl|vm|v8|perf_hooks|async_hooks|tty|module|stream|stream/promises";
/** The rooms without sockets, files, clock and process. */
const PURE = "model|base|wire|decide|transform|identify";

function core(names) {
  return { dependencyTypes: ["core"], path: `^(node:)?(${names})$` };
}

/** One adapter for each package, so that replacing it is a change in one place. */
function adapter(packageName, place) {
  return {
    name: `${packageName}-has-one-adapter`,
    severity: "error",
    from: { path: "^src/", pathNot: place },
    to: { path: `^(node_modules/)?(@types/)?${packageName}(/|$)` },
  };
}

/** @type {import("dependency-cruiser").IConfiguration} */
module.exports = {
  forbidden: [
    {
      name: "no-circular",
      comment: "Types included: two files that name each other are one file.",
      severity: "error",
      from: {},
      to: { circular: true },
    },
    {
      name: "no-orphans",
      severity: "error",
      from: { orphan: true, path: "^src/", pathNot: "^src/main\\.ts$|\\.d\\.ts$" },
      to: {},
    },
    {
      name: "stages-are-strangers",
      comment: "No stage imports another, not even a type; what they share lives in model/.",
      severity: "error",
      from: { path: `^src/(${STAGES})/` },
      to: { path: `^src/(${STAGES})/`, pathNot: "^src/$1/" },
    },
    {
      name: "supply-rooms-know-no-stage",
      severity: "error",
      from: { path: "^src/(model|base|wire|secrets|pki)/" },
      to: { path: `^src/(${STAGES})/` },
    },
    {
      name: "admin-knows-only-record",
      comment: "The admin pages show what is recorded; they decide and forward nothing.",
      severity: "error",
      from: { path: "^src/admin/" },
      to: { path: `^src/(${STAGES})/`, pathNot: "^src/record/" },
    },
    {
      name: "config-knows-only-decide",
      severity: "error",
      from: { path: "^src/config/" },
      to: { path: `^src/(${STAGES})/`, pathNot: "^src/decide/" },
    },
    {
      name: "base-is-below-all-but-model",
      severity: "error",
      from: { path: "^src/base/" },
      to: { path: "^src/", pathNot: "^src/(base|model)/" },
    },
    {
      name: "proofs-are-minted-in-decide",
      comment: "A Permit or Dialable that another room could make would prove nothing.",
      severity: "error",
      from: { path: "^src/", pathNot: "^src/decide/" },
      to: { path: "^src/decide/proofs\\.ts$" },
    },
    {
      name: "core-is-sans-io",
      comment: "What decides is a function of values: it can be tested and explained without a network.",
      severity: "error",
      from: { path: `^src/(${PURE})/` },
      to: { ...core(IO), dependencyTypesNot: ["type-only"] },
    },
    {
      name: "model-imports-nothing",
      severity: "error",
      from: { path: "^src/model/" },
      to: { pathNot: "^src/model/|^(node:)?(stream|net)$" },
    },
    {
      name: "decide-imports-model-and-base",
      severity: "error",
      from: { path: "^src/decide/" },
      to: { pathNot: "^src/(decide|model|base)/" },
    },
    {
      name: "only-the-top-composes",
      severity: "error",
      from: { path: "^src/", pathNot: "^src/(main|app)\\.ts$|^src/start\\.mjs$|^src/cli/" },
      to: { path: "^src/(app|main)\\.ts$|^src/cli/" },
    },
    {
      name: "only-the-top-runs-sentences",
      comment: "The files beside main.ts join the stages; nothing below may start an exchange.",
      severity: "error",
      from: { path: "^src/[^/]+/", pathNot: "^src/cli/" },
      to: { path: "^src/[^/]+\\.ts$" },
    },
    {
      name: "only-forward-resolves",
      severity: "error",
      from: { path: "^src/", pathNot: "^src/forward/" },
      to: core("dns|dns/promises"),
    },
    {
      name: "only-hooks-and-sandbox-spawn",
      severity: "error",
      from: { path: "^src/", pathNot: "^src/(hooks|sandbox)/" },
      to: core("child_process"),
    },
    adapter("@smithy/signature-v4", "^src/secrets/sigv4\\.ts$"),
    adapter("yaml", "^src/config/parse\\.ts$"),
    adapter("re2", "^src/base/whole-pattern\\.ts$"),
    adapter("node-forge", "^src/pki/"),
    adapter("prom-client", "^src/record/metrics\\.ts$"),
    adapter("http-proxy", "^src/accept/reverse-relay\\.ts$"),
    adapter("koffi", "^src/accept/original-destination\\.ts$"),
    adapter("jose", "^src/secrets/jwt\\.ts$"),
    adapter("tldts", "^src/config/public-suffix\\.ts$"),
    {
      name: "no-undeclared-package",
      severity: "error",
      from: { path: "^src/" },
      to: {
        dependencyTypes: ["npm-no-pkg", "npm-unknown", "npm-dev"],
        dependencyTypesNot: ["type-only"],
      },
    },
    {
      name: "no-unresolvable",
      severity: "error",
      from: { path: "^src/" },
      to: { couldNotResolve: true },
    },
    {
      name: "product-knows-no-test",
      severity: "error",
      from: { path: "^src/" },
      to: { path: "^(test|bench|bin|scripts)/" },
    },
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.json" },
    doNotFollow: { path: "node_modules" },
    enhancedResolveOptions: {
      extensions: [".ts", ".js"],
      exportsFields: ["exports"],
      conditionNames: ["import", "types", "node"],
    },
  },
};
