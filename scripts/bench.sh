#!/bin/sh
# Runs the measurements; further arguments go to bench/run.ts. Called by bin/with-runtime.
set -eu
sh scripts/needs.sh squid:squid-openssl
if [ "${1:-}" = jail ]; then
  exec node bench/jail.ts
fi
exec node bench/run.ts "$@"
