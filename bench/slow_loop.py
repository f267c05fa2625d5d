#!/usr/bin/env python3
"""What the slow loop of hcrmap is worth on windows no controller was trained on: the routed-MoE time of each Table 2
model with slow = amortised and with each given Q-network, over slow = none. Prints a markdown table; --json keeps the
numbers.

  for s in 1 2 3; do sojourn train --seed $s --out dqn$s.json; done
  python3 bench/slow_loop.py build/release/sojourn --checkpoint dqn1.json dqn2.json dqn3.json
"""
import argparse
import json
import math
import subprocess
import tempfile


def run(binary, args, settings):
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        command = [binary, "compare", "--quiet", "--policies", "hcrmap", "--json", out.name]
        command += ["--windows", str(args.windows), "--network", args.network, "--seed", str(args.seed)]
        command += ["--threads", str(args.threads)]
        for trace in args.trace:
            command += ["--trace", trace]
        for setting in settings:
            command += ["--set", f"hcrmap.{setting}"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        runs = json.load(open(out.name))["runs"]
    return {(r["mode"], r["model"]): r for r in runs}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("binary")
    p.add_argument("--checkpoint", nargs="+", default=["hcrmap-dqn"])
    p.add_argument("--windows", type=int, default=64)
    p.add_argument("--network", default="packet")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--trace", action="append", default=[])
    p.add_argument("--json")
    args = p.parse_args()
    none = run(args.binary, args, ["slow=none"])
    columns = {"amortised": run(args.binary, args, ["slow=amortised"])}
    for checkpoint in args.checkpoint:
        columns[checkpoint.split("/")[-1].removesuffix(".json")] = run(
            args.binary, args, ["slow=dqn", f"checkpoint={checkpoint}"])
    change = {name: {key: r["moe_latency_ps"] / none[key]["moe_latency_ps"] - 1 for key, r in runs.items()}
              for name, runs in columns.items()}
    modes = list(dict.fromkeys(mode for mode, _ in none))
    geomean = {}
    for mode in modes:
        models = [model for m, model in none if m == mode]
        print(f"\n| {mode}, routed-MoE time over no updates, % | " + " | ".join(columns) + " |")
        print("|---|" + "---|" * len(columns))
        for model in models:
            print(f"| {model} | " + " | ".join(f"{100 * change[c][mode, model]:+.2f}" for c in columns) + " |")
        geomean[mode] = {c: math.exp(sum(math.log1p(change[c][mode, m]) for m in models) / len(models)) - 1
                         for c in columns}
        print("| geomean | " + " | ".join(f"{100 * geomean[mode][c]:+.3f}" for c in columns) + " |")
    if args.json:
        json.dump({"options": {k: v for k, v in vars(args).items() if k not in ("json", "binary")},
                   "geomean": geomean,
                   "change": {c: {f"{m} {n}": v for (m, n), v in rows.items()} for c, rows in change.items()},
                   "migrations": {c: {f"{m} {n}": r["migrations"] for (m, n), r in rows.items()}
                                  for c, rows in columns.items()}}, open(args.json, "w"), indent=1)


if __name__ == "__main__":
    main()
