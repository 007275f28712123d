#!/bin/sh
# Runs the tests, or the files that are named: `npm test`, `npm test -- test/wire/fields.test.ts`. Called by bin/with-runtime.
set -eu
slow=no
if [ "${1:-}" = --slow ]; then
  slow=yes
  shift
fi
sh scripts/needs.sh
if [ $# -eq 0 ] && [ $slow = yes ]; then
  # shellcheck disable=SC2046 # no test file has a blank in its name
  set -- $(find test/slow -name '*.test.ts' | sort)
elif [ $# -eq 0 ]; then
  # shellcheck disable=SC2046
  set -- $(find test -name '*.test.ts' ! -path 'test/slow/*' | sort)
fi
if [ $# -eq 0 ]; then
  echo "No test file was found" >&2
  exit 1
fi
exec node --test --test-concurrency="${TEST_CONCURRENCY:-2}" --test-timeout="${TEST_TIMEOUT:-300000}" \
  --test-reporter=spec "$@"
