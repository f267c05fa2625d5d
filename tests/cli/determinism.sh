#!/bin/bash
# One thread or two, the same bytes apart from timings; replay agrees; ctrl-C has its exit status.
. "$(dirname "$0")/lib.sh"
options=(compare --models mixtral-8x7b,dbrx --modes decode --windows 2 --warmup 2 --decode-tokens 32 --policies static,hydra --quiet)
for threads in 1 2; do
  run "${options[@]}" --threads $threads --json "t$threads.json"
  exits 0
  silent
  sed 's/"wall_s": [0-9.e+-]*/"wall_s": 0/' "t$threads.json" >"s$threads.json"
done
same s1.json s2.json
run replay t1.json
exits 0
prints "same bytes"
sed 's/"latency_ps": 1*/&9/' t1.json >changed.json
run replay changed.json
exits 1
complains "changed.json:[0-9]+: differs"
ls | grep -q '\.tmp\.' && fail "a temporary file was left"
echo ok
