#!/usr/bin/python3
"""Imports recorded per-token router traces and compares all policies on each, for its own model and every mix.

usage: bench/recorded.py BINARY TRACE_FOLDER [WINDOWS] [OUT.json]

TRACE_FOLDER holds one folder a source (see docs/traces.md); folders that are missing are named and skipped. Prints, by mode
and mix, the geometric mean over sources of every policy's latency reduction against `static` and of its MoE time over the
proven lower bound, for models recorded from themselves.
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
MIXES = ("mixed", "by-domain", "drift")


def geomean(values):
    values = list(values)
    return math.exp(sum(math.log(v) for v in values) / len(values))


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
            for mix in MIXES:
                out = f"{scratch}/{name}-{mix}.json"
                run = subprocess.run([binary, "compare", "--models", model, "--trace", f"{model}={trace}", "--mix", mix,
                                      "--policies", "all", "--windows", windows, "--json", out, "--quiet"], capture_output=True, text=True)
                if run.returncode:
                    print(f"{name} {mix}: compare failed ({run.returncode}): {run.stderr.strip()[:400]}")
                    continue
                for r in json.load(open(out))["runs"]:
                    kept.append({"source": name, "mix": mix, **r})
    at = {(r["source"], r["mix"], r["mode"], r["policy"]): r for r in kept}
    print(f"{len(kept)} runs, origins {sorted({r['trace']['origin'] for r in kept})}")
    policies = list(dict.fromkeys(r["policy"] for r in kept))
    columns = [(mode, mix) for mode in ("prefill", "decode") for mix in MIXES]
    print(f"{'reduction against static, %':28}" + "".join(f"{mode + ' ' + mix:>20}" for mode, mix in columns))
    for policy in policies:
        cells = []
        for mode, mix in columns:
            rows = [k[0] for k in at if k[1:] == (mix, mode, policy)]
            cells.append(100 * (1 - geomean(at[s, mix, mode, policy]["latency_ps"] / at[s, mix, mode, "static"]["latency_ps"]
                                            for s in rows)))
        print(f"{policy:28}" + "".join(f"{c:20.1f}" for c in cells))
    print("MoE time over its lower bound")
    for policy in policies:
        cells = [geomean(r["moe_latency_ps"] / r["lower_bound_ps"] for k, r in at.items() if k[1:] == (mix, mode, policy))
                 for mode, mix in columns]
        print(f"{policy:28}" + "".join(f"{c:20.3f}" for c in cells))
    if len(sys.argv) > 4:
        json.dump(kept, open(sys.argv[4], "w"), indent=1)


main()
