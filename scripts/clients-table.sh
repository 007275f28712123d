#!/bin/sh
# Writes the table of docs/clients.md from a run of the client matrix: `npm run clients`. Called by bin/with-runtime.
# The test itself writes nothing, and fails where the table is not what its run shows.
set -eu
WRITE_CLIENTS_TABLE=yes node --test test/path/client-matrix.test.ts
git diff --stat -- docs/clients.md
