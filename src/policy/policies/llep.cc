// llep: Least-Loaded Expert Parallelism (LLEP, arXiv 2601.17111): the exact loads of every window and layer are
// levelled before the tokens are sent (algorithm and its limits here: policy/least_loaded.h).
//
// LLEP moves the weights of a spilled expert to the device that takes the spill, within the layer. On this substrate
// tokens can go to live replicas only, so the spill goes to spare copies kept in the byte budget [R]:
//   * native replicas lie as in `static` (plain expert parallelism);
//   * spares, a layer's share of the budget: while the levelled mean profile has a device above the cap, its expert
//   with most
//     tokens there goes to the least loaded device without it; after that the expert with most tokens a copy goes to
//     the device with fewest spares, so that spill has somewhere to go when a window is not the mean;
//   * a layer whose levelled smoothed load still exceeds `refresh` times the mean gets a new spare by the same rule; if
//   the
//     budget is used up, one of its spares that takes no spill is evicted first. At most `updates` actions a window.
// The chunk m is a tile here (1024 tokens on a GPU would never be reached). LLEP's trigger lambda = 1.3 saves transfers
// of weights; spares are there already, so the default is 1: on training traces that was never worse. Which tokens
// spill is not LLEP's business: those with sources nearest the spare do (dispatch.h).
#include <algorithm>

#include "policy/dispatch.h"
#include "policy/least_loaded.h"
#include "policy/moves.h"
#include "policy/placement.h"

namespace sojourn {
namespace {

struct Settings {
  LeastLoadedRule rule;
  double refresh;
  int updates;
};

size_t at(int i) { return static_cast<size_t>(i); }

constexpr double kScale = 64;  ///< mean tokens are planned in 64ths

/// Devices of every expert of one layer, native first, and what levelling its mean load gives.
struct Spread {
  std::vector<std::vector<int>> on;
  std::vector<int> tokens;  ///< in 1 / kScale
  ReplicaTable table;
  LeastLoaded solver;
  std::vector<int> quota;

  void level(const LeastLoadedRule& rule, int devices) {
    table.clear();
    for (const auto& list : on) table.add_expert(list);
    solver.solve({rule.alpha, 1.0, 1}, devices, table, tokens, quota);
  }
  [[nodiscard]] int fullest() const {
    const auto load = solver.load();
    return static_cast<int>(std::max_element(load.begin(), load.end()) - load.begin());
  }
  [[nodiscard]] bool holds(int e, int d) const {
    return std::find(on[at(e)].begin(), on[at(e)].end(), d) != on[at(e)].end();
  }
  /// The device without expert e that `before(a, b)` puts first, or -1.
  template <class Before>
  [[nodiscard]] int device_for(int e, int devices, const Before& before) const {
    int best = -1;
    for (int d = 0; d < devices; ++d)
      if (!holds(e, d) && (best < 0 || before(d, best))) best = d;
    return best;
  }
};

class LlepPolicy final : public Policy {
 public:
  explicit LlepPolicy(const Settings& s) : s_(s) {}

  void place(const PlacementTask& task, std::vector<PlacedReplica>& out) override {
    const CostModel cost(*task.package, *task.model);
    const Profile& p = *task.profile;
    PlacementBuilder builder(task, cost);
    const std::int64_t extra = builder.copies_left();
    std::vector<FillItem> items;
    for (int l = 0; l < p.layers; ++l) {
      Spread spread;
      for (int e = 0; e < p.experts; ++e) {
        spread.on.push_back({contiguous_chiplet(l, e, p.experts, cost.chiplets())});
        spread.tokens.push_back(static_cast<int>(std::lround(p.d(l, e) * kScale)));
      }
      add_spares(share_of(extra, l, p.layers), cost.chiplets(), task.limits.replicas_max, spread);
      for (int e = 0; e < p.experts; ++e) {
        const auto& mine = spread.on[at(e)];
        const Demand d = demand_of(p, l, e);
        for (size_t i = 0; i < mine.size(); ++i) {
          const double share = spread.quota[at(spread.table.first[at(e)]) + i] / kScale;
          items.push_back({l, e, mine[i], i == 0 ? d.active : std::min(d.active, activity(share)), share, i > 0});
        }
      }
    }
    fill_tiers(builder, std::move(items), false);
    // The directory lists replicas oldest first and native means first, so natives are placed before spares.
    std::vector<PlacedReplica> all = builder.placed();
    std::stable_partition(all.begin(), all.end(), [&](const PlacedReplica& r) {
      return r.at.chiplet == contiguous_chiplet(r.layer, r.expert, p.experts, cost.chiplets());
    });
    out = std::move(all);
  }

  void decide(const PolicyView& view, std::vector<Action>& out) override {
    MoveBudget budget(view);
    std::vector<std::pair<double, int>> order;  // layers, the worst first
    std::vector<Spread> layers(at(view.layers));
    for (int l = 0; l < view.layers; ++l) {
      Spread& spread = layers[at(l)];
      std::int64_t total = 0;
      for (int e = 0; e < view.experts; ++e) {
        spread.on.push_back(chiplets_of(view, l, e));
        spread.tokens.push_back(static_cast<int>(std::lround(view.d(l, e) * kScale)));
        total += spread.tokens.back();
      }
      spread.level(s_.rule, view.chiplets);
      const double mean = static_cast<double>(total) / view.chiplets;
      const double worst = static_cast<double>(spread.solver.load()[at(spread.fullest())]);
      if (mean > 0 && worst > s_.refresh * mean) order.emplace_back(-worst / mean, l);
    }
    std::sort(order.begin(), order.end());
    for (const auto& [excess, l] : order) {
      if (static_cast<int>(out.size()) >= s_.updates) return;
      if (budget.copies() > 0) {
        copy(view, l, layers[at(l)], budget, out);
      } else {
        evict(view, l, layers[at(l)], out);
      }
    }
  }

  void assign(const PolicyView& view, const LayerTask& task, std::vector<Assignment>& out) override {
    if (!cost_.made_for(view.package, view.model)) cost_ = CostModel(*view.package, *view.model);
    groups_.build(task, view.experts);
    table_.clear();
    for (int e = 0; e < view.experts; ++e) {
      device_.clear();
      for (const int id : view.directory->replicas(task.layer, e))
        device_.push_back(view.directory->replica(id).at.chiplet);
      table_.add_expert(device_);
    }
    solver_.solve(s_.rule, view.chiplets, table_, groups_.tokens(), quota_);
    out.reserve(out.size() + task.groups.size());
    for (int e = 0; e < view.experts; ++e) {
      if (groups_.tokens(e) == 0) continue;
      const auto list = view.directory->replicas(task.layer, e);
      const auto mine = std::span(quota_).subspan(at(table_.first[at(e)]), list.size());
      if (mine[0] == groups_.tokens(e)) {
        for (const int g : groups_.of(e)) out.push_back({g, list.front(), task.groups[at(g)].tokens});
      } else {
        fill_quotas(cost_, *view.directory, task.groups, groups_.of(e), list, mine, out);
      }
    }
  }

  [[nodiscard]] ResidencyLimits limits(ResidencyLimits common) const override {
    common.updates_max = s_.updates;
    return common;
  }

 private:
  static std::vector<int> chiplets_of(const PolicyView& view, int l, int e) {
    std::vector<int> out;
    for (const int id : view.directory->replicas(l, e)) out.push_back(view.directory->replica(id).at.chiplet);
    return out;
  }

  /// Expert of the fullest device and the device for its next copy; expert -1 if there is none.
  struct Choice {
    int expert = -1, device = -1;
  };
  template <class May>
  static Choice relieve(const Spread& s, int devices, const May& may) {
    Choice out;
    const int hot = s.fullest();
    int most = 0;
    for (int e = 0; e < s.table.experts(); ++e)
      for (int i = s.table.first[at(e)]; i < s.table.first[at(e) + 1]; ++i) {
        if (s.table.device[at(i)] != hot || s.quota[at(i)] <= most || !may(e)) continue;
        const auto load = s.solver.load();
        const int d = s.device_for(e, devices, [&](int a, int b) { return load[at(a)] < load[at(b)]; });
        if (d < 0 || load[at(d)] >= load[at(hot)]) continue;
        most = s.quota[at(i)];
        out = {e, d};
      }
    return out;
  }

  void add_spares(int copies, int devices, int replicas_max, Spread& spread) const {
    const auto may = [&](int e) { return static_cast<int>(spread.on[at(e)].size()) < replicas_max; };
    std::vector<int> spares(at(devices), 0);
    spread.level(s_.rule, devices);
    for (; copies > 0; --copies) {
      Choice next;
      if (spread.solver.load()[at(spread.fullest())] > spread.solver.cap()) next = relieve(spread, devices, may);
      if (next.expert < 0) {
        double most = 0;
        for (size_t e = 0; e < spread.on.size(); ++e) {
          const double share = static_cast<double>(spread.tokens[e]) / static_cast<double>(spread.on[e].size());
          if (share <= most || !may(static_cast<int>(e)) || static_cast<int>(spread.on[e].size()) >= devices) continue;
          most = share;
          next.expert = static_cast<int>(e);
        }
        if (next.expert < 0) break;
        next.device = spread.device_for(next.expert, devices, [&](int a, int b) {
          return spares[at(a)] != spares[at(b)] ? spares[at(a)] < spares[at(b)]
                                                : spread.solver.load()[at(a)] < spread.solver.load()[at(b)];
        });
      }
      spread.on[at(next.expert)].push_back(next.device);
      ++spares[at(next.device)];
      spread.level(s_.rule, devices);
    }
  }

  static void copy(const PolicyView& view, int l, const Spread& spread, MoveBudget& budget, std::vector<Action>& out) {
    const Choice next = relieve(spread, view.chiplets, [&](int e) {
      return static_cast<int>(spread.on[at(e)].size()) < view.limits->replicas_max &&
             !view.directory->has_pending(l, e);
    });
    Location to;
    if (next.expert < 0 || !budget.find(next.device, Tier::hbm, to)) return;
    budget.take(to, true);
    out.push_back({ActionKind::promote, l, next.expert, -1, to});
  }

  /// The spare of the lightest expert that takes no spill.
  static void evict(const PolicyView& view, int l, const Spread& spread, std::vector<Action>& out) {
    int best = -1, least = 0;
    for (int e = 0; e < view.experts; ++e) {
      const auto list = view.directory->replicas(l, e);
      if (view.directory->has_pending(l, e)) continue;
      for (size_t i = 1; i < list.size(); ++i) {
        if (spread.quota[at(spread.table.first[at(e)]) + i] > 0 || !old_enough(view, view.directory->replica(list[i])))
          continue;
        if (best >= 0 && spread.tokens[at(e)] >= least) continue;
        best = list[i];
        least = spread.tokens[at(e)];
      }
    }
    if (best < 0) return;
    const Replica& r = view.directory->replica(best);
    out.push_back({ActionKind::evict, l, r.expert, best, r.at});
  }

  Settings s_;
  CostModel cost_;
  ExpertGroups groups_;
  ReplicaTable table_;
  LeastLoaded solver_;
  std::vector<int> device_, quota_;
};

}  // namespace

void register_policies_llep(PolicyRegistry& registry) {
  using I = std::int64_t;
  registry.add({"llep",
                "exact loads of every layer levelled before dispatch: native first, the rest to spare copies (LLEP)",
                {{"alpha",
                  Unit::none,
                  1.0,
                  1.0,
                  64.0,
                  {},
                  "capacity of a device over the mean load",
                  "arXiv 2601.17111, Alg. 2"},
                 {"lambda",
                  Unit::none,
                  1.0,
                  1.0,
                  64.0,
                  {},
                  "native max/mean load up to which nothing spills",
                  "[R], on synthetic training traces; LLEP: 1.3"},
                 {"chunk", Unit::tokens, I{16}, 1, 65536, {}, "least tokens worth a spill (m)", "[R]: a tile"},
                 {"refresh",
                  Unit::none,
                  1.1,
                  1.0,
                  64.0,
                  {},
                  "levelled max/mean load above which a layer gets a new spare",
                  "[R]"},
                 {"updates", Unit::none, I{8}, 0, 4096, {}, "most updates a window (its own U^max)", "[R]"}}},
               [](const ParamSet& p) -> std::unique_ptr<Policy> {
                 return std::make_unique<LlepPolicy>(
                     Settings{{p.number("alpha"), p.number("lambda"), static_cast<int>(p.integer("chunk"))},
                              p.number("refresh"),
                              static_cast<int>(p.integer("updates"))});
               });
}

}  // namespace sojourn
