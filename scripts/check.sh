#!/bin/sh
# The gate: what has to hold before a change lands. `npm run check`; with --no-tests for a caller that ran them already.
# Called by bin/with-runtime.
set -eu
tests=yes
[ "${1:-}" != --no-tests ] || tests=no

step() {
  echo "== $1" >&2
  shift
  "$@"
}

step "format and lint (biome)" biome check --error-on-warnings
step "types (tsc)" tsc -p .
step "architecture (dependency-cruiser)" depcruise --config .dependency-cruiser.cjs src
step "dead code (knip)" knip
step "coverage of the pure rooms (c8)" sh scripts/coverage.sh
[ $tests = no ] || step "tests" sh scripts/test.sh
