#!/usr/bin/python3
"""Imports recorded per-token router traces and compares all policies on each, for its own model and every mix.

usage: bench/recorded.py BINARY TRACE_FOLDER [WINDOWS] [OUT.json]

TRACE_FOLDER holds one folder a source (see docs/traces.md); folders that are missing are named and skipped. Prints the
geometric-mean reductions of hcrmap against each baseline by mode and mix, over models recorded from themselves.
"""
import json
import math
import pathlib
import subprocess
import sys
import tempfile

SOURCES = [  # folder, glob, model
    ("mixtral-8x7b-hdmoe", "*.json", "mixtral-8x7b"),
    ("deepseek-v2-lite-moe-beyond", "*.csv", "deepseek-v2-lite"),
    ("gpt-oss-20b", "**/*.json", "gpt-oss-20b"),
    ("qwen1.5-moe-a2.7b-ocs", "**/routing.json", "qwen1.5-moe"),
    ("qwen1.5-moe-vllm-log", "*.jsonl", "qwen1.5-moe"),
    ("olmoe-vllm-log", "*.jsonl", "olmoe-1b-7b"),
    ("deepseek-moe-16b-moelens", "*.json", "deepseek-moe-16b"),
]
BASELINES = ["static", "hydra", "moentwine", "pimoe"]


def main():
    binary, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    windows = sys.argv[3] if len(sys.argv) > 3 else "32"
    kept = []
    with tempfile.TemporaryDirectory() as scratch:
        for name, glob, model in SOURCES:
            files = sorted(str(p) for p in (folder / name).glob(glob))
            if not files:
                print(f"{name}: absent, skipped")
                continue
            trace = f"{scratch}/{name}.npz"
            imported = subprocess.run([binary, "trace", "import", "auto", *files, "-o", trace],
                                      capture_output=True, text=True)
            if imported.returncode:
                print(f"{name}: import failed ({imported.returncode}): {imported.stderr.strip()[:400]}")
                continue
            for mix in ("mixed", "by-domain", "drift"):
                out = f"{scratch}/{name}-{mix}.json"
                run = subprocess.run([binary, "compare", "--models", model, "--trace", f"{model}={trace}", "--mix", mix,
                                      "--windows", windows, "--json", out, "--quiet"], capture_output=True, text=True)
                if run.returncode:
                    print(f"{name} {mix}: compare failed ({run.returncode}): {run.stderr.strip()[:400]}")
                    continue
                for r in json.load(open(out))["runs"]:
                    kept.append({"source": name, "mix": mix, **r})
    latency = {(r["source"], r["mix"], r["mode"], r["policy"]): r["latency_ps"] for r in kept}
    origins = {r["trace"]["origin"] for r in kept}
    print(f"{len(kept)} runs, origins {sorted(origins)}")
    print(f"{'source':32} {'mix':10} {'mode':8} " + " ".join(f"{b:>10}" for b in BASELINES) + "   (hcrmap's reduction, %)")
    rows = sorted({k[:3] for k in latency})
    for source, mix, mode in rows:
        cells = [100 * (1 - latency[source, mix, mode, "hcrmap"] / latency[source, mix, mode, b]) for b in BASELINES]
        print(f"{source:32} {mix:10} {mode:8} " + " ".join(f"{c:10.1f}" for c in cells))
    for mode in ("prefill", "decode"):
        for mix in ("mixed", "by-domain", "drift"):
            some = [r for r in rows if r[1] == mix and r[2] == mode]
            if not some:
                continue
            cells = []
            for b in BASELINES:
                logs = [math.log(latency[s, mix, mode, "hcrmap"] / latency[s, mix, mode, b]) for s, _, _ in some]
                cells.append(100 * (1 - math.exp(sum(logs) / len(logs))))
            print(f"{'geomean':32} {mix:10} {mode:8} " + " ".join(f"{c:10.1f}" for c in cells))
    if len(sys.argv) > 4:
        json.dump(kept, open(sys.argv[4], "w"), indent=1)


main()
