// hydra: popularity-aware expert mapping by simulated annealing (Hydra, DAC 2025, DOI 10.1109/DAC63849.2025.11133023).
//
// The paper's full text was not obtainable; known from its abstract and summaries: popularity is predicted from the
// conditional probability of expert choice in consecutive layers, simulated annealing minimises a hop-weighted
// communication cost, experts are loaded ahead of time, one copy of each. Everything below is [R].
//   D[l+1][c][j] = b (1/k) sum_i n[l][c][i] P_l[i][j] (scaled to j's layer total) + (1 - b) EWMA[l+1][c][j]
//   min over m: experts -> chiplets   sum_c sum_j D[c][j] bytes_tok (hops(c, m(j)) + hops(m(j), c))
//   subject to |m^-1(c)| <= ceil(E / |C|): equal counts, no notion of load.
// Annealing: swap two experts (or move one into an empty slot); T0 = t0_share * cost / E, factor 0.95, E * moves moves
// a temperature. The start is greedy: hottest expert first, to its cheapest chiplet with a free slot. Online: `layers`
// layers a window (round robin) are re-annealed from their current layout at a low temperature; a relocation is asked
// for when horizon * (hop bytes saved a window) > S * hops(old, new). A DRAM replica that keeps its bank set moves no
// bytes over links, only its execution chiplet.
#include <numeric>

#include "base/rng.h"
#include "policy/placement.h"

namespace sojourn {
namespace {

struct Settings {
  int temperatures, temperatures_online, moves, layers, relocations;
  double t0_share, cooling, next_weight, horizon;
};

/// Anneals one layer: chip[e] is changed in place; returns the cost in token-hops.
class Annealer {
 public:
  Annealer(const std::vector<double>& table, int experts, int chiplets)
      : table_(table), experts_(experts), chiplets_(chiplets), slots_((experts + chiplets - 1) / chiplets) {}

  void greedy(std::vector<int>& chip) const {
    std::vector<int> order(static_cast<size_t>(experts_)), used(static_cast<size_t>(chiplets_), 0);
    std::iota(order.begin(), order.end(), 0);
    std::vector<double> spread(order.size());  // what a bad slot would cost this expert
    for (int e = 0; e < experts_; ++e) {
      double lo = at(e, 0), hi = at(e, 0);
      for (int c = 1; c < chiplets_; ++c) lo = std::min(lo, at(e, c)), hi = std::max(hi, at(e, c));
      spread[static_cast<size_t>(e)] = hi - lo;
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return spread[static_cast<size_t>(a)] > spread[static_cast<size_t>(b)]; });
    chip.assign(static_cast<size_t>(experts_), 0);
    for (int e : order) {
      int best = -1;
      for (int c = 0; c < chiplets_; ++c)
        if (used[static_cast<size_t>(c)] < slots_ && (best < 0 || at(e, c) < at(e, best))) best = c;
      chip[static_cast<size_t>(e)] = best;
      ++used[static_cast<size_t>(best)];
    }
  }

  void run(std::vector<int>& chip, double t0, double cooling, int temperatures, int moves, Rng& rng) const {
    std::vector<int> used(static_cast<size_t>(chiplets_), 0), best = chip;
    for (int c : chip) ++used[static_cast<size_t>(c)];
    double change = 0, best_change = 0;
    double t = t0;
    for (int step = 0; step < temperatures; ++step, t *= cooling) {
      for (int i = 0; i < experts_ * moves; ++i) {
        const int a = static_cast<int>(rng.below(static_cast<std::uint64_t>(experts_)));
        // The partner is an expert or, one draw in |C|, a chiplet with a free slot.
        const int pick = static_cast<int>(rng.below(static_cast<std::uint64_t>(experts_ + chiplets_)));
        const int ca = chip[static_cast<size_t>(a)];
        int cb;
        double delta;
        if (pick < experts_) {
          cb = chip[static_cast<size_t>(pick)];
          if (ca == cb) continue;
          delta = at(a, cb) - at(a, ca) + at(pick, ca) - at(pick, cb);
        } else {
          cb = pick - experts_;
          if (ca == cb || used[static_cast<size_t>(cb)] >= slots_) continue;
          delta = at(a, cb) - at(a, ca);
        }
        if (delta > 0 && (t <= 0 || rng.uniform() >= std::exp(-delta / t))) continue;
        chip[static_cast<size_t>(a)] = cb;
        if (pick < experts_) {
          chip[static_cast<size_t>(pick)] = ca;
        } else {
          --used[static_cast<size_t>(ca)];
          ++used[static_cast<size_t>(cb)];
        }
        change += delta;
      }
      if (change < best_change - 1e-9) {
        best_change = change;
        best = chip;
      }
    }
    chip = best;
  }

  [[nodiscard]] double cost(const std::vector<int>& chip) const {
    double sum = 0;
    for (int e = 0; e < experts_; ++e) sum += at(e, chip[static_cast<size_t>(e)]);
    return sum;
  }
  [[nodiscard]] double at(int e, int c) const {
    return table_[static_cast<size_t>(e) * static_cast<size_t>(chiplets_) + static_cast<size_t>(c)];
  }

 private:
  const std::vector<double>& table_;
  int experts_, chiplets_, slots_;
};

class HydraPolicy final : public Policy {
 public:
  explicit HydraPolicy(const Settings& s) : s_(s) {}

  void place(const PlacementTask& task, std::vector<PlacedReplica>& out) override {
    const CostModel cost(*task.package, *task.model);
    const Profile& p = *task.profile;
    seed_ = task.seed;
    PlacementBuilder builder(task, cost);
    std::vector<FillItem> items;
    for (int l = 0; l < p.layers; ++l) {
      predict(p, task.model->top_k, l, p.source);
      hop_table(cost, predicted_, p.experts, table_);
      const Annealer annealer(table_, p.experts, cost.chiplets());
      std::vector<int> chip;
      annealer.greedy(chip);
      Rng rng(seed_, "hydra.place", static_cast<std::uint64_t>(l));
      const double t0 = s_.t0_share * annealer.cost(chip) / std::max(1, p.experts);
      annealer.run(chip, t0, s_.cooling, s_.temperatures, s_.moves, rng);
      for (int e = 0; e < p.experts; ++e) {
        const Demand d = demand_of(p, l, e);
        items.push_back({l, e, chip[static_cast<size_t>(e)], d.active, d.tokens, false});
      }
    }
    fill_tiers(builder, std::move(items), false);
    out = builder.placed();
  }

  void decide(const PolicyView& view, std::vector<Action>& out) override {
    if (view.layers <= 0 || view.experts <= 1 || s_.relocations <= 0) return;
    if (!cost_.made_for(view.package, view.model)) cost_ = CostModel(*view.package, *view.model);
    std::vector<Group> moves;
    const int turns = std::min(s_.layers, view.layers);
    for (int i = 0; i < turns; ++i) {
      const int l = static_cast<int>((static_cast<std::int64_t>(view.window) * turns + i) % view.layers);
      collect(view, l, moves);
    }
    std::stable_sort(moves.begin(), moves.end(), [](const Group& a, const Group& b) {
      if (a.gain != b.gain) return a.gain > b.gain;
      const Action &x = a.actions.front(), &y = b.actions.front();
      return x.layer != y.layer ? x.layer < y.layer : x.expert < y.expert;
    });
    std::vector<int> promised(view.package->bank_sets.size(), 0);
    for (const Group& g : moves) {
      if (out.size() + g.actions.size() > static_cast<size_t>(s_.relocations)) continue;
      bool fits = true;
      std::vector<int> with = promised;
      for (const Action& a : g.actions) {
        const auto set = static_cast<size_t>(a.to.bank_set);
        const Bytes n = std::max(1, view.package->bank_sets[set].count);
        const Bytes need = (view.directory->expert_bytes() + n - 1) / n * n;
        fits = fits && view.directory->free_bytes(a.to.bank_set) >= ++with[set] * need;
      }
      if (!fits) continue;
      promised = with;
      out.insert(out.end(), g.actions.begin(), g.actions.end());
    }
  }

  [[nodiscard]] ResidencyLimits limits(ResidencyLimits common) const override {
    common.updates_max = s_.relocations;
    return common;
  }
  [[nodiscard]] double budget_factor(double /*common*/) const override { return 1.0; }

 private:
  /// Moves that only together keep every chiplet's count of experts: a swap, a longer cycle, or a chain into a free
  /// slot.
  struct Group {
    std::vector<Action> actions;
    double gain = 0;  ///< hop-bytes saved over the horizon less those the moves cost
  };

  /// predicted_[expert][chiplet]: demand of `layer` by source, from the layer before it and its own history.
  void predict(const Profile& p, int top_k, int layer, std::span<const double> source) {
    const size_t n = static_cast<size_t>(p.experts) * static_cast<size_t>(p.chiplets);
    const auto own = source.subspan(static_cast<size_t>(layer) * n, n);
    predicted_.assign(own.begin(), own.end());
    if (layer == 0 || p.next.empty() || s_.next_weight <= 0) return;
    const auto before = source.subspan(static_cast<size_t>(layer - 1) * n, n);
    next_.assign(n, 0.0);
    const size_t chiplets = static_cast<size_t>(p.chiplets);
    double total = 0, own_total = 0;
    for (int i = 0; i < p.experts; ++i) {
      const double* from = before.data() + static_cast<size_t>(i) * chiplets;
      for (int j = 0; j < p.experts; ++j) {
        const double prob = p.p_next(layer - 1, i, j) / std::max(1, top_k);
        if (prob <= 0) continue;
        double* to = next_.data() + static_cast<size_t>(j) * chiplets;
        for (size_t c = 0; c < chiplets; ++c) to[c] += from[c] * prob;
      }
    }
    for (double v : next_) total += v;
    for (double v : own) own_total += v;
    const double scale = total > 0 ? s_.next_weight * own_total / total : 0.0;
    const double keep = total > 0 ? 1.0 - s_.next_weight : 1.0;
    for (size_t i = 0; i < n; ++i) predicted_[i] = keep * predicted_[i] + scale * next_[i];
  }

  void collect(const PolicyView& view, int l, std::vector<Group>& moves) {
    predict(*view.profile, view.model->top_k, l, view.source);
    hop_table(cost_, predicted_, view.experts, table_);
    std::vector<int> chip(static_cast<size_t>(view.experts)), first(chip.size());
    for (int e = 0; e < view.experts; ++e) {
      first[static_cast<size_t>(e)] = view.directory->replicas(l, e).front();
      chip[static_cast<size_t>(e)] = view.directory->replica(first[static_cast<size_t>(e)]).at.chiplet;
    }
    const std::vector<int> old = chip;
    const Annealer annealer(table_, view.experts, cost_.chiplets());
    Rng rng(seed_, "hydra.decide", static_cast<std::uint64_t>(view.window) * 4096u + static_cast<std::uint64_t>(l));
    // A tenth of the first temperature: the layout is refined, not made anew.
    const double t0 = 0.1 * s_.t0_share * annealer.cost(chip) / std::max(1, view.experts);
    annealer.run(chip, t0, 0.7, s_.temperatures_online, s_.moves, rng);
    // Follow each move to the expert that has to make room for it, until the cycle closes or a slot is free.
    std::vector<int> used(static_cast<size_t>(cost_.chiplets()), 0);
    for (int c : old) ++used[static_cast<size_t>(c)];
    const int slots = (view.experts + cost_.chiplets() - 1) / cost_.chiplets();
    std::vector<char> taken(chip.size(), 0);
    for (int e = 0; e < view.experts; ++e) {
      Group g;
      bool whole = true;
      for (int next = e; next >= 0 && whole;) {
        const auto i = static_cast<size_t>(next);
        if (chip[i] == old[i] || taken[i]) {
          whole = false;
          break;
        }
        taken[i] = 1;
        whole = add_move(view, annealer, l, next, old[i], chip[i], first[i], g);
        const int to = chip[i];
        if (to == old[static_cast<size_t>(e)] || used[static_cast<size_t>(to)] < slots) break;
        next = -1;
        for (int f = 0; f < view.experts && next < 0; ++f)
          if (old[static_cast<size_t>(f)] == to && chip[static_cast<size_t>(f)] != to && !taken[static_cast<size_t>(f)])
            next = f;
        whole = whole && next >= 0;
      }
      if (whole && !g.actions.empty() && g.gain > 0) moves.push_back(std::move(g));
    }
  }

  bool add_move(const PolicyView& view, const Annealer& annealer, int l, int e, int from, int to, int replica,
                Group& g) {
    if (view.directory->has_pending(l, e)) return false;
    const Replica& r = view.directory->replica(replica);
    const int target = shared_or_own(*view.package, r.at, to);
    if (target < 0) return false;
    const auto& sets = view.package->bank_sets;
    const auto path = view.package->route_chiplets(sets[static_cast<size_t>(r.at.bank_set)].owner,
                                                   sets[static_cast<size_t>(target)].owner);
    const double saved = 2 * (annealer.at(e, from) - annealer.at(e, to)) * cost_.token_bytes();
    g.gain += s_.horizon * saved - cost_.expert_bytes() * static_cast<double>(path.size());
    g.actions.push_back({ActionKind::relocate, l, e, replica, {r.at.tier, to, target}});
    return true;
  }

  /// The set a replica keeps (shared tiers) or gets (local tiers) when it moves to chiplet c; -1 if the tier is absent.
  static int shared_or_own(const Package& package, const Location& at, int c) {
    const auto visible = package.visible(at.tier, c);
    for (int s : visible)
      if (s == at.bank_set) return s;
    return visible.empty() ? -1 : visible.front();
  }

  Settings s_;
  std::uint64_t seed_ = 0;
  CostModel cost_;
  std::vector<double> predicted_, next_, table_;
};

}  // namespace

void register_policies_hydra(PolicyRegistry& registry) {
  using I = std::int64_t;
  registry.add(
      {"hydra",
       "one copy, mapped by simulated annealing on predicted popularity and hop distance (Hydra, DAC 2025)",
       {{"temperatures", Unit::none, I{50}, 1, 1000, {}, "temperature steps of the first annealing", "[R]"},
        {"temperatures_online", Unit::none, I{6}, 0, 1000, {}, "temperature steps of a window's annealing", "[R]"},
        {"moves", Unit::none, I{8}, 1, 1000, {}, "moves an expert and temperature", "[R]"},
        {"cooling", Unit::none, 0.95, 0.1, 0.999, {}, "temperature factor of the first annealing", "[R]"},
        {"t0_share", Unit::none, 0.1, 0.0, 10.0, {}, "first temperature as a share of the mean cost an expert", "[R]"},
        {"next_weight",
         Unit::fraction,
         0.5,
         0.0,
         1.0,
         {},
         "weight of the conditional prediction against history",
         "[R]"},
        {"layers", Unit::none, I{4}, 0, 4096, {}, "layers re-annealed a window, in turn", "ours"},
        {"relocations", Unit::none, I{8}, 0, 4096, {}, "most relocations a window (its own U^max)", "[R]"},
        {"horizon", Unit::windows, 64.0, 0.0, 1e6, {}, "windows over which a relocation must pay", "[R]"}}},
      [](const ParamSet& p) -> std::unique_ptr<Policy> {
        const auto n = [&](const char* name) { return static_cast<int>(p.integer(name)); };
        return std::make_unique<HydraPolicy>(
            Settings{n("temperatures"), n("temperatures_online"), n("moves"), n("layers"), n("relocations"),
                     p.number("t0_share"), p.number("cooling"), p.number("next_weight"), p.number("horizon")});
      });
}

}  // namespace sojourn
