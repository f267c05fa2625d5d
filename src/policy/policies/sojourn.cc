// sojourn: our policy. Experts are cut into shards as finely as pays, laid out by cost, and read from all tiers at
// once.
//
// See docs/sojourn-policy.md for the design and shard_plan.h for the layout. theta is chosen by rehearsing candidate
// layouts on warm-up windows that they were not made from (rehearsal.h).
#include <cmath>
#include <numeric>

#include "policy/rehearsal.h"
#include "policy/shard_plan.h"

namespace sojourn {
namespace {

struct Settings {
  std::int64_t degree;  ///< 0: by cost
  double slack, level_above;
  int rehearsals;
};

class SojournPolicy final : public Policy {
 public:
  explicit SojournPolicy(const Settings& s) : s_(s) {}

  void place(const PlacementTask& task, std::vector<PlacedReplica>& out) override {
    const CostModel cost(*task.package, *task.model);
    const Teams teams(*task.package);
    const Profile& p = *task.profile;
    const SplitRule rule{choose_theta(task, cost, teams), s_.level_above};
    for (const Shard& s : plan_shards(task, cost, teams, mean_demand(p, -1), rule))
      out.push_back({s.layer, s.expert, s.at, s.slice});
  }

  void assign(const PolicyView& view, const LayerTask& task, std::vector<Assignment>& out) override {
    map_to_all_shards(*view.directory, task, out);
  }

 private:
  /// Mean demand of the warm-up windows of one fold (even or odd ones), or of all (-1).
  static DemandTable mean_demand(const Profile& p, int fold) {
    DemandTable t{p.layers, p.experts, {}};
    for (int l = 0; l < p.layers; ++l)
      for (int e = 0; e < p.experts; ++e) {
        if (fold < 0) {
          t.of.push_back(demand_of(p, l, e));
          continue;
        }
        Demand d;
        int n = 0;
        for (int w = fold; w < p.windows; w += 2, ++n) {
          const double x = p.window(l, w)[static_cast<size_t>(e)];
          d.tokens += x;
          d.active += x > 0;
        }
        t.of.push_back({d.tokens / n, d.active / n});
      }
    return t;
  }

  struct Candidate {
    double theta = 0, predicted = 0, measured = 0;
    std::vector<Shard> shards;
  };

  /// theta: candidate layouts are made from one fold of the warm-up windows and rehearsed on windows of the other. A
  /// candidate whose predicted time (resources alone) is above the best rehearsed one is not rehearsed. Of those within
  /// `slack` of the best the coarsest is taken.
  [[nodiscard]] double choose_theta(const PlacementTask& task, const CostModel& cost, const Teams& teams) const {
    const Profile& p = *task.profile;
    const auto theta_of = [&](double degree) { return static_cast<double>(cost.chiplets()) / p.experts / degree; };
    if (s_.degree > 0) return theta_of(static_cast<double>(s_.degree));
    const bool folds = p.windows >= 2 && !p.sample.empty();
    const DemandTable demand = mean_demand(p, folds ? 0 : -1);
    std::vector<std::pair<int, std::span<const double>>> samples;  // layer, tokens by expert
    for (int i = 0; i < std::min(s_.rehearsals, p.layers * std::max(1, p.windows / 2)); ++i) {
      const int l =
          static_cast<int>((2 * static_cast<std::int64_t>(i) + 1) * p.layers / (2 * s_.rehearsals)) % p.layers;
      if (folds)
        samples.emplace_back(l, p.window(l, 1 + 2 * (i % (p.windows / 2))));
      else
        samples.emplace_back(l, std::span(p.demand).subspan(static_cast<size_t>(l) * static_cast<size_t>(p.experts),
                                                            static_cast<size_t>(p.experts)));
    }
    std::vector<Candidate> candidates;
    for (int degree = 0; degree <= kSlices; degree = degree == 0 ? 1 : degree * 2) {
      Candidate c;
      c.theta = degree == 0 ? 1e12 : theta_of(degree);  // 1e12: every expert whole
      c.shards = plan_shards(task, cost, teams, demand, {c.theta, s_.level_above});
      for (const auto& [l, tokens] : samples) {
        const auto mine = layer_of(c.shards, l);
        c.predicted += shard_time(cost, mine, tokens, shard_link_time(cost, p, l, mine));
      }
      candidates.push_back(std::move(c));
    }
    const Rehearsal rehearsal(*task.package, *task.model, task.stages_in_turn);
    std::vector<size_t> order(candidates.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return candidates[a].predicted < candidates[b].predicted; });
    double least = 1e300;
    for (size_t i : order) {
      Candidate& c = candidates[i];
      c.measured = 1e300;
      if (c.predicted > least) continue;
      c.measured = 0;
      for (const auto& [l, tokens] : samples) {
        std::vector<PlacedReplica> placed;
        for (const Shard& s : layer_of(c.shards, l)) placed.push_back({0, s.expert, s.at, s.slice});
        c.measured += rehearsal.time(placed, tokens, map_to_all_shards);
      }
      least = std::min(least, c.measured);
    }
    size_t pick = 0;
    while (candidates[pick].measured > least * (1 + s_.slack)) ++pick;
    return candidates[pick].theta;
  }

  static std::span<const Shard> layer_of(const std::vector<Shard>& shards, int layer) {
    const auto by_layer = [](const Shard& s, int l) { return s.layer < l; };
    const auto first = std::lower_bound(shards.begin(), shards.end(), layer, by_layer);
    const auto last = std::lower_bound(first, shards.end(), layer + 1, by_layer);
    return {first, last};
  }

  Settings s_;
};

}  // namespace

void register_policies_sojourn(PolicyRegistry& registry) {
  using I = std::int64_t;
  registry.add(
      {"sojourn",
       "experts cut into shards by cost and read from all tiers at once (ours)",
       {{"degree", Unit::none, I{0}, 0, kSlices, {}, "shards of an average expert; 0: by predicted cost", "ours"},
        {"slack", Unit::none, 0.005, 0.0, 1.0, {}, "predicted time given up for coarser shards, as a share", "ours"},
        {"rehearsals", Unit::none, I{4}, 1, 1024, {}, "warm-up layers run for every candidate layout", "ours"},
        {"level_above",
         Unit::none,
         0.9,
         0.0,
         1e3,
         {},
         "near-bank over compute time above which shards move to idle DRAM bandwidth",
         "ours"}}},
      [](const ParamSet& p) -> std::unique_ptr<Policy> {
        return std::make_unique<SojournPolicy>(Settings{p.integer("degree"), p.number("slack"), p.number("level_above"),
                                                        static_cast<int>(p.integer("rehearsals"))});
      });
}

}  // namespace sojourn
