#!/bin/bash
# compare --network flit: contract, same bytes at any thread count, replay, [flit] keys, a package that may deadlock; the
# models' errors against flit.
. "$(dirname "$0")/lib.sh"
base=(compare --models mixtral-8x7b,deepseek-v2-lite --modes prefill --moe-layers 1 --windows 1 --warmup 2 --prefill-tokens 256
  --policies static,hcrmap --quiet)
for threads in 1 2; do
  run "${base[@]}" --network flit --threads $threads --json "t$threads.json"
  exits 0
  silent
  sed 's/"wall_s": [0-9.e+-]*/"wall_s": 0/' "t$threads.json" >"s$threads.json"
done
same s1.json s2.json
json_holds t1.json "all(r['network'] == 'flit' and r['moe_layers'] == 1 and r['latency_ps'] > 0 for r in d['runs'])"
json_holds t1.json "all(r['lower_bound_ps'] <= r['moe_latency_ps'] for r in d['runs'])"
run replay t1.json
exits 0
prints "same bytes"
run "${base[@]}" --network packet --json packet.json
exits 0
"$PYTHON" - <<'END' || fail "flit and packet disagree"
import json
a, b = (json.load(open(f))["runs"] for f in ("t1.json", "packet.json"))
assert all(abs(x["moe_latency_ps"] / y["moe_latency_ps"] - 1) < 0.02 for x, y in zip(a, b))
assert all(x["bytes"]["dispatch"] == y["bytes"]["dispatch"] for x, y in zip(a, b))
END
{ cat "$SOURCE/packages/hcrmap-table1.toml"; printf '[flit]\nvcs = 2\nbuffer = 2\nrouting = "adaptive"\narbitration = "age"\n'; } >slow.toml
run "${base[@]}" --package slow.toml --network flit --json slow.json
exits 0
json_holds slow.json "all(r['latency_ps'] > 0 for r in d['runs'])"
sed 's/vcs = 2/vcs = 1/' slow.toml >narrow.toml
run "${base[@]}" --package narrow.toml --network flit --json never.json
exits 2
complains "flit.vcs: 1 for 1 VC class and adaptive VCs"
sed 's/vcs = 2/vcz = 2/' slow.toml >typo.toml
run check typo.toml
exits 2
complains "typo.toml:[0-9]+:1: flit.vcz: .*did you mean vcs"
for preset in example-custom example-torus example-tree; do
  run compare --package $preset --models mixtral-8x7b --modes decode --moe-layers 1 --windows 1 --warmup 1 --decode-tokens 16 \
    --policies static --network flit --quiet --json out.json
  exits 0
done
run validate network --models mixtral-8x7b --policies static --json models.json --report page
exits 0
prints "Use this model when"
json_holds models.json "len(d['models']) == 6 and all(m['flit_ps'] > 0 for m in d['models'])"
json_holds models.json "all(abs(m['packet_ps'] / m['flit_ps'] - 1) < 0.2 for m in d['models'])"
grep -q 'Use this model when' page/index.html || fail "the page lacks its table"
run validate network --models none
exits 2
complains "nothing to do"
[[ -e never.json ]] && fail "a refused run wrote its output"
echo ok
