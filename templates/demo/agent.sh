#!/bin/sh
# shellcheck disable=SC2016 # the lines it writes are scripts themselves
# The demo's agent: reads its assignment, edits one file, commits. A real agent does the same, with more thought.
# It gets one thing wrong on purpose, so that there is something for a test to catch.
set -eu

brief=$("$SLOOP_BIN" brief)
name=$(printf '%s\n' "$brief" | sed -n 's/.*"ticket":{"id":"[^"]*","name":"\([^"]*\)".*/\1/p')
attempt=$(printf '%s\n' "$brief" | sed -n 's/.*"stage":{"name":"[^"]*","attempt":\([0-9]*\).*/\1/p')
echo "working on: $name (attempt $attempt)"

case "$name/$attempt" in
"Greet the world/"*) line='echo "hello, world"' ;;
"Greet by name/1") line='echo "hello ${1:-world}"' ;;
*) line='echo "hello, ${1:-world}"' ;;
esac
printf '%s\n' "$line" >greet.sh

git add greet.sh
git commit -q -m "$name, attempt $attempt"
