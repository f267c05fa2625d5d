#!/bin/bash
# Same seed, same bytes: one and two threads, and with a second compiler's binary where SOJOURN_CLANG_BINARY names one
# (./dev build clang makes build/clang/sojourn). args: binary, source dir.
set -eu
binary=$1
other=${SOJOURN_CLANG_BINARY:-}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
run() { # binary threads out
  "$1" compare --models deepseek-v2-lite,mixtral-8x7b --policies all --windows 3 --mix drift --threads "$2" --quiet --json "$scratch/$3"
  sed -E -i 's/"wall_s": *[0-9.eE+-]+/"wall_s": 0/g' "$scratch/$3"
}
run "$binary" 1 a
run "$binary" 2 b
cmp "$scratch/a" "$scratch/b"
echo "one and two threads: same bytes"
if [ -z "$other" ]; then
  echo "SOJOURN_CLANG_BINARY is not set: second compiler skipped"
  exit 0
fi
run "$other" 2 c
cmp "$scratch/a" "$scratch/c"
echo "g++ and clang++: same bytes"
