#!/usr/bin/env python3
"""A small comparison has every key of the command-line contract, with the right types and relations."""
import json
import os
import subprocess
import sys
import tempfile

binary, _source = sys.argv[1:3]
RUN = {
    "model": str, "mode": str, "policy": str, "package": str, "network": str, "trace": dict, "windows": int,
    "latency_ps": int, "latency_ps_ci95": int, "normalized_latency": (int, float), "moe_latency_ps": int,
    "lower_bound_ps": int, "stages_ps": dict, "energy_pj": dict, "edp": (int, float), "bytes": dict,
    "replicas_mean": (int, float), "migrations": dict, "resident_bytes_max": int,
    "load_max_over_mean": (int, float), "events": int, "wall_s": (int, float),
}
INNER = {
    "trace": ["name", "sha256", "origin"],
    "stages_ps": ["gate", "dispatch", "queue", "memory", "compute", "gather", "combine"],
    "energy_pj": ["compute", "noc", "d2d", "sram", "hbm", "dram", "migration", "gate"],
    "bytes": ["dispatch", "gather", "memory", "migration"],
    "migrations": ["promote", "demote", "evict", "deferred"],
}
with tempfile.TemporaryDirectory() as folder:
    command = [binary, "compare", "--models", "mixtral-8x7b", "--modes", "prefill,decode", "--policies", "static,hydra",
               "--windows", "2", "--warmup", "2", "--prefill-tokens", "64", "--decode-tokens", "32", "--seed", "3",
               "--threads", "2", "--json", "-", "--report", folder + "/new/page", "--timeline", folder + "/t.json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    d = json.loads(done.stdout)  # tables went elsewhere
    assert "lower bound" in done.stderr
    page = open(folder + "/new/page/index.html", encoding="utf-8").read()
    assert json.load(open(folder + "/new/page/compare.json", encoding="utf-8"))["schema"] == d["schema"]
    timeline = json.load(open(folder + "/t.json", encoding="utf-8"))
    assert not [f for f in os.listdir(folder) if ".tmp." in f]

assert d["schema"] == "sojourn.compare/1" and isinstance(d["manifest"], dict)
assert d["manifest"]["options"]["seed"] == 3
assert len(d["runs"]) == 4
for run in d["runs"]:
    for key, kind in RUN.items():
        assert key in run, key
        assert isinstance(run[key], kind) and not isinstance(run[key], bool), (key, run[key])
    for key, names in INNER.items():
        assert set(names) <= set(run[key]), (key, run[key])
    assert all(isinstance(v, int) for v in run["stages_ps"].values())
    assert run["trace"]["origin"] in ("recorded", "surrogate", "synthetic", "calibrated")
    assert 0 < run["lower_bound_ps"] <= run["moe_latency_ps"] <= run["latency_ps"], run["policy"]
    assert run["load_max_over_mean"] >= 1 and run["windows"] == 2
    if run["policy"] == "static":
        assert run["normalized_latency"] == 1
for row in d["summary"]:
    assert set(row) >= {"mode", "policy", "against", "geomean_reduction", "per_model", "origin"}
    assert row["origin"] in ("recorded", "all")
assert len({(r["mode"], r["policy"], r["against"], r["origin"]) for r in d["summary"]}) == len(d["summary"])
for wanted in ("vegaEmbed", "Compute pressure", "Link utilisation", "Energy", "Assumptions"):
    assert wanted in page, wanted
assert "default-src 'none'" in page and "<script src" not in page

spans = [e for e in timeline["traceEvents"] if e["ph"] == "X"]
assert spans
tracks = {}
for e in spans:
    assert e["dur"] >= 0
    tracks.setdefault((e["pid"], e["tid"]), []).append((round(e["ts"] * 1e6), round((e["ts"] + e["dur"]) * 1e6)))
for spans_of in tracks.values():
    spans_of.sort()
    for (_, end), (start, _) in zip(spans_of, spans_of[1:]):
        assert start >= end - 64, "spans of a track overlap"  # doubles of JSON readers: a few ps
named = {(e["pid"], e["tid"]) for e in timeline["traceEvents"] if e["ph"] == "M" and e["name"] == "thread_name"}
assert set(tracks) <= named

# The weights behind hcrmap's controller are named by their hash, and only where they are used.
shipped = json.load(open(_source + "/checkpoints/hcrmap-dqn.manifest.json", encoding="utf-8"))["weights_sha256"]
for slow, expected in (("dqn", {"hcrmap-dqn": {"weights_sha256": shipped}}), ("none", None)):
    done = subprocess.run([binary, "compare", "--models", "mixtral-8x7b", "--modes", "decode", "--policies", "hcrmap",
                           "--set", "hcrmap.slow=" + slow, "--windows", "1", "--warmup", "2", "--decode-tokens", "32",
                           "--quiet", "--json", "-"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["manifest"].get("checkpoints") == expected
print("ok")
