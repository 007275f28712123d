#!/bin/sh
# Runs the measurements; further arguments go to bench/run.ts. Called by bin/with-runtime.
set -eu
sh scripts/needs.sh squid:squid-openssl
if [ "${1:-}" = jail ]; then
  exec node bench/jail.ts
fi
if [ "${1:-}" = scrub ]; then
  shift
  exec node bench/scrub.ts "$@"
fi
if [ "${1:-}" = h2 ]; then
  shift
  exec node bench/run.ts --workload h2 --workload h2-64k "$@"
fi
exec node bench/run.ts "$@"
