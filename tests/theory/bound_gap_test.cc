// How close the lower bound comes to the true optimum: every placement of tiny windows through the real executor. An
// expert is cut into eighths over any of the places, or held whole on both chiplets with each token served where it
// is; layers share the banks. The best of all of them is at or above the bound, and not far above.
#include <fmt/format.h>

#include <array>
#include <map>

#include "base/rng.h"
#include "bound/bound.h"
#include "kit.h"
#include "package/load.h"

using namespace kit;

namespace {

constexpr int kChiplets = 2, kPlaces = 4, kParts = 8;  // places: chiplet x (HBM, DRAM)

struct Tiny {
  Package package;
  LayerWork work;
  int layers = 1;
  std::vector<std::array<std::array<int, kChiplets>, 2>> tokens;  ///< [layer][expert][source]
  std::array<Bytes, 3> room{};                                    ///< HBM of c0, HBM of c1, DRAM
};

Tiny tiny(std::uint64_t seed) {
  Rng rng(seed, "bound.gap");
  Tiny t;
  t.layers = 1 + static_cast<int>(rng.below(2));
  Builder b(kChiplets, 1, 4);
  b.p.chunk_bytes = 512;
  b.p.weight_tiles = 8;
  b.both(0, 1, 64 * kGB, 2'000);
  b.both(2, 0, 32 * kGB, 2'000);
  b.both(2, 1, 32 * kGB, 2'000);
  t.work.expert_bytes = 16'000;
  t.work.token_bytes = 16;
  t.work.macs_per_token = static_cast<Macs>(20 + rng.below(700));
  t.work.combine_macs_per_token = 8;
  t.work.gate = 1'000;
  const Bytes near = t.work.expert_bytes * static_cast<Bytes>(1 + rng.below(6)) / 4;
  t.room = {near, near, 8 * t.work.expert_bytes};
  const std::uint64_t hbm = (2 + rng.below(6)) * kGB;
  for (int c = 0; c < kChiplets; ++c) b.banks(Tier::hbm, c, 2, near / 2, hbm, 5'000);
  b.banks(Tier::dram, 2, 2, t.room[2] / 2, (1 + rng.below(4)) * kGB, 8'000);
  t.package = b.build();
  for (int l = 0; l < t.layers; ++l) {
    t.tokens.emplace_back();
    for (auto& expert : t.tokens.back())
      for (int& n : expert) n = 4 * static_cast<int>(1 + rng.below(6));
  }
  return t;
}

/// How one expert is held: parts at each place, or (copy) whole at one place of each chiplet.
struct Way {
  std::array<int, kPlaces> parts{};
  bool copy = false;
};

std::vector<Way> ways() {
  std::vector<Way> all;
  for (int a = 0; a <= kParts; ++a)
    for (int b = 0; a + b <= kParts; ++b)
      for (int c = 0; a + b + c <= kParts; ++c) all.push_back({{a, b, c, kParts - a - b - c}, false});
  for (int a = 0; a < 2; ++a)
    for (int b = 0; b < 2; ++b) {
      Way w;
      w.copy = true;
      w.parts[a] = w.parts[2 + b] = kParts;
      all.push_back(w);
    }
  return all;
}

Location place(int i) { return i % 2 == 0 ? Location{Tier::hbm, i / 2, i / 2} : Location{Tier::dram, i / 2, 2}; }

struct Outcome {
  Ps latency = 0;
  std::array<Bytes, 3> held{};
};

Outcome execute(const Tiny& t, int l, const std::array<const Way*, 2>& way) {
  Layer layer;
  layer.work = t.work;
  Outcome out;
  for (int e = 0; e < 2; ++e) {
    int first = 0;
    for (int i = 0; i < kPlaces; ++i) {
      const int n = way[e]->parts[i];
      if (n == 0) continue;
      const Location at = place(i);
      const int job = layer.job(at.tier, at.chiplet, at.bank_set);
      const int step = kSlices / kParts;
      layer.jobs[job].slice = {static_cast<std::uint8_t>(way[e]->copy ? 0 : first * step),
                               static_cast<std::uint8_t>(n * step)};
      first += n;
      out.held[at.bank_set] += t.work.expert_bytes * n / kParts;
      for (int s = 0; s < kChiplets; ++s)
        if (!way[e]->copy || s == at.chiplet) layer.piece(job, s, t.tokens[l][e][s]);
    }
  }
  Listener listener;
  Executor ex(t.package, listener);
  out.latency = ex.run_layer(layer.ready()).end;
  return out;
}

Ps best_window(const Tiny& t) {
  const std::vector<Way> all = ways();
  // The best window over the layers so far, by what it holds.
  std::map<std::array<Bytes, 3>, Ps> windows{{{}, 0}};
  for (int l = 0; l < t.layers; ++l) {
    std::map<std::array<Bytes, 3>, Ps> layer, next;
    const auto keep = [](auto& into, const std::array<Bytes, 3>& held, Ps latency) {
      const auto [it, fresh] = into.try_emplace(held, latency);
      if (!fresh) it->second = std::min(it->second, latency);
    };
    for (const Way& a : all)
      for (const Way& b : all) {
        const Outcome o = execute(t, l, {&a, &b});
        keep(layer, o.held, o.latency);
      }
    for (const auto& [held, latency] : windows)
      for (const auto& [more, time] : layer) {
        std::array<Bytes, 3> sum{};
        bool fits = true;
        for (std::size_t s = 0; s < 3; ++s) {
          sum[s] = held[s] + more[s];
          fits = fits && sum[s] <= t.room[s];
        }
        if (fits) keep(next, sum, latency + time);
      }
    windows = std::move(next);
  }
  Ps best = -1;
  for (const auto& [held, latency] : windows) best = best < 0 ? latency : std::min(best, latency);
  return best;
}

WindowBound bound_of(const Tiny& t) {
  BoundRules r;
  r.expert_bytes = t.work.expert_bytes;
  r.token_bytes = t.work.token_bytes;
  r.macs_per_token = t.work.macs_per_token;
  r.combine_macs_per_token = t.work.combine_macs_per_token;
  r.layers = t.layers;
  r.replicas_max = 2;
  r.set_bytes.assign(t.room.begin(), t.room.end());
  const TierRates rates = tier_rates(t.package);
  Bound bound(t.package, rates, r);
  for (int l = 0; l < t.layers; ++l) {
    std::vector<int> demand(2), sources(4);
    BoundDemand d;
    d.demand = &demand;
    d.sources = &sources;
    d.aggregated.assign(kChiplets, 0);
    d.gate = t.work.gate;
    for (int e = 0; e < 2; ++e)
      for (int s = 0; s < kChiplets; ++s) {
        demand[e] += t.tokens[l][e][s];
        sources[s * 2 + e] = t.tokens[l][e][s];
        d.aggregated[s] += t.tokens[l][e][s];
      }
    bound.add(d);
  }
  return bound.window();
}

}  // namespace

TEST_CASE("the bound against the best of every placement of tiny windows") {
  double sum = 0, most = 0;
  const int cases = 20;
  std::string each;
  for (int i = 0; i < cases; ++i) {
    const Tiny t = tiny(static_cast<std::uint64_t>(i));
    const Ps best = best_window(t);
    const WindowBound bound = bound_of(t);
    REQUIRE(best > 0);
    CHECK(bound.latency <= best);
    const double gap = static_cast<double>(best) / static_cast<double>(bound.latency) - 1;
    sum += gap;
    most = std::max(most, gap);
    each += fmt::format("\n  {} layers, {}: best {} ps, bound {} ps, gap {:.1f} %", t.layers,
                        kBoundResourceNames[static_cast<std::size_t>(bound.resources.front())], best, bound.latency,
                        100 * gap);
  }
  MESSAGE("mean gap " << 100 * sum / cases << " %, largest " << 100 * most << " %" << each);
  CHECK(sum / cases < 0.09);
}

TEST_CASE("the worked example of docs/engine.md: 64 tokens for one expert of mixtral-8x7b") {
  const Result<Package> p = load_package("hcrmap-table1", {SOJOURN_SOURCE_DIR "/packages"});
  REQUIRE(p);
  BoundRules r;
  r.expert_bytes = r.macs_per_token = 176'160'768;
  r.token_bytes = 8'192;
  r.combine_macs_per_token = 4'096;
  r.replicas_max = 4;
  for (const BankSet& s : p->bank_sets) r.set_bytes.push_back(s.usable);
  const std::vector<int> demand{64};
  BoundDemand d;
  d.demand = &demand;
  d.aggregated.assign(16, 0);
  d.aggregated[0] = 64;
  d.gate = 132'000;
  const WindowBound bound = layer_bound(*p, r, d);
  CHECK(bound.latency == 193'246'333);
  CHECK(bound.resources.front() == BoundResource::compute);
}
