#!/bin/sh
# Runs the measurements; further arguments go to bench/run.ts. Called by bin/with-runtime.
set -eu
sh scripts/needs.sh squid:squid-openssl
exec node bench/run.ts "$@"
