#!/bin/bash
# Training survives kill -9: killed and resumed it ends with the bytes of an undisturbed run; the checkpoint serves
# compare; wrong input is refused with a remedy.
. "$(dirname "$0")/lib.sh"
options=(train --models deepseek-v2-lite --modes prefill --steps 360 --episode 12 --variants 1 --validations 2
         --save-every 1 --prefill-tokens 256 --learn-from 50 --quiet --seed 3)
run "${options[@]}" --out whole.json --json whole.log.json --report page
exits 0
silent
exists whole.json
exists page/index.html
[[ -e whole.json.state ]] && fail "the state of a finished run was left"
json_is whole.log.json schema sojourn.train/1
json_holds whole.log.json "d['curve'][-1]['steps'] == 360 and d['curve'][-1]['loss'] > 0"
json_holds whole.log.json "all(0 < p['epsilon'] <= 1 and p['legal_actions'] >= 1 for p in d['curve'])"
json_holds whole.log.json "len(d['validation']) == 2 and 'held_out' in d['manifest']['split']"

kills=0
for delay in 0.15 0.3 0.5 0.7; do
  "$SOJOURN" "${options[@]}" --out part.json --resume >/dev/null 2>&1 &
  pid=$!
  sleep $delay
  kill -9 $pid 2>/dev/null && kills=$((kills + 1))
  wait $pid 2>/dev/null
done
[[ $kills -gt 0 ]] || fail "nothing was killed"
if [[ -e part.json.state ]]; then
  run "${options[@]}" --out part.json
  exits 2
  complains "go on with --resume"
  run "${options[@]}" --gamma 0.5 --out part.json --resume
  exits 2
  complains "other options"
fi
run "${options[@]}" --out part.json --json part.log.json --resume
exits 0
same whole.json part.json
same whole.log.json part.log.json

compare=(compare --models deepseek-v2-lite --modes prefill --windows 3 --warmup 2 --prefill-tokens 256 --policies hcrmap --quiet)
run "${compare[@]}" --set hcrmap.checkpoint=./whole.json --json with.json
exits 0
run "${compare[@]}" --set hcrmap.checkpoint=nowhere
exits 2
complains "nowhere.*sojourn train"
sed 's/"hidden": 64/"hidden": 63/' whole.json >broken.json
run "${compare[@]}" --set hcrmap.checkpoint=./broken.json
exits 2
complains "broken.json.*weights"
run train --steps 0
exits 2
complains "steps"
run train --models nothing
exits 2
echo ok
