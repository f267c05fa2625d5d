// hybrid: experts cut between tensor and expert parallelism so that the mean load is even, after HD-MoE
// (arXiv 2509.09420). A reconstruction [R]: HD-MoE balances nodes by a linear program over the fractions x_{e,c} of
// expert e on node c and links by Bayesian optimisation; tiers are not its subject.
//
// Node balance: min T, sum_e x_{e,c} w_e <= T r_c, sum_c x_{e,c} = 1. A basic optimum has at most C - 1 experts that
// are cut, and one such optimum is the wrap-around rule (McNaughton): lay the experts' work end to end and cut the line
// where a chiplet's share (r_c = its rate) is full, here rounded to slices. w_e = max(compute, weight read) of e at its
// mean demand on the whole package, reads at the bandwidth of all HBM and DRAM banks; the experts lie in descending w,
// so that large ones are cut and small ones stay whole.
// Link balance: chiplets exchange their contents while the fullest link's bytes (dispatch + gather) fall.
// Tiers: near first by density (shard_plan.h). No copies, no migrations; every token goes to all shards of its expert.
#include <cmath>
#include <numeric>

#include "policy/rehearsal.h"
#include "policy/shard_plan.h"

namespace sojourn {
namespace {

class HybridPolicy final : public Policy {
 public:
  explicit HybridPolicy(bool link_balance) : link_balance_(link_balance) {}

  void place(const PlacementTask& task, std::vector<PlacedReplica>& out) override {
    const CostModel cost(*task.package, *task.model);
    DemandTable demand{task.profile->layers, task.profile->experts, {}};
    for (int l = 0; l < demand.layers; ++l)
      for (int e = 0; e < demand.experts; ++e) demand.of.push_back(demand_of(*task.profile, l, e));
    std::vector<Shard> shards;
    for (int l = 0; l < demand.layers; ++l) {
      const size_t first = shards.size();
      balance_nodes(cost, demand, l, shards);
      if (link_balance_) balance_links(cost, *task.profile, l, std::span(shards).subspan(first));
    }
    place_in_tiers(task, cost, demand, 1e300, shards);
    for (const Shard& s : shards) out.push_back({s.layer, s.expert, s.at, s.slice});
  }

  void assign(const PolicyView& view, const LayerTask& task, std::vector<Assignment>& out) override {
    map_to_all_shards(*view.directory, task, out);
  }

 private:
  static void balance_nodes(const CostModel& cost, const DemandTable& demand, int l, std::vector<Shard>& out) {
    const int n = cost.chiplets();
    double bandwidth = 0, tokens_per_s = 0;
    for (const BankSet& b : cost.package().bank_sets)
      if (b.tier != Tier::sram) bandwidth += static_cast<double>(b.bandwidth);
    for (int c = 0; c < n; ++c) tokens_per_s += 1.0 / cost.token_s(c);
    // An expert that was never used weighs next to nothing, but its slices must lie somewhere.
    const auto work = [&](int e) {
      const Demand& d = demand.at(l, e);
      const double read = bandwidth > 0 ? d.active * cost.expert_bytes() / bandwidth : 0.0;
      return std::max({(d.tokens + d.active * 0.5 * (cost.tile() - 1)) / tokens_per_s, read, 1e-15});
    };
    std::vector<int> order(static_cast<size_t>(demand.experts));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return work(a) > work(b); });
    double total = 0;
    for (int e : order) total += work(e);
    int c = 0;
    double end = total / tokens_per_s / cost.token_s(0),
           at = 0;  // end of chiplet c's share on the line, start of the expert
    for (int e : order) {
      int slice = 0;
      while (slice < kSlices) {
        const double per_slice = work(e) / kSlices;
        // Clamped before it becomes an int: the share left over may be many times an unused expert's work.
        const int left = kSlices - slice;
        const int count =
            c + 1 == n ? left : static_cast<int>(std::clamp(std::round((end - at) / per_slice), 0.0, 1.0 * left));
        if (count > 0) {
          const Slice cut{static_cast<std::uint8_t>(slice), static_cast<std::uint8_t>(count)};
          out.push_back({l, e, {Tier::sram, c, -1}, cut});
          slice += count;
          at += count * per_slice;
        }
        if (slice < kSlices && c + 1 < n) {
          ++c;
          end += total / tokens_per_s / cost.token_s(c);
        }
      }
    }
    std::stable_sort(out.end() - static_cast<std::ptrdiff_t>(out.size() - first_of(out, l)), out.end(),
                     [](const Shard& a, const Shard& b) { return a.expert < b.expert; });
  }

  static size_t first_of(const std::vector<Shard>& shards, int layer) {
    return static_cast<size_t>(
        std::lower_bound(shards.begin(), shards.end(), layer, [](const Shard& s, int l) { return s.layer < l; }) -
        shards.begin());
  }

  /// Bytes of the fullest link, over its rate, when chiplet c carries the contents of slot[c].
  static double fullest_link(const CostModel& cost, const std::vector<double>& flow, const std::vector<int>& slot) {
    const size_t n = slot.size();
    std::vector<double> link(cost.package().links.size(), 0.0);
    for (size_t s = 0; s < n; ++s)
      for (size_t c = 0; c < n; ++c) {
        const double bytes = flow[s * n + static_cast<size_t>(slot[c])];
        for (int u : cost.package().route_chiplets(static_cast<int>(s), static_cast<int>(c)))
          link[static_cast<size_t>(u)] += bytes;
        for (int u : cost.package().route_chiplets(static_cast<int>(c), static_cast<int>(s)))
          link[static_cast<size_t>(u)] += bytes;
      }
    double worst = 0;
    for (size_t u = 0; u < link.size(); ++u) worst = std::max(worst, link[u] / cost.link_rate(static_cast<int>(u)));
    return worst;
  }

  static void balance_links(const CostModel& cost, const Profile& p, int l, std::span<Shard> shards) {
    const size_t n = static_cast<size_t>(cost.chiplets());
    std::vector<double> flow(n * n, 0.0);
    for (const Shard& s : shards)
      for (size_t source = 0; source < n; ++source)
        flow[source * n + static_cast<size_t>(s.at.chiplet)] += p.src(l, s.expert, static_cast<int>(source));
    std::vector<int> slot(n);
    std::iota(slot.begin(), slot.end(), 0);
    double now = fullest_link(cost, flow, slot);
    for (bool better = true; better;) {
      better = false;
      for (size_t a = 0; a < n; ++a)
        for (size_t b = a + 1; b < n; ++b) {
          if (cost.token_s(static_cast<int>(a)) != cost.token_s(static_cast<int>(b))) continue;
          std::swap(slot[a], slot[b]);
          const double then = fullest_link(cost, flow, slot);
          if (then < now * (1 - 1e-6)) {
            now = then;
            better = true;
          } else {
            std::swap(slot[a], slot[b]);
          }
        }
    }
    std::vector<int> chiplet(n);
    for (size_t c = 0; c < n; ++c) chiplet[static_cast<size_t>(slot[c])] = static_cast<int>(c);
    for (Shard& s : shards) s.at.chiplet = chiplet[static_cast<size_t>(s.at.chiplet)];
  }

  bool link_balance_;
};

}  // namespace

void register_policies_hybrid(PolicyRegistry& registry) {
  registry.add(
      {"hybrid",
       "experts cut where a chiplet's share of the mean load ends (TP/EP hybrid after HD-MoE, arXiv 2509.09420)",
       {{"link_balance",
         Unit::none,
         true,
         -1e300,
         1e300,
         {},
         "chiplets exchange their contents while the fullest link's load falls",
         "HD-MoE, by search [R]"}}},
      [](const ParamSet& p) -> std::unique_ptr<Policy> {
        return std::make_unique<HybridPolicy>(p.flag("link_balance"));
      });
}

}  // namespace sojourn
