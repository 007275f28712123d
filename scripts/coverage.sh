#!/bin/sh
# The pure rooms are covered whole, by their own tests alone. Called by bin/with-runtime.
set -eu
rooms='decide transform wire identify'
files=test/config/parse.test.ts
for room in $rooms; do
  files="$files $(find "test/$room" -name '*.test.ts' | sort | tr '\n' ' ')"
done
# shellcheck disable=SC2086 # no test file has a blank in its name
exec c8 --config .c8rc.json node --test --test-concurrency=2 --test-reporter=dot $files
