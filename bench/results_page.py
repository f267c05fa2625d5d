#!/usr/bin/python3
"""Writes docs/results.md from `sojourn compare --json` of the shipped traces and bench/recorded.py's JSON.

usage: bench/results_page.py SURROGATE.json RECORDED.json > docs/results.md
"""
import json
import math
import sys

PAPER = {("prefill", "hydra"): 43.6, ("decode", "hydra"): 43.0, ("prefill", "moentwine"): 34.5,
         ("decode", "moentwine"): 33.1, ("prefill", "pimoe"): 46.7, ("decode", "pimoe"): 46.0}
BASELINES = ["static", "hydra", "moentwine", "pimoe"]


def reduction(runs, mode, against, keep=lambda r: True):
    logs = []
    at = {(r.get("source", r["model"]), r.get("mix", ""), r["mode"], r["policy"]): r["latency_ps"] for r in runs if keep(r)}
    for (source, mix, m, policy), latency in at.items():
        if m == mode and policy == "hcrmap":
            logs.append(math.log(latency / at[source, mix, m, against]))
    return 100 * (1 - math.exp(sum(logs) / len(logs)))


def main():
    surrogate = json.load(open(sys.argv[1]))["runs"]
    recorded = json.load(open(sys.argv[2]))
    print("""# Results of the main comparison

What `sojourn compare` measures on `hcrmap-table1` with the packet network (32 scored windows, seed 1), beside the paper.
Written by `bench/results_page.py` from

    build/release/sojourn compare --models table2 --windows 32 --json surrogate.json
    bench/recorded.py build/release/sojourn TRACE_FOLDER 32 recorded.json

Kind: *simulated*. The paper's traces, hyper-parameters and window length are not public; ours are in
[hcrmap.md](hcrmap.md) and [policies.md](policies.md). Hydra and PIMoE are reconstructions [R] of papers whose text could
not be read in full: a reduction against them says as much of the reconstruction as of the idea.

## Geometric-mean latency reduction of hcrmap, %

| mode | against | paper | surrogate, 8 models | recorded, mixed | recorded, by-domain | recorded, drift |
| --- | --- | --- | --- | --- | --- | --- |""")
    for mode in ("prefill", "decode"):
        for b in BASELINES:
            paper = PAPER.get((mode, b), "24.95" if mode == "prefill" else "23.91")
            cells = [f"{reduction(surrogate, mode, b):.1f}"]
            for mix in ("mixed", "by-domain", "drift"):
                cells.append(f"{reduction(recorded, mode, b, lambda r: r['mix'] == mix):.1f}")
            note = " (matched capacity)" if b == "static" else ""
            print(f"| {mode} | {b}{note} | {paper} | " + " | ".join(cells) + " |")
    print("""
Recorded: seven third-party captures of six models, each replayed on its own model (`bench/recorded.py` lists them); two hold
one layer only and one a few tokens, so equal rows over mixes mean that a capture has one domain. Surrogate: the shipped traces.

## Surrogate traces, by model: latency over static, and MoE time over its proven lower bound

| model | mode | """ + " | ".join(BASELINES[1:] + ["hcrmap"]) + """ | hcrmap over bound |
| --- | --- | --- | --- | --- | --- | --- |""")
    at = {(r["model"], r["mode"], r["policy"]): r for r in surrogate}
    for model in dict.fromkeys(r["model"] for r in surrogate):
        for mode in ("prefill", "decode"):
            row = [f"{at[model, mode, p]['normalized_latency']:.3f}" for p in BASELINES[1:] + ["hcrmap"]]
            h = at[model, mode, "hcrmap"]
            row.append(f"{h['moe_latency_ps'] / h['lower_bound_ps']:.2f}")
            print(f"| {model} | {mode} | " + " | ".join(row) + " |")
    print("""
## Why the gains are smaller than the paper's

* Real routing is milder than the gains suggest. The fullest chiplet of DeepSeek-V2-Lite carries about 1.36 times the mean
  with whole experts in contiguous blocks (recorded trace), so no policy can win more than a quarter of the MoE time there,
  and attention, dense blocks and shared experts are outside its reach.
* Weights are read once a replica and layer, not once a token group, and overlap with compute. Streaming is therefore a
  fixed cost of a layer that placement can level but not remove; only copies add to it.
* With 8 experts on 16 chiplets (Mixtral) whole experts leave chiplets idle; 1.3 copies reach 10 of 16. The distance to the
  bound there belongs to splitting experts, which HCRMap does not do.
* MoEntwine's balancer, given its own limit of 8 copies a window over cold links, follows the load faster than one update a
  window can. Where compute binds it is the strongest rival, ahead of hcrmap on some recorded traces; where memory binds
  (DeepSeek-V2 and V3 decode) its copies cost more than they win, because it knows no tiers.
* Hydra maps by popularity and distance. With tokens spread evenly over the chiplets there is little distance to save, and
  pulling hot experts together costs compute balance.""")


main()
