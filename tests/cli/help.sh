#!/bin/bash
# Every command explains itself: --help exits 0, shows usage and its options.
. "$(dirname "$0")/lib.sh"
for words in "compare" "bound" "replay" "describe" "check" "trace" "trace import" "trace info" "trace check" \
             "trace export" "trace synth" "model" "model import" "package" "package list" "validate" "validate network" "validate memory" "version" "help"; do
  run $words --help
  exits 0
  prints "Usage: sojourn $words"
  silent
  run help $words
  exits 0
  prints "Usage: sojourn $words"
done
run --help
exits 0
prints "Examples:"
run --version
exits 0
prints "^sojourn [0-9]"
run describe --json -
exits 0
json_is - schema sojourn.describe/1
json_holds - "all(d[k] for k in ('policies','packages','models','topologies','formats','networks')) and 'manifest' in d"
json_holds - "all(p['name'] and p['text'] for p in d['policies'])"
echo ok
