#!/bin/bash
# Same seed, same bytes: one and two threads, and a clang++ build where there is one (SOJOURN_CLANG_BINARY, or
# build/clang/sojourn of this tree). args: binary, source dir. Skips the second compiler where it is not built.
set -eu
binary=$1
source=$2
other=${SOJOURN_CLANG_BINARY:-$source/build/clang/sojourn}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
run() { # binary threads out
  "$1" compare --models deepseek-v2-lite,mixtral-8x7b --windows 6 --mix drift --threads "$2" --quiet --json "$scratch/$3"
  sed -E -i 's/"wall_s": *[0-9.eE+-]+/"wall_s": 0/g' "$scratch/$3"
}
run "$binary" 1 a
run "$binary" 2 b
cmp "$scratch/a" "$scratch/b"
echo "one and two threads: same bytes"
if [ ! -x "$other" ]; then
  echo "no clang++ build: second compiler skipped"
  exit 0
fi
run "$other" 2 c
cmp "$scratch/a" "$scratch/c"
echo "g++ and clang++: same bytes"
