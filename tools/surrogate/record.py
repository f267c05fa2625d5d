#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Train small Mixture-of-Experts language models and record their routing.

The recorded traces have the expert count, top-k and kind of balancing of
well-known MoE models, but come from small models trained here on text that
Debian packages ship.  Every id in a trace is what the trained router chose on
text it was not trained on; nothing is sampled from a distribution or edited
afterwards.

    record.py --out traces                        train and record all shapes
    record.py --out traces --only 64x6 --steps 700 --seed 1 --threads 2
    record.py --stats traces/surrogate-64x6.npz   print routing statistics
    record.py --list-packages                     the text packages it reads

Needs python3-torch, python3-numpy and libopenblas0-pthread (the reference BLAS
is some fifteen times slower).  The text packages are downloaded with
`apt-get download` and unpacked into --cache; nothing is installed.
"""
import argparse
import glob
import gzip
import hashlib
import heapq
import html
import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile
import time

import numpy as np

SCHEMA = "sojourn.trace/1"
DOMAINS = ["prose", "code", "standards", "chinese"]

# domain, package, licence of the text, kind of markup, globs below the unpacked package
SOURCES = [
    ("prose", "anarchism", "GPL-2", "html", ["usr/share/doc/anarchism/html/*.html"]),
    ("prose", "jargon-text", "public-domain", "text", ["usr/share/doc/jargon-text/jargon.txt.gz"]),
    ("prose", "debian-handbook", "GPL-2+ or CC-BY-SA-3.0+", "html",
     ["usr/share/doc/debian-handbook/html/en-US/*.html"]),
    ("prose", "debian-reference-en", "GPL-2+", "html", ["usr/share/debian-reference/ch*.en.html"]),
    ("prose", "developers-reference", "GPL-2+", "text",
     ["usr/share/developers-reference/_sources/*.rst.txt"]),
    ("prose", "debian-history", "GPL-2+", "text",
     ["usr/share/doc/debian-history/docs/project-history.en.txt.gz"]),
    ("prose", "c++-annotations-txt", "GPL-2+", "text",
     ["usr/share/doc/c++-annotations/cplusplus.txt.gz"]),
    ("code", "libpython3.11-stdlib", "PSF-2.0", "text", ["usr/lib/python3.11/**/*.py"]),
    ("code", "perl-modules-5.36", "Artistic or GPL-1+", "text", ["usr/share/perl/5.36.0/**/*.pm"]),
    ("code", "postgresql-server-dev-15", "PostgreSQL", "text",
     ["usr/include/postgresql/15/server/**/*.h"]),
    ("code", "libboost1.74-dev", "BSL-1.0", "text", ["usr/include/boost/**/*.hpp"]),
    ("code", "golang-1.19-src", "BSD-3-Clause", "text", ["usr/share/go-1.19/src/**/*.go"]),
    ("standards", "debian-policy", "GPL-2+ (FHS: its own permissive licence)", "text",
     ["usr/share/doc/debian-policy/policy.html/_sources/*.rst.txt",
      "usr/share/doc/debian-policy/*.txt.gz"]),
    ("standards", "linux-doc-6.1", "GPL-2", "text",
     ["usr/share/doc/linux-doc-6.1/Documentation/ABI/**/*.gz",
      "usr/share/doc/linux-doc-6.1/Documentation/devicetree/**/*.gz",
      "usr/share/doc/linux-doc-6.1/Documentation/userspace-api/**/*.rst.gz"]),
    ("standards", "libx11-doc", "MIT", "html",
     ["usr/share/doc/libx11-dev/XKB/*.html", "usr/share/doc/libx11-dev/XIM/*.html",
      "usr/share/doc/libx11-dev/libX11/*.html",
      "usr/share/doc/libx11-dev/i18n/[flt]*/*.html"]),
    ("standards", "xorg-docs", "MIT", "html",
     ["usr/share/doc/xorg-docs/icccm/*.html", "usr/share/doc/xorg-docs/xlfd/*.html",
      "usr/share/doc/xorg-docs/ctext/*.html", "usr/share/doc/xorg-docs/xext/*.html",
      "usr/share/doc/xorg-docs/Xserver/*.html", "usr/share/doc/xorg-docs/input/*.html"]),
    ("chinese", "debian-handbook", "GPL-2+ or CC-BY-SA-3.0+", "html",
     ["usr/share/doc/debian-handbook/html/zh-CN/*.html"]),
    ("chinese", "debian-reference-zh-cn", "GPL-2+", "html",
     ["usr/share/debian-reference/ch*.zh-cn.html"]),
    ("chinese", "maint-guide-zh-cn", "GPL-2+", "html",
     ["usr/share/doc/maint-guide-zh-cn/html/*.html"]),
    ("chinese", "debian-faq-zh-cn", "Debian FAQ permission notice (copyleft)", "html",
     ["usr/share/doc/debian/FAQ/zh-cn/*.html"]),
    ("chinese", "manpages-zh", "GFDL-1.2+", "roff", ["usr/share/man/zh_CN/man*/*.gz"]),
    ("chinese", "libreoffice-help-zh-cn", "MPL-2.0", "html",
     ["usr/share/libreoffice/help/zh-CN/text/s[cihw]*/**/*.html"]),
    ("chinese", "fortunes-zh", "GPL-3+", "text",
     ["usr/share/games/fortunes/tang300", "usr/share/games/fortunes/song100",
      "usr/share/games/fortunes/chinese"]),
]
MAX_FILE = 400_000          # characters read from one file at most
MAX_PACKAGE = 1_500_000     # characters from one package in one domain at most
CHUNK = 8000                # characters (half for Chinese) in one document piece
HELD_OUT = 0.15             # share of the pieces set aside for recording
VOCAB = 4096

# One surrogate each.  "gate" softmax or sigmoid (bias-balanced, as DeepSeek-V3);
# groups/top_groups: group-limited routing; aux: weight of the balance loss.
SHAPES = {
    "8x2": dict(experts=8, top_k=2, serves=["mixtral-8x7b", "mixtral-8x22b"], layers=8,
                hidden=128, shared=0, dense=0, aux=0.02),
    "16x4": dict(experts=16, top_k=4, serves=["dbrx"], layers=8,
                 hidden=64, shared=0, dense=0, aux=0.01),
    "60x4": dict(experts=60, top_k=4, serves=["qwen1.5-moe"], layers=7,
                 hidden=48, shared=128, dense=0, aux=0.03),
    "64x6": dict(experts=64, top_k=6, serves=["deepseek-v2-lite", "deepseek-moe-16b"], layers=7,
                 hidden=32, shared=64, dense=1, aux=0.03),
    "160x6": dict(experts=160, top_k=6, serves=["deepseek-v2"], layers=6,
                  hidden=32, shared=64, dense=1, groups=8, top_groups=3, aux=0.015),
    "256x8": dict(experts=256, top_k=8, serves=["deepseek-v3"], layers=6,
                  hidden=24, shared=32, dense=1, groups=8, top_groups=4, gate="sigmoid",
                  aux=0.001, bias_rate=0.02),
}
D_MODEL = 128
HEADS = 4


# ---------------------------------------------------------------- text

def package_root(name, cache):
    root = os.path.join(cache, "packages", name)
    if not os.path.exists(os.path.join(root, ".version")):
        os.makedirs(root, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as tmp:
            subprocess.run(["apt-get", "-q", "download", name], cwd=tmp, check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            deb = glob.glob(os.path.join(tmp, "*.deb"))[0]
            subprocess.run(["dpkg-deb", "-x", deb, root], check=True)
            version = subprocess.run(["dpkg-deb", "-f", deb, "Version"], check=True,
                                     capture_output=True, text=True).stdout.strip()
        with open(os.path.join(root, ".version"), "w") as f:
            f.write(version)
    with open(os.path.join(root, ".version")) as f:
        return root, f.read().strip()


def plain(raw, kind):
    if kind == "html":
        raw = re.sub(r"(?is)<(script|style|head|nav|header|footer)\b.*?</\1\s*>", " ", raw)
        raw = re.sub(r"(?i)<(p|br|div|li|tr|h[1-6]|dt|dd|pre|table|ul|ol)\b[^>]*>", "\n", raw)
        raw = html.unescape(re.sub(r"(?s)<[^>]*>", "", raw))
    elif kind == "roff":
        lines = []
        for line in raw.split("\n"):
            if re.match(r"[.'](SH|SS|B|I|BR|BI|IR|IB|RB|RI|TP|IP)\b", line):
                line = line.split(" ", 1)[1] if " " in line else ""
            elif line[:1] in (".", "'"):
                continue
            lines.append(line)
        raw = re.sub(r"\\f.|\\s[-+]?\d|\\&|\\\*\([A-Za-z][A-Za-z]", "", "\n".join(lines))
        raw = re.sub(r"\\\((..)", lambda m: {"aq": "'", "co": "(c)"}.get(m.group(1), " "), raw)
        raw = raw.replace("\\-", "-").replace("\\e", "\\").replace("\\", "")
    raw = raw.replace("\r", "").replace("\xa0", " ")
    raw = re.sub(r"[ \t]+\n", "\n", raw)
    return re.sub(r"\n{3,}", "\n\n", raw).strip()


def pieces(text, size):
    """Cut at line ends into pieces of about `size` characters."""
    out, part, length = [], [], 0
    for line in text.split("\n"):
        part.append(line)
        length += len(line) + 1
        if length >= size:
            out.append("\n".join(part))
            part, length = [], 0
    if length > 300:
        out.append("\n".join(part))
    return out


def gather(cache):
    """-> {domain: (train pieces, held-out pieces)}, sources."""
    parts = {d: ([], []) for d in DOMAINS}
    sources = {}
    for domain, package, licence, kind, patterns in SOURCES:
        root, version = package_root(package, cache)
        sources[package] = {"package": package, "version": version, "licence": licence}
        files = sorted({f for p in patterns
                        for f in glob.glob(os.path.join(root, p), recursive=True)})
        names = [os.path.relpath(f, root) for f in files if os.path.isfile(f)]
        names.sort(key=lambda n: hashlib.sha1((package + n).encode()).digest())
        used = 0
        for name in names:
            if used > MAX_PACKAGE:
                break
            full = os.path.join(root, name)
            with (gzip.open(full, "rb") if name.endswith(".gz") else open(full, "rb")) as f:
                text = plain(f.read().decode("utf-8", "replace"), kind)[:MAX_FILE]
            if len(text) < 600:
                continue
            if domain == "chinese":
                han = sum(1 for c in text[:4000] if "\u4e00" <= c <= "\u9fff")
                if han < 0.15 * min(len(text), 4000):
                    continue
            used += len(text)
            for i, piece in enumerate(pieces(text, CHUNK // 2 if domain == "chinese" else CHUNK)):
                h = hashlib.sha1(f"{package}/{name}/{i}".encode()).digest()
                parts[domain][h[0] < HELD_OUT * 256].append(piece)
    for domain, (train, held) in parts.items():
        # Boilerplate (licence heads, repeated navigation) must not leak: drop
        # held-out pieces of which more than a fifth also stands in the train part.
        seen = {line.strip() for p in train for line in p.split("\n") if len(line.strip()) >= 24}

        def overlap(piece):
            lines = [x.strip() for x in piece.split("\n") if len(x.strip()) >= 24]
            return sum(len(x) for x in lines if x in seen) / max(1, sum(map(len, lines)))
        held[:] = [p for p in held if overlap(p) <= 0.2]
        order = random.Random(7)
        order.shuffle(train)
        order.shuffle(held)
    return parts, [sources[p] for p in sorted(sources)]


# ---------------------------------------------------------------- byte-pair tokens

WORD = re.compile(r" ?[A-Za-z]+| ?[0-9]{1,3}|[\u3400-\u9fff]{1,2}|[\u3000-\u303f\uff00-\uffef]"
                  r"| ?[^\sA-Za-z0-9\u3000-\u303f\u3400-\u9fff\uff00-\uffef]+|\n+|\s+")


def train_bpe(texts, vocab):
    count = {}
    for text in texts:
        for w in WORD.findall(text):
            count[w] = count.get(w, 0) + 1
    words, freq = [], []
    for w, c in sorted(count.items()):
        b = w.encode()
        if len(b) > 1 and c > 1:
            words.append(list(b[:24]))
            freq.append(c)
    pairs, where = {}, {}
    for i, w in enumerate(words):
        for p in zip(w, w[1:]):
            pairs[p] = pairs.get(p, 0) + freq[i]
            where.setdefault(p, set()).add(i)
    heap = [(-c, p) for p, c in pairs.items()]
    heapq.heapify(heap)
    merges = []
    while len(merges) < vocab - 256 and heap:
        c, p = heapq.heappop(heap)
        if pairs.get(p, 0) != -c or c == 0:
            continue
        new = 256 + len(merges)
        merges.append(p)
        changed = set()
        for i in sorted(where[p]):
            w = words[i]
            for q in zip(w, w[1:]):
                pairs[q] -= freq[i]
                changed.add(q)
            out, j = [], 0
            while j < len(w):
                if j + 1 < len(w) and (w[j], w[j + 1]) == p:
                    out.append(new)
                    j += 2
                else:
                    out.append(w[j])
                    j += 1
            words[i] = out
            for q in zip(out, out[1:]):
                pairs[q] = pairs.get(q, 0) + freq[i]
                where.setdefault(q, set()).add(i)
                changed.add(q)
        for q in changed:
            if pairs[q] > 0:
                heapq.heappush(heap, (-pairs[q], q))
    return merges


class Encoder:
    def __init__(self, merges):
        self.rank = {tuple(p): i for i, p in enumerate(merges)}
        self.cache = {}

    def word(self, w):
        ids = list(w.encode())
        while len(ids) > 1:
            best = min((self.rank.get(p, 1 << 30), p) for p in zip(ids, ids[1:]))
            if best[0] == 1 << 30:
                break
            out, j = [], 0
            while j < len(ids):
                if j + 1 < len(ids) and (ids[j], ids[j + 1]) == best[1]:
                    out.append(256 + best[0])
                    j += 2
                else:
                    out.append(ids[j])
                    j += 1
            ids = out
        return ids

    def encode(self, text):
        out = []
        for w in WORD.findall(text):
            ids = self.cache.get(w)
            if ids is None:
                ids = self.cache[w] = self.word(w)
            out += ids
        return out


def corpus(cache):
    """Token streams per domain, cached: train tokens, held-out pieces, sources."""
    os.makedirs(cache, exist_ok=True)
    key = hashlib.sha1(repr(([(s[0], s[1], s[3], s[4]) for s in SOURCES], MAX_FILE,
                             MAX_PACKAGE, CHUNK, HELD_OUT, VOCAB, WORD.pattern, 4)).encode()).hexdigest()[:12]
    path = os.path.join(cache, f"corpus-{key}.npz")
    if not os.path.exists(path):
        say("gathering text")
        parts, sources = gather(cache)
        sample = []
        for d in DOMAINS:
            n = 0
            for p in parts[d][0]:
                sample.append(p)
                n += len(p.encode())
                if n > 700_000:
                    break
        say("training byte-pair merges")
        merges = train_bpe(sample, VOCAB)
        enc = Encoder(merges)
        data = {"sources": np.array(json.dumps(sources)), "merges": np.array(merges, np.int32)}
        for i, d in enumerate(DOMAINS):
            train, held = [enc.encode(p) for p in parts[d][0]], [enc.encode(p) for p in parts[d][1]]
            data[f"train{i}"] = np.array([t for p in train for t in p], np.uint16)
            data[f"held{i}"] = np.array([t for p in held for t in p], np.uint16)
            data[f"held_len{i}"] = np.array([len(p) for p in held], np.int64)
            say(f"  {d}: {len(train)} train pieces, {data[f'train{i}'].size} tokens "
                f"({sum(len(p.encode()) for p in parts[d][0]) / data[f'train{i}'].size:.2f} bytes each); "
                f"{len(held)} held-out pieces, {data[f'held{i}'].size} tokens")
        atomic_npz(path, data)
    z = np.load(path)
    train = [z[f"train{i}"].astype(np.int64) for i in range(len(DOMAINS))]
    held = []
    for i in range(len(DOMAINS)):
        ends = np.cumsum(z[f"held_len{i}"])
        held.append(np.split(z[f"held{i}"].astype(np.int64), ends[:-1]))
    sources = json.loads(str(z["sources"]))
    licence = {s[1]: s[2] for s in SOURCES}
    for s in sources:
        s["licence"] = licence[s["package"]]
    return train, held, sources


def choose_requests(held, target, seed):
    """Excerpts of held-out pieces: each piece is used once at most."""
    rng = np.random.default_rng(seed + 1000)
    left = [list(rng.permutation(len(h))) for h in held]
    budget = [target / len(held)] * len(held)
    out = []
    for d in range(len(held)):
        while budget[d] > 32 and left[d]:
            want = int(np.clip(rng.lognormal(math.log(230), 0.75), 64, 1024))
            want = min(want, max(64, int(budget[d])))
            piece = held[d][left[d].pop()]
            if len(piece) < want + 1:
                want = len(piece) - 1
            if want < 64:
                continue
            start = int(rng.integers(0, len(piece) - want))
            out.append((d, piece[start:start + want + 1]))
            budget[d] -= want
    order = rng.permutation(len(out))
    return [out[i] for i in order]


# ---------------------------------------------------------------- model

def build(shape, window, embed_scale, torch):
    F = torch.nn.functional

    class Grouped(torch.autograd.Function):
        """Rows sorted by expert times that expert's matrix, without padding."""
        @staticmethod
        def forward(ctx, x, w, ends):
            y = x.new_empty(x.shape[0], w.shape[2])
            s = 0
            for e, t in enumerate(ends):
                if t > s:
                    torch.mm(x[s:t], w[e], out=y[s:t])
                s = t
            ctx.save_for_backward(x, w)
            ctx.ends = ends
            return y

        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            g = g.contiguous()
            dx, dw = torch.empty_like(x), torch.zeros_like(w)
            s = 0
            for e, t in enumerate(ctx.ends):
                if t > s:
                    torch.mm(g[s:t], w[e].t(), out=dx[s:t])
                    torch.mm(x[s:t].t(), g[s:t], out=dw[e])
                s = t
            return dx, dw, None

    def rms(x, g):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * g

    class Moe(torch.nn.Module):
        def __init__(self):
            super().__init__()
            E, d, h = shape["experts"], D_MODEL, shape["hidden"]
            self.router = torch.nn.Parameter(torch.randn(d, E) * 0.3 * d ** -0.5)
            self.w1 = torch.nn.Parameter(torch.randn(E, d, 2 * h) * d ** -0.5)
            self.w2 = torch.nn.Parameter(torch.randn(E, h, d) * 0.5 * h ** -0.5)
            self.register_buffer("bias", torch.zeros(E))
            if shape["shared"]:
                self.s1 = torch.nn.Linear(d, 2 * shape["shared"], bias=False)
                self.s2 = torch.nn.Linear(shape["shared"], d, bias=False)
            self.load = None

        def choose(self, x):
            E, k = shape["experts"], shape["top_k"]
            logits = x @ self.router
            sigmoid = shape.get("gate") == "sigmoid"
            score = torch.sigmoid(logits) if sigmoid else torch.softmax(logits, -1)
            pick = score.detach() + (self.bias if sigmoid else 0)
            groups = shape.get("groups")
            if groups:
                g = pick.view(-1, groups, E // groups)
                of_group = g.topk(2, -1)[0].sum(-1) if sigmoid else g.max(-1)[0]
                best = of_group.topk(shape["top_groups"], -1)[1]
                allow = torch.zeros_like(of_group, dtype=torch.bool).scatter_(1, best, True)
                pick = g.masked_fill(~allow.unsqueeze(-1), float("-inf")).view(-1, E)
            ids = pick.topk(k, -1, sorted=True)[1]
            return score, ids

        def forward(self, x):
            N, E, k = x.shape[0], shape["experts"], shape["top_k"]
            score, ids = self.choose(x)
            weight = score.gather(1, ids)
            weight = weight / (weight.sum(-1, keepdim=True) + 1e-9)
            flat = ids.reshape(-1)
            order = torch.sort(flat, stable=True)[1]
            load = torch.bincount(flat, minlength=E)
            ends = torch.cumsum(load, 0).tolist()
            token = torch.div(order, k, rounding_mode="floor")
            h = Grouped.apply(x[token], self.w1, ends)
            a, b = h.chunk(2, -1)
            y = Grouped.apply((F.silu(a) * b).contiguous(), self.w2, ends)
            y = y * weight.reshape(-1)[order].unsqueeze(1)
            out = torch.zeros_like(x).index_add_(0, token, y)
            if shape["shared"]:
                a, b = self.s1(x).chunk(2, -1)
                out = out + self.s2(F.silu(a) * b)
            part = load.to(x.dtype) / (N * k)
            prob = score / (score.sum(-1, keepdim=True) + 1e-9)
            balance = E * (part * prob.mean(0)).sum()
            self.load = part
            return out, balance, ids

    class Block(torch.nn.Module):
        def __init__(self, moe):
            super().__init__()
            d = D_MODEL
            self.g1 = torch.nn.Parameter(torch.ones(d))
            self.g2 = torch.nn.Parameter(torch.ones(d))
            self.qkv = torch.nn.Linear(d, 3 * d, bias=False)
            self.o = torch.nn.Linear(d, d, bias=False)
            torch.nn.init.normal_(self.o.weight, std=0.3 * d ** -0.5)
            self.moe = Moe() if moe else None
            if not moe:
                self.f1 = torch.nn.Linear(d, 4 * d, bias=False)
                self.f2 = torch.nn.Linear(2 * d, d, bias=False)

        def forward(self, x, rope, mask):
            B, T, d = x.shape
            q, k, v = (t.view(B, T, HEADS, -1).transpose(1, 2)
                       for t in self.qkv(rms(x, self.g1)).chunk(3, -1))
            cos, sin = rope

            def turn(t):
                a, b = t.chunk(2, -1)
                return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)
            att = turn(q) @ turn(k).transpose(-1, -2) * (d // HEADS) ** -0.5 + mask
            y = (torch.softmax(att, -1) @ v).transpose(1, 2).reshape(B, T, d)
            x = x + self.o(y)
            z = rms(x, self.g2).view(B * T, d)
            if self.moe is None:
                a, b = self.f1(z).chunk(2, -1)
                return x + self.f2(F.silu(a) * b).view(B, T, d), None, None
            y, balance, ids = self.moe(z)
            return x + y.view(B, T, d), balance, ids

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = torch.nn.Parameter(torch.randn(VOCAB, D_MODEL) * 0.02)
            self.blocks = torch.nn.ModuleList(
                [Block(i >= shape["dense"]) for i in range(shape["dense"] + shape["layers"])])
            self.g = torch.nn.Parameter(torch.ones(D_MODEL))

        def forward(self, tokens, targets):
            B, T = tokens.shape
            half = D_MODEL // HEADS // 2
            angle = (torch.arange(T).unsqueeze(1)
                     * torch.pow(10000.0, -torch.arange(half) / half).unsqueeze(0))
            rope = (angle.cos(), angle.sin())
            i = torch.arange(T)
            gap = i.unsqueeze(1) - i.unsqueeze(0)
            mask = torch.zeros(T, T).masked_fill((gap < 0) | (gap >= window), float("-inf"))
            x = self.embed[tokens] * embed_scale
            balance, ids = 0.0, []
            for b in self.blocks:
                x, bal, id_ = b(x, rope, mask)
                if bal is not None:
                    balance = balance + bal
                    ids.append(id_)
            logits = rms(x, self.g).view(B * T, -1) @ self.embed.t()
            loss = F.cross_entropy(logits, targets.reshape(-1), reduction="none")
            return loss, balance, ids

    return Model()


def run_requests(model, requests, torch):
    """Teacher-forced pass over each request alone -> ids [layers, tokens, k], losses."""
    ids, loss = [], []
    with torch.no_grad():
        for _, seq in requests:
            t = torch.from_numpy(seq)
            l, _, chosen = model(t[:-1].unsqueeze(0), t[1:].unsqueeze(0))
            ids.append(np.stack([c.numpy() for c in chosen]).astype(np.uint16))
            loss.append(float(l.mean()))
    return np.concatenate(ids, 1), np.array(loss)


def by_domain(requests, losses):
    out = {}
    for i, d in enumerate(DOMAINS):
        n = np.array([len(s) - 1 for x, s in requests if x == i])
        v = np.array([l for (x, _), l in zip(requests, losses) if x == i])
        out[d] = round(float((n * v).sum() / n.sum()), 4) if n.size else None
    return out


def make(name, args, data):
    import torch
    shape = dict(SHAPES[name])
    if args.aux is not None:
        shape["aux"] = args.aux
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    train, held, sources = data
    requests = choose_requests(held, args.tokens, args.seed)
    model = build(shape, args.window, args.embed_scale, torch)
    params = sum(p.numel() for p in model.parameters())
    plain_, decay = [], []
    for p in model.parameters():
        (decay if p.dim() > 1 else plain_).append(p)
    opt = torch.optim.AdamW([{"params": decay, "weight_decay": 0.05},
                             {"params": plain_, "weight_decay": 0.0}],
                            lr=args.lr, betas=(0.9, 0.95), foreach=True)
    _, before = run_requests(model, requests, torch)
    say(f"{name}: {params / 1e6:.1f} M parameters, {len(requests)} requests, "
        f"{sum(len(s) - 1 for _, s in requests)} tokens; held-out loss before {by_domain(requests, before)}")
    started, curve, window = time.time(), [], []
    for step in range(args.steps):
        warm = max(1, min(50, args.steps // 10))
        lr = args.lr * min(1.0, (step + 1) / warm) * (
            0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * step / args.steps)))
        for g in opt.param_groups:
            g["lr"] = lr
        rows = []
        for b in range(args.batch):
            stream = train[int(rng.integers(len(train)))]
            s = int(rng.integers(stream.size - args.length - 1))
            rows.append(stream[s:s + args.length + 1])
        t = torch.from_numpy(np.stack(rows))
        loss, balance, _ = model(t[:, :-1], t[:, 1:])
        mean = loss.mean()
        (mean + shape["aux"] * balance).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad(set_to_none=True)
        if shape.get("gate") == "sigmoid":
            # Bias balancing: raise the selection bias of experts that were under-used.
            for b in model.blocks:
                if b.moe is not None:
                    mean_load = 1.0 / shape["experts"]
                    b.moe.bias += shape["bias_rate"] * lr / args.lr * torch.sign(mean_load - b.moe.load)
        window.append(float(mean))
        if step == 0 or (step + 1) % 50 == 0 or step + 1 == args.steps:
            curve.append([step + 1, round(float(np.mean(window)), 4)])
            window = []
            say(f"{name}: step {step + 1}/{args.steps} loss {curve[-1][1]:.3f} "
                f"balance {float(balance) / shape['layers']:.3f} {(time.time() - started) / (step + 1):.2f} s/step")
    ids, losses = run_requests(model, requests, torch)
    lengths = [len(s) - 1 for _, s in requests]
    sequence = np.repeat(np.arange(len(requests), dtype=np.int32), lengths)
    position = np.concatenate([np.arange(n, dtype=np.int32) for n in lengths])
    phase = np.concatenate([(np.arange(n) >= n - n // 2).astype(np.uint8) for n in lengths])
    gate = shape.get("gate", "softmax")
    meta = {
        "schema": SCHEMA, "model": f"surrogate-{name}", "layers": int(ids.shape[0]),
        "experts": shape["experts"], "top_k": shape["top_k"], "tokens": int(ids.shape[1]),
        "origin": "recorded",
        "recorded_from": "small MoE language model trained by tools/surrogate/record.py",
        "serves": shape["serves"], "domains": DOMAINS,
        "sequence_domain": [int(d) for d, _ in requests],
        "training": {
            "steps": args.steps, "batch": args.batch, "length": args.length, "seed": args.seed,
            "tokens_seen": args.steps * args.batch * args.length,
            "parameters": params, "d_model": D_MODEL, "heads": HEADS, "attention_window": args.window,
            "embed_scale": args.embed_scale,
            "dense_layers_first": shape["dense"], "expert_hidden": shape["hidden"],
            "shared_expert_hidden": shape["shared"], "vocabulary": VOCAB,
            "tokenizer": "byte-level BPE trained on the train part", "learning_rate": args.lr,
            "gate": gate, "gate_weights": "renormalised over the chosen experts",
            "groups": shape.get("groups"), "top_groups": shape.get("top_groups"),
            "balance": ("selection bias, step by sign of load error, rate "
                        f"{shape['bias_rate']} falling with the learning rate, plus a small loss" if gate == "sigmoid"
                        else "Switch/GShard auxiliary loss over the batch"),
            "balance_loss_weight": shape["aux"],
            "loss_first": curve[0][1], "loss_last": curve[-1][1], "loss_curve": curve,
            "held_out_loss_before": by_domain(requests, before),
            "held_out_loss_after": by_domain(requests, losses),
            "torch": torch.__version__.split("+")[0],
        },
        "sources": sources,
        "note": ("Surrogate: same expert count, top-k and kind of balancing as the models under "
                 "'serves', but recorded from a small model, not from them. Requests are excerpts "
                 "of text held out from training, run teacher-forced, each alone; phase marks the "
                 "second half of each request as decode although its tokens are real text and not "
                 "sampled. Ids stand best first by the score the router selects on. Shared experts "
                 "and leading dense layers are not recorded."),
    }
    os.makedirs(args.out, exist_ok=True)
    path = os.path.join(args.out, f"surrogate-{name}.npz")
    atomic_npz(path, {"topk_ids": ids, "sequence_id": sequence, "position": position,
                      "phase": phase, "meta": np.array(json.dumps(meta, ensure_ascii=True))})
    say(f"{name}: held-out loss after {meta['training']['held_out_loss_after']}; "
        f"{os.path.getsize(path) / 1e6:.2f} MB in {time.time() - started:.0f} s")
    return path


# ---------------------------------------------------------------- statistics

def gini(x):
    x = np.sort(x.astype(float))
    n = x.size
    return float((2 * np.arange(1, n + 1) - n - 1).dot(x) / (n * x.sum()))


def corr(a, b):
    if a.std() == 0 or b.std() == 0:
        return float("nan")
    return float(np.corrcoef(a, b)[0, 1])


def check(z):
    """Verify a trace file's arrays against its meta; raises on any fault."""
    meta = json.loads(str(z["meta"]))
    ids, seq, pos, phase = z["topk_ids"], z["sequence_id"], z["position"], z["phase"]
    L, T, k = ids.shape
    assert meta["schema"] == SCHEMA and ids.dtype == np.uint16
    assert (meta["layers"], meta["tokens"], meta["top_k"]) == (L, T, k)
    assert seq.dtype == np.int32 and pos.dtype == np.int32 and phase.dtype == np.uint8
    assert seq.shape == pos.shape == phase.shape == (T,)
    assert int(ids.max()) < meta["experts"]
    s = np.sort(ids, -1)
    assert not (s[..., 1:] == s[..., :-1]).any(), "an expert chosen twice"
    assert seq[0] == 0 and set(np.unique(np.diff(seq))) <= {0, 1}
    new = np.r_[True, np.diff(seq) > 0]
    assert (pos[new] == 0).all() and (np.diff(pos)[~new[1:]] == 1).all()
    assert len(meta["sequence_domain"]) == int(seq[-1]) + 1
    assert set(np.unique(phase)) <= {0, 1}
    return meta


def measure(path):
    z = np.load(path)
    meta = check(z)
    ids, seq = z["topk_ids"], z["sequence_id"]
    E = meta["experts"]
    L, T, k = ids.shape
    dom = np.array(meta["sequence_domain"])[seq]
    top = math.ceil(0.1 * E)
    rows = []
    for l in range(L):
        def count(sel):
            return np.bincount(ids[l][sel].reshape(-1), minlength=E).astype(float)
        load = count(slice(None))
        each = [count(dom == d) for d in range(len(meta["domains"])) if (dom == d).any()]
        pair = [corr(each[i], each[j]) for i in range(len(each)) for j in range(i)]

        def windows(w):
            c = [count(slice(i, i + w)) for i in range(0, T - w + 1, w)]
            return float(np.nanmean([corr(a, b) for a, b in zip(c, c[1:])]))
        hit = (ids[l][1:, :, None] == ids[l][:-1, None, :]).any(-1).mean(-1)
        rows.append({
            "top": np.sort(load)[::-1][:top].sum() / load.sum(),
            "max_mean": load.max() / load.mean(), "gini": gini(load),
            "dead": int((load == 0).sum()),
            "domain_max_mean": float(np.mean([c.max() / c.mean() for c in each])),
            "domain_gini": float(np.mean([gini(c) for c in each])),
            "domain_corr": float(np.mean(pair)), "domain_corr_min": float(np.min(pair)),
            "w512": windows(512), "w2048": windows(2048),
            "reuse": float(hit[seq[1:] == seq[:-1]].mean()),
        })
    return meta, rows


COLUMNS = [("top-10%", "top", 3), ("max/mean", "max_mean", 2), ("gini", "gini", 3),
           ("unused", "dead", 0), ("dom max/mean", "domain_max_mean", 2),
           ("dom gini", "domain_gini", 3), ("dom corr", "domain_corr", 2),
           ("lowest pair", "domain_corr_min", 2), ("win 512", "w512", 2),
           ("win 2048", "w2048", 2), ("next-token reuse", "reuse", 2)]


def print_stats(path):
    meta, rows = measure(path)
    print(f"{os.path.basename(path)}: {meta['layers']} layers, {meta['experts']} experts, "
          f"top-{meta['top_k']}, {meta['tokens']} tokens, {len(meta['sequence_domain'])} requests, "
          f"{os.path.getsize(path) / 1e6:.2f} MB")
    print("  layer " + " ".join(f"{c[0]:>12}" for c in COLUMNS))
    for i, r in enumerate(rows):
        print(f"  {i:>5} " + " ".join(f"{r[c[1]]:>12.{c[2]}f}" for c in COLUMNS))
    for label, f in (("min", np.min), ("med", np.median), ("max", np.max)):
        print(f"  {label:>5} " + " ".join(
            f"{f([r[c[1]] for r in rows]):>12.{c[2]}f}" for c in COLUMNS))


# ---------------------------------------------------------------- main

def say(text):
    print(text, file=sys.stderr, flush=True)


def atomic_npz(path, arrays):
    fd, tmp = tempfile.mkstemp(suffix=".npz", prefix=".tmp-", dir=os.path.dirname(path) or ".")
    os.close(fd)
    try:
        np.savez_compressed(tmp, **arrays)
        os.chmod(tmp, 0o644)
        os.replace(tmp, path)
    except BaseException:
        os.unlink(tmp)
        raise


def prepare(threads):
    """Start over with a malloc that keeps large blocks, and with OpenBLAS's own thread count set."""
    if "MALLOC_TRIM_THRESHOLD_" not in os.environ:
        os.environ.update(MALLOC_MMAP_THRESHOLD_="4000000000", MALLOC_TRIM_THRESHOLD_="8000000000",
                          MALLOC_TOP_PAD_="100000000", OPENBLAS_NUM_THREADS=str(threads),
                          OMP_NUM_THREADS=str(threads))
        os.execv(sys.executable, [sys.executable, *sys.argv])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--only", action="append", choices=sorted(SHAPES), help="this shape only (repeatable)")
    p.add_argument("--steps", type=int, default=700)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--out", default="traces")
    p.add_argument("--cache", default=os.path.expanduser("~/.cache/sojourn-surrogate"))
    p.add_argument("--tokens", type=int, default=28000, help="tokens to record (about)")
    p.add_argument("--batch", type=int, default=8)
    p.add_argument("--length", type=int, default=128)
    p.add_argument("--lr", type=float, default=3e-3)
    p.add_argument("--window", type=int, default=128,
                   help="sliding attention window, so that longer requests stay in range")
    p.add_argument("--embed-scale", type=float, default=32.0)
    p.add_argument("--aux", type=float, help="weight of the balance loss instead of the shape's own")
    p.add_argument("--stats", metavar="FILE", nargs="+", help="print statistics of traces and stop")
    p.add_argument("--list-packages", action="store_true")
    args = p.parse_args()
    if args.list_packages:
        for package in sorted({s[1] for s in SOURCES}):
            print(package)
        return
    if args.stats:
        for f in args.stats:
            print_stats(f)
        return
    prepare(args.threads)
    data = corpus(args.cache)
    for name in args.only or SHAPES:
        print_stats(make(name, args, data))


if __name__ == "__main__":
    main()
