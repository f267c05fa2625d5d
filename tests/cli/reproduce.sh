#!/bin/bash
# A study killed in the middle and resumed has the bytes of an undisturbed one; wrong input is told and writes nothing.
. "$(dirname "$0")/lib.sh"
options=(reproduce hcrmap --models mixtral-8x7b --windows 2 --seeds 2 --policies none --quick)

run "${options[@]}" --threads 2 --json whole.json --report whole --quiet
exits 0
silent
json_is whole.json schema sojourn.reproduce/1
json_holds whole.json "all(c['kind'] in ('simulated', 'derived', 'calibrated') and c['source'] and c['reading'] for c in d['checks'])"
json_holds whole.json "all(c['measured'] is not None for c in d['checks'] if c['paper'] is not None)"
json_holds whole.json "len({c['id'] for c in d['checks']}) == len(d['checks'])"
json_holds whole.json "sum(c['paper'] is not None for c in d['checks']) >= 76"
json_holds whole.json "all(c['holds'] for c in d['checks'] if c.get('must_hold'))"
json_holds whole.json "not any('wall' in k for r in d['runs'] for k in r)"
exists whole/index.html
same whole.json whole/reproduce.json

# Killed three times at different moments, on another number of threads.
for moment in 0.15 0.3 0.5; do
  "$SOJOURN" "${options[@]}" --threads 1 --json cut.json --report cut --quiet </dev/null >/dev/null 2>&1 &
  victim=$!
  sleep "$moment"
  kill -9 "$victim" 2>/dev/null
  wait "$victim" 2>/dev/null
done
run "${options[@]}" --threads 1 --json cut.json --report cut
exits 0
prints "taken from cut/state"
same whole.json cut.json
same whole/index.html cut/index.html

# Nothing to do a second time; the state may be named.
run "${options[@]}" --json third.json --resume cut/state
exits 0
runs=$(json_holds third.json "len(d['runs']) > 0" && "$PYTHON" -c 'import json; print(len(json.load(open("third.json"))["runs"]))')
prints "^$runs runs, $runs of them taken from cut/state"
same whole.json third.json

# ctrl-C keeps what is finished.
"$SOJOURN" "${options[@]}" --threads 1 --json stopped.json --quiet </dev/null >"$OUT" 2>"$ERR" &
victim=$!
sleep 0.3
kill -INT "$victim" 2>/dev/null
wait "$victim"
[[ $? -eq 130 || -s stopped.json ]] || fail "ctrl-C gave another status"

run reproduce hcrmp
exits 2
complains "did you mean hcrmap"
run reproduce hcrmap --models nothing --policies hcrmp --report made --json made.json
exits 2
complains "nothing"
complains "hcrmp"
[[ ! -e made && ! -e made.json ]] || fail "wrong input made files"
run reproduce hcrmap --models llama-2-7b
exits 2
complains "llama-2-7b has no routed experts"
echo text >notes.txt
run "${options[@]}" --resume notes.txt --json made.json --report made
exits 2
complains "notes.txt"
[[ ! -e made.json && ! -e made ]] || fail "a wrong state made files"
echo ok
