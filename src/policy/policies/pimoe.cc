// pimoe: hot experts near the sources, cold experts at the memory that holds them (PIMoE, DAC 2025,
// DOI 10.1109/DAC63849.2025.11132528).
//
// Known from its abstract and summaries: an NPU runs dense and hot work, HBM-PIM runs cold experts whose parameters are
// interleaved over all channels; two latency models; hot experts are chosen iteratively until neither side is binding;
// one copy, nothing persistent migrates. On this substrate [R], which has no PIM: "near memory" is execution on the
// chiplet whose banks hold the expert, bound by bank service; "NPU" is a source-near chiplet with SRAM priority.
//   T_mem(S) = (1/|C|) sum_{e in S} (a_e S_wt / BW_hbm + row) , T_npu(H) = (1/|C|) max(sum_{e in H} a_e S_wt / BW_load,
//              sum_{e in H} ops(n_e) / Pi)
//   with the cold side paying n_e * t_gemv a token as well (linear, no tile reuse). Experts in descending n_e; the
//   prefix length h in 0..E that minimises max(T_mem, T_npu) is found exhaustively: the optimum of PIMoE's iterative
//   migration.
// Hot prefix: to the chiplet nearest its sources among those with fewer than ceil(h / |C|) hot experts (popularity and
// distance, no queue). Cold rest: longest bank service first to the chiplet with the least bank service, so that all
// banks serve equal time (the interleaving). Online: a window re-solves `layers` layers in turn and asks for at most
// `updates` promotions (into SRAM or HBM), demotions and relocations from the bank set with most service to the least.
#include <numeric>

#include "policy/placement.h"

namespace sojourn {
namespace {

struct Settings {
  double gemv_share, gain;
  int layers, updates;
};

/// Near-memory and NPU latency models of one package, seconds a token or stream.
struct Models {
  double stream_mem = 0, stream_load = 0, token_npu = 0, token_mem = 0;
  Models(const CostModel& cost, double gemv_share) {
    const Package& p = cost.package();
    double mem = 0, load = 0, n = 0;
    for (size_t s = 0; s < p.bank_sets.size(); ++s) {
      if (p.bank_sets[s].tier != Tier::sram) mem += 1.0 / cost.stream_s(static_cast<int>(s));
      load = std::max(load, 1.0 / cost.stream_s(static_cast<int>(s)));
    }
    for (int c = 0; c < cost.chiplets(); ++c) n += 1.0 / cost.token_s(c);
    stream_mem = 1.0 / std::max(mem, 1e-12);
    stream_load = 1.0 / std::max(load * cost.chiplets(), 1e-12);
    token_npu = 1.0 / std::max(n, 1e-12);
    token_mem = gemv_share * stream_mem;  // a GEMV re-reads the open rows: a share of a whole stream a token
  }
};

/// Length of the hot prefix of `order` (descending tokens): exhaustive scan, O(E).
int hot_prefix(const Models& m, std::span<const Demand> sorted) {
  double cold = 0;
  for (const Demand& d : sorted) cold += d.active * m.stream_mem + d.tokens * m.token_mem;
  double load = 0, ops = 0, best = cold;
  int length = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    cold -= sorted[i].active * m.stream_mem + sorted[i].tokens * m.token_mem;
    load += sorted[i].active * m.stream_load;
    ops += sorted[i].tokens * m.token_npu;
    const double t = std::max(cold, std::max(load, ops));
    if (t < best) {
      best = t;
      length = static_cast<int>(i) + 1;
    }
  }
  return length;
}

class PimoePolicy final : public Policy {
 public:
  explicit PimoePolicy(const Settings& s) : s_(s) {}

  void place(const PlacementTask& task, std::vector<PlacedReplica>& out) override {
    const CostModel cost(*task.package, *task.model);
    const Profile& p = *task.profile;
    const Models models(cost, s_.gemv_share);
    PlacementBuilder builder(task, cost);
    std::vector<std::vector<int>> rank_order;
    std::vector<int> hot;
    for (int l = 0; l < p.layers; ++l) {
      rank_order.push_back(sorted(p.experts, [&](int e) { return p.d(l, e); }));
      std::vector<Demand> d;
      for (int e : rank_order.back()) d.push_back(demand_of(p, l, e));
      hot.push_back(hot_prefix(models, d));
    }
    // Bank service and counts by layer, then all layers rank by rank so that near tiers are shared evenly.
    std::vector<LayerLoad> load(static_cast<size_t>(p.layers), LayerLoad(cost));
    std::vector<std::vector<int>> hot_on(static_cast<size_t>(p.layers), std::vector<int>(load[0].compute.size(), 0));
    std::vector<double> table;
    const size_t n = static_cast<size_t>(cost.chiplets());
    std::vector<std::vector<double>> near(static_cast<size_t>(p.layers));
    for (int l = 0; l < p.layers; ++l) {
      const size_t block = static_cast<size_t>(p.experts) * n;
      hop_table(cost, std::span(p.source).subspan(static_cast<size_t>(l) * block, block), p.experts,
                near[static_cast<size_t>(l)]);
    }
    for (int rank = 0; rank < p.experts; ++rank)
      for (int l = 0; l < p.layers; ++l) {
        const auto li = static_cast<size_t>(l);
        const int e = rank_order[li][static_cast<size_t>(rank)];
        const Demand d = demand_of(p, l, e);
        Location at;
        const int limit = (hot[li] + cost.chiplets() - 1) / cost.chiplets();
        bool found = false;
        if (rank < hot[li]) {
          int best = -1;
          for (int c = 0; c < cost.chiplets(); ++c)
            if (hot_on[li][static_cast<size_t>(c)] < limit &&
                (best < 0 || near[li][static_cast<size_t>(e) * n + static_cast<size_t>(c)] <
                                 near[li][static_cast<size_t>(e) * n + static_cast<size_t>(best)]))
              best = c;
          if (best >= 0 && builder.find_at(l, best, true, at)) {
            ++hot_on[li][static_cast<size_t>(best)];
            found = true;
          }
        } else {
          found = least_served(builder, cost, load[li], l, d, at);
        }
        if (!found && !builder.find_anywhere(l, 0, true, at)) continue;
        if (builder.put(l, e, at)) load[li].add(cost, at, d.tokens, d.active);
      }
    out = builder.placed();
  }

  void decide(const PolicyView& view, std::vector<Action>& out) override {
    if (!cost_.made_for(view.package, view.model)) cost_ = CostModel(*view.package, *view.model);
    std::vector<int> promised(view.package->bank_sets.size(), 0);
    const int turns = std::min(s_.layers, view.layers);
    for (int i = 0; i < turns && static_cast<int>(out.size()) < s_.updates; ++i) {
      const int l = static_cast<int>((static_cast<std::int64_t>(view.window) * turns + i) % view.layers);
      rebalance(view, l, promised, out);
    }
  }

  [[nodiscard]] ResidencyLimits limits(ResidencyLimits common) const override {
    common.updates_max = s_.updates;
    return common;
  }
  [[nodiscard]] double budget_factor(double /*common*/) const override { return 1.0; }

 private:
  template <class Value>
  static std::vector<int> sorted(int experts, const Value& value) {
    std::vector<int> order(static_cast<size_t>(experts));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return value(a) > value(b); });
    return order;
  }

  /// Where a cold expert is served first: the later of its bank set's stream and its chiplet's GEMVs, lowest first.
  static bool least_served(const PlacementBuilder& builder, const CostModel& cost, const LayerLoad& load, int l,
                           const Demand& d, Location& best) {
    double best_time = 0, best_bank = 0;
    bool found = false;
    for (int c = 0; c < cost.chiplets(); ++c) {
      Location at;
      if (!builder.find_at(l, c, true, at)) continue;
      const double bank = load.bank[static_cast<size_t>(at.bank_set)] + d.active * cost.stream_s(at.bank_set);
      const double time = std::max(bank, load.compute[static_cast<size_t>(c)] + cost.compute_s(c, d.tokens, d.active));
      if (found && (time > best_time + 1e-15 || (time >= best_time - 1e-15 && bank >= best_bank))) continue;
      best = at;
      best_time = time;
      best_bank = bank;
      found = true;
    }
    return found;
  }

  /// Moves one expert off the bank set or chiplet that is served last in this layer, if the latest service drops.
  void rebalance(const PolicyView& view, int l, std::vector<int>& promised, std::vector<Action>& out) {
    LayerLoad load(cost_);
    std::vector<int> order = sorted(view.experts, [&](int e) { return view.d(l, e); });
    for (int e : order) {
      const Demand d = demand_of(view, l, e);
      load.add(cost_, view.directory->replica(view.directory->replicas(l, e).front()).at, d.tokens, d.active);
    }
    const double worst = std::max(load.max_bank(), load.max_compute());
    for (int e : order) {  // hottest first: moving them relieves most
      const Replica& r = view.directory->replica(view.directory->replicas(l, e).front());
      const bool on_worst = load.bank[static_cast<size_t>(r.at.bank_set)] >= worst ||
                            load.compute[static_cast<size_t>(r.at.chiplet)] >= worst;
      if (!on_worst || view.directory->has_pending(l, e)) continue;
      if (!r.initial && view.window - r.born_window < view.limits->age_min) continue;
      const Demand d = demand_of(view, l, e);
      if (d.active < 0.05) break;
      Location to;
      double best = worst * (1.0 - s_.gain);
      bool found = false;
      for (int c = 0; c < cost_.chiplets(); ++c)
        for (int t = 0; t < kTiers; ++t)
          for (int s : view.package->visible(static_cast<Tier>(t), c)) {
            const auto si = static_cast<size_t>(s);
            const Bytes n = std::max(1, view.package->bank_sets[si].count);
            const Bytes need = (view.directory->expert_bytes() + n - 1) / n * n;
            const Location place{static_cast<Tier>(t), c, s};
            if (place == r.at || view.directory->free_bytes(s) < need * (promised[si] + 1)) continue;
            const double bank = load.bank[si] + (s == r.at.bank_set ? 0 : d.active * cost_.stream_s(s));
            const double queue =
                load.compute[static_cast<size_t>(c)] + (c == r.at.chiplet ? 0 : cost_.compute_s(c, d.tokens, d.active));
            if (std::max(bank, queue) >= best) continue;
            best = std::max(bank, queue);
            to = place;
            found = true;
          }
      if (!found) continue;
      ++promised[static_cast<size_t>(to.bank_set)];
      const ActionKind kind = to.tier < r.at.tier   ? ActionKind::promote
                              : to.tier > r.at.tier ? ActionKind::demote
                                                    : ActionKind::relocate;
      out.push_back({kind, l, e, view.directory->replicas(l, e).front(), to});
      return;
    }
  }

  Settings s_;
  CostModel cost_;
};

}  // namespace

void register_policies_pimoe(PolicyRegistry& registry) {
  using I = std::int64_t;
  registry.add({"pimoe",
                "one copy: hot experts near their sources, cold experts interleaved over the banks (PIMoE, DAC 2025)",
                {{"gemv_share",
                  Unit::fraction,
                  0.0625,
                  0.0,
                  1.0,
                  {},
                  "near-memory time a token, as a share of streaming the expert once",
                  "[R]"},
                 {"gain", Unit::fraction, 0.05, 0.0, 1.0, {}, "least relief of the fullest bank set for a move", "[R]"},
                 {"layers", Unit::none, I{8}, 0, 4096, {}, "layers re-solved a window, in turn", "[R]"},
                 {"updates", Unit::none, I{4}, 0, 4096, {}, "most updates a window (its own U^max)", "[R]"}}},
               [](const ParamSet& p) -> std::unique_ptr<Policy> {
                 return std::make_unique<PimoePolicy>(Settings{p.number("gemv_share"), p.number("gain"),
                                                               static_cast<int>(p.integer("layers")),
                                                               static_cast<int>(p.integer("updates"))});
               });
}

}  // namespace sojourn
