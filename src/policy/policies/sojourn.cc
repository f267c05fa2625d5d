// sojourn: our policy. Experts are cut into shards as finely as pays, laid out by cost, and read from all tiers at
// once.
//
// See docs/sojourn-policy.md for the design and shard_plan.h for the layout. theta is chosen a layer by predicting the
// layer's time on warm-up windows that the candidate layout was not made from (two folds).
#include <cmath>
#include <numeric>

#include "policy/shard_plan.h"

namespace sojourn {
namespace {

struct Settings {
  std::int64_t degree;  ///< 0: by cost
  double slack, level_above;
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
    for (size_t g = 0; g < task.groups.size(); ++g) {
      if (task.groups[g].tokens <= 0) continue;
      for (int id : view.directory->replicas(task.layer, task.groups[g].expert))
        out.push_back({static_cast<int>(g), id, task.groups[g].tokens});
    }
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

  /// theta of every layer: the layout made from one fold of the warm-up windows is scored on the other, both ways; of
  /// the candidates within `slack` of the shortest predicted time the coarsest.
  [[nodiscard]] std::vector<double> choose_theta(const PlacementTask& task, const CostModel& cost,
                                                 const Teams& teams) const {
    const Profile& p = *task.profile;
    const auto layers = static_cast<size_t>(p.layers);
    const auto theta_of = [&](double degree) { return static_cast<double>(cost.chiplets()) / p.experts / degree; };
    std::vector<double> candidates;
    if (s_.degree > 0) return std::vector<double>(layers, theta_of(static_cast<double>(s_.degree)));
    candidates.push_back(1e12);  // every expert whole
    for (int degree = 1; degree <= kSlices; degree *= 2) candidates.push_back(theta_of(degree));
    const int folds = p.windows >= 2 && !p.sample.empty() ? 2 : 1;
    std::vector<std::vector<double>> time(candidates.size(), std::vector<double>(layers, 0.0));
    for (int fold = 0; fold < folds; ++fold) {
      const DemandTable demand = mean_demand(p, folds == 2 ? fold : -1);
      for (size_t i = 0; i < candidates.size(); ++i) {
        const SplitRule rule{std::vector<double>(layers, candidates[i]), s_.level_above};
        const std::vector<Shard> shards = plan_shards(task, cost, teams, demand, rule);
        size_t first = 0;
        for (int l = 0; l < p.layers; ++l) {
          size_t last = first;
          while (last < shards.size() && shards[last].layer == l) ++last;
          const auto mine = std::span(shards).subspan(first, last - first);
          first = last;
          const double link = shard_link_time(cost, p, l, mine);
          double& sum = time[i][static_cast<size_t>(l)];
          if (folds == 1) {
            sum += shard_time(
                cost, mine,
                std::span(p.demand).subspan(static_cast<size_t>(l * p.experts), static_cast<size_t>(p.experts)), link);
            continue;
          }
          for (int w = 1 - fold; w < p.windows; w += 2) sum += shard_time(cost, mine, p.window(l, w), link);
        }
      }
    }
    std::vector<double> theta(layers);
    for (size_t l = 0; l < layers; ++l) {
      double least = time[0][l];
      for (const auto& t : time) least = std::min(least, t[l]);
      size_t pick = 0;
      while (time[pick][l] > least * (1 + s_.slack)) ++pick;
      theta[l] = candidates[pick];
    }
    return theta;
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
        {"level_above",
         Unit::none,
         0.9,
         0.0,
         1e3,
         {},
         "near-bank over compute time above which shards move to idle DRAM bandwidth",
         "ours"}}},
      [](const ParamSet& p) -> std::unique_ptr<Policy> {
        return std::make_unique<SojournPolicy>(
            Settings{p.integer("degree"), p.number("slack"), p.number("level_above")});
      });
}

}  // namespace sojourn
