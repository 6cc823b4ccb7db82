#!/bin/sh
# `npm test`: gets the pinned bun and the dependencies if they are missing, builds, runs every test, and ends with one line
# `N passed, N failed`.

set -eu
cd "$(dirname "$0")/.."

bun=$(sh ./install.sh --bun)
"$bun" install --frozen-lockfile --silent
"$bun" build.ts

log=$(mktemp "${TMPDIR:-/tmp}/sloop-test.XXXXXX")
trap 'rm -f "$log"' EXIT

# The runner's status must survive the pipe that shows and keeps its output.
status=0
{ "$bun" test --parallel --no-isolate --timeout 60000 "$@" 2>&1 || echo $? >"$log.status"; } | tee "$log"
if [ -f "$log.status" ]; then
    status=$(cat "$log.status")
    rm -f "$log.status"
fi

# The last summary lines read ` 12 pass` and ` 0 fail`, colour codes aside.
count() { sed 's/\x1b\[[0-9;]*m//g' "$log" | sed -n "s/^ *\([0-9][0-9]*\) $1\$/\1/p" | tail -n 1; }
passed=$(count pass)
failed=$(count fail)
if [ "$status" -ne 0 ] && [ "${failed:-0}" -eq 0 ]; then failed=1; fi
echo "${passed:-0} passed, ${failed:-0} failed"
[ "$status" -eq 0 ] && [ "${passed:-0}" -gt 0 ]
