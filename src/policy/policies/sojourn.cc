// sojourn: our policy. Experts are cut into shards as finely as pays, laid out by cost, and read from all tiers at
// once.
//
// See docs/sojourn-policy.md for the design and shard_plan.h for the layout. theta is chosen by rehearsing candidate
// layouts on warm-up windows that they were not made from (rehearsal.h). Where even the best cut stays far from what
// the resources allow (slow links), whole experts with copies are rehearsed too, as the policy named by `whole` plays
// them.
#include <cmath>
#include <numeric>

#include "policy/policies.h"
#include "policy/rehearsal.h"
#include "policy/shard_plan.h"

namespace sojourn {
namespace {

struct Settings {
  std::int64_t degree;  ///< 0: by cost
  double slack, level_above, far;
  int rehearsals;
  std::string whole;
};

class SojournPolicy final : public Policy {
 public:
  explicit SojournPolicy(const Settings& s) : s_(s) {}

  void place(const PlacementTask& task, std::vector<PlacedReplica>& out) override {
    const CostModel cost(*task.package, *task.model);
    const Teams teams(*task.package);
    const double theta = choose(task, cost, teams);
    if (whole_ != nullptr) return whole_->place(task, out);
    for (const Shard& s : plan_shards(task, cost, teams, mean_demand(*task.profile, -1), {theta, s_.level_above}))
      out.push_back({s.layer, s.expert, s.at, s.slice});
  }

  void assign(const PolicyView& view, const LayerTask& task, std::vector<Assignment>& out) override {
    if (whole_ != nullptr) return whole_->assign(view, task, out);
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
    double theta = 0, predicted = 0, measured = 1e300;
    std::vector<Shard> shards;
  };
  struct Sample {
    int layer = 0;
    std::span<const double> tokens;  ///< [expert]
  };

  /// Layers spread over the package, each in a warm-up window of the fold that candidate layouts are not made from.
  [[nodiscard]] std::vector<Sample> samples_of(const Profile& p) const {
    std::vector<Sample> samples;
    const bool folds = p.windows >= 2 && !p.sample.empty();
    const int count = std::min(s_.rehearsals, p.layers * std::max(1, p.windows / 2));
    for (int i = 0; i < count; ++i) {
      const int l = static_cast<int>((2 * static_cast<std::int64_t>(i) + 1) * p.layers / (2 * count)) % p.layers;
      if (folds)
        samples.push_back({l, p.window(l, 1 + 2 * (i % (p.windows / 2)))});
      else
        samples.push_back({l, std::span(p.demand).subspan(static_cast<size_t>(l) * static_cast<size_t>(p.experts),
                                                          static_cast<size_t>(p.experts))});
    }
    return samples;
  }

  /// theta, and whole_ if whole experts with copies are faster. A candidate whose predicted time (resources alone) is
  /// above the best rehearsed one is not rehearsed; of those within `slack` of the best the coarsest is taken.
  [[nodiscard]] double choose(const PlacementTask& task, const CostModel& cost, const Teams& teams) {
    const Profile& p = *task.profile;
    const auto theta_of = [&](double degree) { return static_cast<double>(cost.chiplets()) / p.experts / degree; };
    if (s_.degree > 0) return theta_of(static_cast<double>(s_.degree));
    const DemandTable demand = mean_demand(p, p.windows >= 2 && !p.sample.empty() ? 0 : -1);
    const std::vector<Sample> samples = samples_of(p);
    std::vector<Candidate> candidates;
    for (int degree = 0; degree <= kSlices; degree = degree == 0 ? 1 : degree * 2) {
      Candidate c;
      c.theta = degree == 0 ? 1e12 : theta_of(degree);  // 1e12: every expert whole
      c.shards = plan_shards(task, cost, teams, demand, {c.theta, s_.level_above});
      for (const Sample& s : samples) {
        const auto mine = layer_of(c.shards, s.layer);
        c.predicted += shard_time(cost, mine, s.tokens, shard_link_time(cost, p, s.layer, mine));
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
      if (c.predicted > least) continue;
      c.measured = 0;
      for (const Sample& s : samples) {
        std::vector<PlacedReplica> placed;
        for (const Shard& shard : layer_of(c.shards, s.layer))
          placed.push_back({0, shard.expert, shard.at, shard.slice});
        c.measured += rehearsal.time(placed, s.tokens, map_to_all_shards);
      }
      least = std::min(least, c.measured);
    }
    consider_whole(task, cost, samples, rehearsal, least);
    size_t pick = 0;
    while (candidates[pick].measured > least * (1 + s_.slack)) ++pick;
    return candidates[pick].theta;
  }

  /// Sets whole_ when the policy of that name beats `least` on the samples by more than `slack`.
  void consider_whole(const PlacementTask& task, const CostModel& cost, const std::vector<Sample>& samples,
                      const Rehearsal& rehearsal, double least) {
    const Profile& p = *task.profile;
    double ideal = 0;  // all tokens level over all chiplets
    double rate = 0;
    for (int c = 0; c < cost.chiplets(); ++c) rate += 1.0 / cost.token_s(c);
    for (const Sample& s : samples)
      for (double n : s.tokens) ideal += cost.tile() * std::ceil(n / cost.tile()) / rate;
    if (s_.whole == "none" || least <= s_.far * ideal) return;
    std::unique_ptr<Policy> policy = make_policy(s_.whole, {});
    Profile half = p;  // the same fold as the other candidates
    const DemandTable demand = mean_demand(p, p.windows >= 2 && !p.sample.empty() ? 0 : -1);
    for (size_t i = 0; i < demand.of.size(); ++i) {
      half.demand[i] = demand.of[i].tokens;
      half.active[i] = demand.of[i].active;
    }
    PlacementTask trial = task;
    trial.profile = &half;
    std::vector<PlacedReplica> placed;
    policy->place(trial, placed);
    double measured = 0;
    for (const Sample& s : samples) {
      std::vector<PlacedReplica> layer;
      for (const PlacedReplica& r : placed)
        if (r.layer == s.layer) layer.push_back({0, r.expert, r.at, r.slice});
      measured += rehearsal.time(layer, s.tokens,
                                 [&](const DirectoryView& d, const LayerTask& t, std::vector<Assignment>& out) {
                                   policy->assign(rehearsal_view(trial, s.layer, d), t, out);
                                 });
    }
    if (measured < least * (1 - s_.slack)) whole_ = make_policy(s_.whole, {});
  }

  /// What a mapper sees of one layer, numbered 0 as in the rehearsal's directory.
  static PolicyView rehearsal_view(const PlacementTask& task, int layer, const DirectoryView& directory) {
    static const Pressure kNone;
    const Profile& p = *task.profile;
    PolicyView v;
    v.package = task.package;
    v.model = task.model;
    v.directory = &directory;
    v.limits = &task.limits;
    v.pressure = &kNone;
    v.profile = &p;
    v.tokens = task.tokens;
    v.layers = 1;
    v.experts = p.experts;
    v.chiplets = p.chiplets;
    const auto l = static_cast<size_t>(layer), experts = static_cast<size_t>(p.experts);
    const size_t block = experts * static_cast<size_t>(p.chiplets);
    v.ewma = v.last = std::span(p.demand).subspan(l * experts, experts);
    v.source = std::span(p.source).subspan(l * block, block);
    return v;
  }

  static std::span<const Shard> layer_of(const std::vector<Shard>& shards, int layer) {
    const auto by_layer = [](const Shard& s, int l) { return s.layer < l; };
    const auto first = std::lower_bound(shards.begin(), shards.end(), layer, by_layer);
    const auto last = std::lower_bound(first, shards.end(), layer + 1, by_layer);
    return {first, last};
  }

  Settings s_;
  std::unique_ptr<Policy> whole_;  ///< plays whole experts instead, when that is faster
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
        {"whole",
         Unit::none,
         std::string("makespan"),
         -1e300,
         1e300,
         {"makespan", "hcrmap", "none"},
         "policy that plays whole experts with copies",
         "ours"},
        {"far",
         Unit::none,
         1.1,
         1.0,
         1e6,
         {},
         "rehearsed over ideal compute time above which whole experts are rehearsed too",
         "ours"},
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
                                                        p.number("far"), static_cast<int>(p.integer("rehearsals")),
                                                        p.word("whole")});
      });
}

}  // namespace sojourn
