#!/usr/bin/env python3
"""The page of a study: every figure of section 7 is there and parses, one colour a policy on the whole page, nothing is
fetched, the first table says which reading supports which claim, and every number is also in a table."""
import json
import re
import subprocess
import sys
import tempfile

binary, _source = sys.argv[1:3]
FIGURES = ["readings", "fig2a", "fig2b", "fig2c", "fig5-prefill", "fig5-decode", "matched", "fig6", "fig6-zoom",
           "no-fast-map", "fig7a", "fig7b", "fig8", "slow-loop"]
with tempfile.TemporaryDirectory() as folder:
    command = [binary, "reproduce", "hcrmap", "--quick", "--models", "deepseek-v2-lite", "--windows", "2",
               "--policies", "none", "--report", folder + "/out", "--threads", "2", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    page = open(folder + "/out/index.html", encoding="utf-8").read()
    study = json.load(open(folder + "/out/reproduce.json", encoding="utf-8"))

text = re.sub(r"<script>.*?</script>", "", page, flags=re.S)  # without the drawing library
assert not re.search(r"(src|href)\s*=\s*[\"'](https?:)?//", text), "the page refers to another place"
assert "default-src 'none'" in text
tables = text.split("<table")
assert 'class="claims"' in tables[1], "the first table is not the one of claims"
for reading in ("table1-package", "table1-layer", "total-package", "total-layer"):
    assert reading in tables[1]
for claim in study["claims"]:
    assert claim["text"].replace("...", "...") in tables[1], claim

specs = {name: json.loads(body) for name, body in
         re.findall(r'<script type="application/json" data-figure="fig-([^"]+)">(.*?)</script>', page, flags=re.S)}
missing = [f for f in FIGURES if f not in specs]
assert not missing, missing


def colour_scales(node):
    if isinstance(node, dict):
        scale = node.get("color", {}).get("scale") if isinstance(node.get("color"), dict) else None
        if scale and node["color"].get("field") == "policy":
            yield dict(zip(scale["domain"], scale["range"]))
        for child in node.values():
            yield from colour_scales(child)
    elif isinstance(node, list):
        for child in node:
            yield from colour_scales(child)


seen = {}
for name, spec in specs.items():
    for scale in colour_scales(spec):
        for policy, colour in scale.items():
            assert seen.setdefault(policy, colour) == colour, (name, policy, colour, seen[policy])
assert {"static", "hydra", "hcrmap"} <= seen.keys()
assert len(set(seen.values())) == len(seen), "two policies share a colour"
assert text.count("<summary>Numbers</summary>") == len(specs)
print(len(specs), "figures,", len(seen), "policies and variants, each with its colour")
