// The window bound against random windows: layers that share a package's banks, shards and copies anywhere, banks as
// large as their contents (the tightest capacity the bound may assume), both network models.
#include <map>

#include "bound/bound.h"
#include "moe/closed_form.h"
#include "random_package.h"

using namespace kit;

namespace {

struct RandomWindow {
  std::vector<Layer> layers;
  std::vector<std::vector<int>> demand, sources;  ///< [layer][expert], [layer][chiplet * experts + expert]
  std::vector<std::vector<int>> expert;           ///< [layer][job]
  BoundRules rules;
};

/// Every expert of every layer is placed, active or not: `rules.set_bytes` is what that takes.
RandomWindow random_window(const Package& p, Rng& rng) {
  RandomWindow w;
  const int layers = 1 + static_cast<int>(rng.below(4)), experts = 1 + static_cast<int>(rng.below(6));
  const int copies_max = 1 + static_cast<int>(rng.below(3));
  const bool balanced = rng.below(2);  // shards walk over the locations in turn: closer to the bound
  BoundRules& r = w.rules;
  r.expert_bytes = static_cast<Bytes>(1 + rng.below(4000));
  r.token_bytes = static_cast<Bytes>(1 + rng.below(40));
  r.macs_per_token = static_cast<Macs>(rng.below(3) == 0 ? 0 : rng.below(300));
  r.combine_macs_per_token = static_cast<Macs>(rng.below(10));
  r.layers = layers;
  r.replicas_max = copies_max;
  r.set_bytes.assign(p.bank_sets.size(), 0);
  std::vector<Location> places;
  for (int t = 0; t < kTiers; ++t)
    for (int c = 0; c < p.compute_count; ++c)
      for (int s : p.visible(static_cast<Tier>(t), c)) places.push_back({static_cast<Tier>(t), c, s});
  std::size_t turn = rng.below(places.size());
  for (int l = 0; l < layers; ++l) {
    Layer layer;
    std::vector<int> expert;
    layer.work.expert_bytes = r.expert_bytes;
    layer.work.token_bytes = r.token_bytes;
    layer.work.macs_per_token = r.macs_per_token;
    layer.work.combine_macs_per_token = r.combine_macs_per_token;
    layer.work.gate = static_cast<Ps>(rng.below(20'000));
    layer.work.throttle = rng.below(6) == 0 ? static_cast<int>(100 + rng.below(900)) : 1024;
    std::vector<int> demand(static_cast<std::size_t>(experts), 0);
    std::vector<int> sources(static_cast<std::size_t>(experts * p.compute_count), 0);
    const bool same = rng.below(2);  // one count for all: work divides evenly
    const int even = 1 + static_cast<int>(rng.below(30));
    for (int e = 0; e < experts; ++e) {
      const bool active = rng.below(4) > 0;
      const int copies = 1 + static_cast<int>(rng.below(static_cast<std::uint64_t>(copies_max)));
      std::vector<std::vector<std::pair<int, int>>> pieces(static_cast<std::size_t>(copies));
      for (int c = 0; active && c < p.compute_count; ++c) {
        if (!same && rng.below(2)) continue;
        const int n = same ? even : 1 + static_cast<int>(rng.below(40));
        const int own = static_cast<int>(rng.below(static_cast<std::uint64_t>(copies)));
        const int part = rng.below(2) ? n : 1 + static_cast<int>(rng.below(static_cast<std::uint64_t>(n)));
        pieces[own].emplace_back(c, part);
        if (n > part) pieces[(own + 1) % copies].emplace_back(c, n - part);
        demand[e] += n;
        sources[c * experts + e] += n;
      }
      for (const auto& own : pieces) {
        for (int first = 0; first < kSlices;) {
          const int run = balanced ? 1 + static_cast<int>(rng.below(4)) : 1 + static_cast<int>(rng.below(kSlices));
          const int count = std::min(kSlices - first, run);
          const Location at = balanced ? places[turn++ % places.size()] : places[rng.below(places.size())];
          const Slice slice{static_cast<std::uint8_t>(first), static_cast<std::uint8_t>(count)};
          const int banks = p.bank_sets[at.bank_set].count;
          r.set_bytes[at.bank_set] += banks * ((slice.of(r.expert_bytes) + banks - 1) / banks);
          first += count;
          if (own.empty()) continue;
          const int job = layer.job(at.tier, at.chiplet, at.bank_set);
          layer.jobs[job].slice = slice;
          expert.push_back(e);
          for (const auto& [source, n] : own) layer.piece(job, source, n);
        }
      }
    }
    w.layers.push_back(std::move(layer));
    w.expert.push_back(std::move(expert));
    w.demand.push_back(std::move(demand));
    w.sources.push_back(std::move(sources));
  }
  return w;
}

/// The same placement in a window that leaves some experts idle.
RandomWindow with_idle(const Package& p, const RandomWindow& w, Rng& rng) {
  RandomWindow out = w;
  const std::uint64_t share = 1 + rng.below(6);
  for (std::size_t l = 0; l < w.layers.size(); ++l) {
    const std::size_t experts = w.demand[l].size();
    std::vector<int> kept(w.layers[l].jobs.size(), -1);
    out.layers[l].jobs.clear();
    out.layers[l].pieces.clear();
    std::vector<char> idle(experts);
    for (std::size_t e = 0; e < experts; ++e) {
      idle[e] = rng.below(8) < share;
      if (!idle[e]) continue;
      out.demand[l][e] = 0;
      for (int c = 0; c < p.compute_count; ++c) out.sources[l][c * experts + e] = 0;
    }
    for (std::size_t j = 0; j < kept.size(); ++j) {
      if (idle[w.expert[l][j]]) continue;
      const Job& job = w.layers[l].jobs[j];
      kept[j] = out.layers[l].job(job.at.tier, job.at.chiplet, job.at.bank_set);
      out.layers[l].jobs[kept[j]].slice = job.slice;
    }
    for (const Piece& piece : w.layers[l].pieces)
      if (kept[piece.job] >= 0) out.layers[l].piece(kept[piece.job], piece.source, piece.tokens);
  }
  return out;
}

WindowBound add_window(const Package& p, Bound& bound, const RandomWindow& w) {
  for (std::size_t l = 0; l < w.layers.size(); ++l) {
    BoundDemand d;
    d.demand = &w.demand[l];
    d.sources = &w.sources[l];
    d.aggregated.assign(p.compute_count, 0);
    for (const Piece& piece : w.layers[l].pieces) d.aggregated[piece.source] += piece.tokens;
    d.gate = w.layers[l].work.gate;
    bound.add(d);
  }
  return bound.window();
}

WindowBound bound_of(const Package& p, const TierRates& rates, RandomWindow& w, bool events) {
  w.rules.events = events;
  Bound bound(p, rates, w.rules);
  return add_window(p, bound, w);
}

}  // namespace

TEST_CASE("windows: the bound is below every execution, in both network models") {
  std::int64_t windows = 0;
  std::map<BoundResource, int> by;
  double closest = 0;
  CHECK(rc::check("random windows", [&] {
    const Package p = random_package(1 << 20);
    const TierRates rates = tier_rates(p);
    Rng rng(static_cast<std::uint64_t>(pick(0, 1 << 20)), "windows");
    for (int i = 0; i < 12; ++i) {
      RandomWindow w = random_window(p, rng);
      Listener listener;
      Executor ex(p, listener);
      Ps took = 0, closed = 0;
      for (Layer& layer : w.layers) {
        const LayerOutcome out = ex.run_layer(layer.ready());
        took += out.end - out.start;
        Ledger ledger(p);
        closed += closed_layer(p, layer.work, {}, 0, ledger).end;
      }
      const WindowBound bound = bound_of(p, rates, w, true);
      RC_ASSERT(bound.latency <= took);
      RC_ASSERT(bound.resources.size() == w.layers.size());
      RC_ASSERT(bound_of(p, rates, w, false).latency <= closed);
      for (const BoundResource r : bound.resources) ++by[r];
      closest = std::max(closest, static_cast<double>(bound.latency) / static_cast<double>(std::max<Ps>(1, took)));
      ++windows;
    }
  }));
  std::string share;
  for (const auto& [r, n] : by) share += fmt::format(", {} {}", kBoundResourceNames[static_cast<std::size_t>(r)], n);
  MESSAGE(windows << " windows, closest " << closest << share);
}

TEST_CASE("runs: with one residency for all windows, the bound is above the windows' own and below every execution") {
  int tighter = 0, runs = 0;
  double gain = 1;
  CHECK(rc::check("random runs", [&] {
    const Package p = random_package(1 << 20);
    const TierRates rates = tier_rates(p);
    Rng rng(static_cast<std::uint64_t>(pick(0, 1 << 20)), "runs");
    for (int i = 0; i < 5; ++i) {
      const RandomWindow first = random_window(p, rng);
      Bound bound(p, rates, first.rules);
      Listener listener;
      Executor ex(p, listener);
      Ps took = 0, windows = 0;
      const int count = 2 + static_cast<int>(rng.below(4));
      for (int w = 0; w < count; ++w) {
        RandomWindow window = with_idle(p, first, rng);
        for (Layer& layer : window.layers) {
          const LayerOutcome out = ex.run_layer(layer.ready());
          took += out.end - out.start;
        }
        windows += add_window(p, bound, window).latency;
      }
      const Ps run = bound.run().latency;
      RC_ASSERT(run >= windows);
      RC_ASSERT(run <= took);
      ++runs;
      tighter += run > windows;
      gain = std::max(gain, static_cast<double>(run) / static_cast<double>(std::max<Ps>(1, windows)));
    }
  }));
  MESSAGE(tighter << " of " << runs << " runs tighter, by up to " << gain);
  CHECK(tighter > runs / 50);
}

TEST_CASE("tier rates: links cap what IO chiplets deliver, and tiers without them add up") {
  Builder b(2, 1);
  b.both(0, 1, 10 * kGB, 0);
  b.both(2, 0, kGB, 0);
  b.banks(Tier::hbm, 0, 2, 100, 3 * kGB);
  b.banks(Tier::hbm, 1, 2, 100, 3 * kGB);
  b.banks(Tier::dram, 2, 4, 1'000, 2 * kGB);
  const TierRates r = tier_rates(b.build());
  CHECK(r.bytes_per_s[2] == doctest::Approx(12e9));
  CHECK(r.bytes_per_s[4] == doctest::Approx(1e9));  // 8 GB/s of banks behind one link of 1 GB/s
  CHECK(r.bytes_per_s[6] == doctest::Approx(13e9));
  CHECK_FALSE(r.links[2]);
  CHECK(r.links[4]);
}
