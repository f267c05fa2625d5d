#!/usr/bin/env bash
# How fast `sojourn compare` is: the Table 2 matrix (wall time, events a second and core, peak memory), then how wall
# time grows with windows and with layers.
#   bench/matrix.sh [path to sojourn]        SOJOURN_BENCH_MODELS, _POLICIES and _WINDOWS shorten it
set -euo pipefail
cd "$(dirname "$0")/.."
binary=${1:-build/release/sojourn}
models=${SOJOURN_BENCH_MODELS:-table2}
policies=${SOJOURN_BENCH_POLICIES:-all}
windows=${SOJOURN_BENCH_WINDOWS:-16 32 64}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

run() {  # label, then arguments of compare
  local label=$1
  shift
  python3 - "$out/run.json" "$label" "$binary" compare --quiet --json "$out/run.json" "$@" <<'PY'
import json, resource, subprocess, sys, time
path, label, *command = sys.argv[1:]
start = time.time()
subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
wall = time.time() - start
use = resource.getrusage(resource.RUSAGE_CHILDREN)
runs = json.load(open(path))["runs"]
events = sum(r["events"] for r in runs)
# wall_s of a run is its own thread's: events over its sum is a rate a core, low when others share the core. Events over
# processor time is not, but counts loading, profiling and reporting as well.
busy = sum(r["wall_s"] for r in runs)
cpu = use.ru_utime + use.ru_stime
print(f"{label:<34} {len(runs):>4} runs  wall {wall:7.2f} s  cpu {cpu:7.2f} s  {events:>13,} events  "
      f"{events / busy / 1e6:6.2f} M events/s a core, {events / cpu / 1e6:5.2f} M a cpu second  peak {use.ru_maxrss / 1024:6.0f} MiB", flush=True)
PY
}

run "$models, 32 windows" --models "$models" --policies "$policies" --windows 32
for n in $windows; do run "windows: deepseek-v3, $n" --models deepseek-v3 --policies "$policies" --modes prefill --windows "$n"; done
# Layers: the same experts and trace, cut to a part of the layers.
for n in 16 32 64; do
  sed -E "s/^layers *=.*/layers = $n/; s/^dense_first *=.*/dense_first = 0/; /^(published_|dense_ff)/d" models/deepseek-v3.toml > "$out/cut-$n.toml"
  run "layers: deepseek-v3 cut to $n" --models "$out/cut-$n.toml" --policies "$policies" --modes prefill --windows 8
done
