// hcrmap: multi-level residency with bounded copies and pressure-aware token mapping (HCRMap, arXiv 2607.11586).
//
// Placement (35)-(36), before the first window, over the warm-up profile:
//   C_place = alpha_p D_src + beta_p Q_c + chi_p U_bank + psi_p U_cap - eta_p D_div
// D_src = (demand-weighted hops of the tokens + hops of the weights) / diameter; Q_c and U_bank = compute queue and
// bank service of the layer with this replica, over the layer's ideal time; U_cap = 1 / (1 + places left in the tier).
// D_div, hops to the nearest copy, decides between copies of nearly equal worth (place_copies), since a first replica
// has no other to be far from. The paper gives neither the weights nor the normalisation [R]: with all weights 1 the
// distance outweighs every queue, so the defaults below were chosen on synthetic training traffic. Experts go hottest
// first, all layers rank by rank. An expert that a near tier could hold goes to a shared tier only when near banks
// would bound the layer, or when its layer's share of near places is used up (cold experts keep "one legal replica in
// the shared capacity tier"). Copies [R]: while budget B_res and capacity last, the copy with the largest fall of the
// smooth layer time J over all layers (layer_plan.h), which counts the extra stream of its bank; none below `copy_gain`
// of J. Slow loop: slow_loop.h. Fast loop: fast_map.h. Ablations: link_aware, bank_aware, load_aware, migration_aware
// drop the terms of that pressure everywhere; hbm_tier = false masks HBM (used only if nothing else holds an expert);
// fast_map = false sends a group to the replica nearest its source.
#include <cassert>
#include <numeric>
#include <tuple>

#include "policy/dqn.h"
#include "policy/dqn_checkpoint.h"
#include "policy/fast_map.h"
#include "policy/placement.h"

namespace sojourn {
namespace {

struct Settings {
  double alpha_p, beta_p, chi_p, psi_p, eta_p, near_full, copy_gain, spare_bank, spare_tiles;
  bool fast_map, copies;
  std::string slow, checkpoint;
  MapWeights map;
  SlowSettings slow_loop;
};

class HcrmapPolicy final : public Policy {
 public:
  explicit HcrmapPolicy(const Settings& s) : s_(s), mapper_(s.map) {
    if (s.slow == "amortised") controller_ = make_amortised(s.slow_loop);
    if (s.slow != "dqn") return;
    const auto loaded = load_dqn_checkpoint(s.checkpoint, {});  // checked by resolve_dqn_checkpoint before any run
    assert(loaded);
    controller_ = make_dqn(s.slow_loop, loaded->network, loaded->margin);
  }

  void place(const PlacementTask& task, std::vector<PlacedReplica>& out) override {
    const CostModel cost(*task.package, *task.model);
    PlacementBuilder builder(task, cost, s_.slow_loop.hbm);
    std::vector<LayerPlan> plans;
    place_first(task, cost, builder, plans);
    if (s_.copies) {
      place_copies(task, cost, builder, plans);
      if (s_.spare_bank > 0) place_spares(task, cost, builder, plans);
    }
    out = builder.placed();
  }

  void decide(const PolicyView& view, std::vector<Action>& out) override {
    if (controller_ == nullptr) return;
    refresh(view);
    slow_decide(s_.slow_loop, cost_, *controller_, view, out);
  }

  void assign(const PolicyView& view, const LayerTask& task, std::vector<Assignment>& out) override {
    refresh(view);
    if (s_.fast_map) return mapper_.map(cost_, *view.directory, task, out);
    for (size_t g = 0; g < task.groups.size(); ++g) {
      const TokenGroup& group = task.groups[g];
      if (group.tokens <= 0) continue;
      const auto list = view.directory->replicas(task.layer, group.expert);
      int best = list.front();
      const auto hops = [&](int id) { return cost_.hops(group.source, view.directory->replica(id).at.chiplet); };
      for (int id : list)
        if (hops(id) < hops(best)) best = id;
      out.push_back({static_cast<int>(g), best, group.tokens});
    }
  }

  [[nodiscard]] double migration_weight() const override { return s_.slow_loop.alpha_mig; }

 private:
  void refresh(const PolicyView& view) {
    if (!cost_.made_for(view.package, view.model)) cost_ = CostModel(*view.package, *view.model);
  }

  void place_first(const PlacementTask& task, const CostModel& cost, PlacementBuilder& builder,
                   std::vector<LayerPlan>& plans) const {
    const Profile& p = *task.profile;
    std::vector<std::vector<int>> order(static_cast<size_t>(p.layers));
    std::vector<std::vector<double>> hop(static_cast<size_t>(p.layers));
    std::vector<double> ideal(static_cast<size_t>(p.layers));
    const size_t block = static_cast<size_t>(p.experts) * static_cast<size_t>(cost.chiplets());
    for (int l = 0; l < p.layers; ++l) {
      const auto li = static_cast<size_t>(l);
      plans.emplace_back(cost, p.experts);
      double tokens = 0, streams = 0;
      for (int e = 0; e < p.experts; ++e) {
        const Demand d = demand_of(p, l, e);
        plans.back().demand[static_cast<size_t>(e)] = d;
        tokens += d.tokens;
        streams += d.active;
      }
      ideal[li] = std::max(cost.ideal_s(tokens, streams), 1e-30);
      order[li].resize(static_cast<size_t>(p.experts));
      std::iota(order[li].begin(), order[li].end(), 0);
      const auto& demand = plans.back().demand;
      std::stable_sort(order[li].begin(), order[li].end(), [&](int a, int b) {
        const Demand &x = demand[static_cast<size_t>(a)], &y = demand[static_cast<size_t>(b)];
        const long ax = std::lround(x.active * 64), ay = std::lround(y.active * 64);
        return ax != ay ? ax > ay : x.tokens > y.tokens;
      });
      hop_table(cost, std::span(p.source).subspan(li * block, block), p.experts, hop[li]);
    }
    // Shared tiers must take what near tiers cannot; if that is more than their share of the bandwidth, they are the
    // bottleneck anyway and take the coldest only.
    const double total = static_cast<double>(p.layers) * p.experts;
    const double overflow = std::max(0.0, total - builder.near_room()) / std::max(1.0, total);
    const bool shared_scarce = overflow > shared_bandwidth(*task.package);
    const double near_all = std::max(1.0, static_cast<double>(builder.near_room()));
    std::vector<int> near_used(static_cast<size_t>(p.layers), 0);
    const int near_share = static_cast<int>(std::ceil(near_all / p.layers));
    for (int rank = 0; rank < p.experts; ++rank)
      for (int l = 0; l < p.layers; ++l) {
        const auto li = static_cast<size_t>(l);
        const int e = order[li][static_cast<size_t>(rank)];
        LayerPlan& plan = plans[li];
        Location at;
        const bool near_only = shared_scarce && near_used[li] < near_share;
        if (!cheapest(builder, cost, plan, hop[li], ideal[li], l, e, near_only, at) &&
            !(near_only && cheapest(builder, cost, plan, hop[li], ideal[li], l, e, false, at)) &&
            !builder.find_anywhere(l, 0, true, at))
          continue;
        if (!builder.put(l, e, at)) continue;
        near_used[li] += at.tier != Tier::dram;
        plan.set_replicas(e, {at});
      }
  }

  static double shared_bandwidth(const Package& package) {
    double near = 0, shared = 0;
    for (const BankSet& s : package.bank_sets)
      (s.tier == Tier::dram ? shared : near) += static_cast<double>(s.bandwidth) * (s.tier == Tier::sram ? 0 : 1);
    return near + shared > 0 ? shared / (near + shared) : 1.0;
  }

  /// (35): argmin of (36) over every location with room.
  bool cheapest(const PlacementBuilder& builder, const CostModel& cost, const LayerPlan& plan,
                const std::vector<double>& hop, double ideal, int l, int e, bool near_only, Location& best) const {
    (void)l;
    const Demand& d = plan.demand[static_cast<size_t>(e)];
    double room[kTiers], best_cost = 0, near_best = 1e300;
    for (int t = 0; t < kTiers; ++t) room[t] = builder.tier_room(static_cast<Tier>(t));
    bool found = false;
    for (int t = 0; t < kTiers; ++t) {
      const Tier tier = static_cast<Tier>(t);
      if (builder.masked(tier) || room[t] <= 0) continue;
      // A shared tier only when near banks would bound the layer.
      if (tier == Tier::dram && found && (near_only || near_best <= s_.near_full * ideal)) continue;
      for (int c = 0; c < cost.chiplets(); ++c)
        for (int s : cost.package().visible(tier, c)) {
          if (builder.room(s) <= 0) continue;
          const double bank = plan.load.bank[static_cast<size_t>(s)] + d.active * cost.stream_s(s);
          const double queue = plan.load.compute[static_cast<size_t>(c)] + cost.compute_s(c, d.tokens, d.active);
          const double hops =
              d.tokens > 0
                  ? hop[static_cast<size_t>(e) * static_cast<size_t>(cost.chiplets()) + static_cast<size_t>(c)] /
                        d.tokens
                  : 0.0;
          const double total =
              s_.alpha_p * (hops + static_cast<double>(cost.set_route(s, c).size())) / cost.diameter() +
              s_.beta_p * queue / ideal + s_.chi_p * bank / ideal + s_.psi_p / (1.0 + room[t]);
          if (tier != Tier::dram) near_best = std::min(near_best, bank);
          if (found && total >= best_cost) continue;
          best = {tier, c, s};
          best_cost = total;
          found = true;
        }
    }
    return found;
  }

  void place_copies(const PlacementTask& task, const CostModel& cost, PlacementBuilder& builder,
                    std::vector<LayerPlan>& plans) const {
    const int layers = task.profile->layers;
    std::vector<CopyChoice> choice(static_cast<size_t>(layers));
    const auto search = [&](int l) {
      LayerPlan& plan = plans[static_cast<size_t>(l)];
      CopyChoice c = best_copy(
          cost, plan, 8, 8, [&](int e) { return builder.may_copy(l, e); },
          [&](const Location& to) { return builder.room(to.bank_set) > 0 && !builder.masked(to.tier); });
      if (c.expert >= 0 && s_.eta_p > 0) diversify(cost, plan, builder, l, c);
      if (c.gain < s_.copy_gain * plan.smooth()) c = {};
      choice[static_cast<size_t>(l)] = c;
    };
    for (int l = 0; l < layers; ++l) search(l);
    while (builder.copies_left() > 0) {
      int best = -1;
      for (int l = 0; l < layers; ++l)
        if (choice[static_cast<size_t>(l)].expert >= 0 &&
            (best < 0 || choice[static_cast<size_t>(l)].gain > choice[static_cast<size_t>(best)].gain))
          best = l;
      if (best < 0) break;
      const CopyChoice c = choice[static_cast<size_t>(best)];
      if (builder.put(best, c.expert, c.to)) {
        std::vector<Location> with = plans[static_cast<size_t>(best)].at[static_cast<size_t>(c.expert)];
        with.push_back(c.to);
        plans[static_cast<size_t>(best)].set_replicas(c.expert, std::move(with));
      }
      search(best);
    }
  }

  /// Spare copies [R]: the mean profile looks level once it is levelled, but windows are not the mean, and only a
  /// second place lets the fast mapper answer. What is left of the budget goes, a copy a layer in turn, to the expert
  /// with most tokens a copy, on the chiplet with the shortest queue, while the layer is bound by compute, the backing
  /// bank set stays below `spare_bank` of the compute time and each copy keeps `spare_tiles` tiles.
  void place_spares(const PlacementTask& task, const CostModel& cost, PlacementBuilder& builder,
                    std::vector<LayerPlan>& plans) const {
    const double least = s_.spare_tiles * cost.tile();
    bool placed = true;
    while (placed && builder.copies_left() > 0) {
      placed = false;
      for (int l = 0; l < task.profile->layers && builder.copies_left() > 0; ++l) {
        LayerPlan& plan = plans[static_cast<size_t>(l)];
        const double limit = s_.spare_bank * plan.load.max_compute();
        if (plan.load.max_bank() > limit) continue;
        int expert = -1;
        double most = 0;
        for (int e = 0; e < task.profile->experts; ++e) {
          const auto i = static_cast<size_t>(e);
          const double share = plan.demand[i].tokens / static_cast<double>(std::max<size_t>(1, plan.at[i].size()));
          // Split further, an expert would fill its tiles worse than copies could level the queues.
          if (share <= most || plan.demand[i].tokens < least * static_cast<double>(plan.at[i].size() + 1)) continue;
          if (!builder.may_copy(l, e)) continue;
          most = share;
          expert = e;
        }
        Location to;
        if (expert < 0 || !spare_place(cost, builder, plan, expert, limit, to) || !builder.put(l, expert, to)) continue;
        std::vector<Location> with = plan.at[static_cast<size_t>(expert)];
        with.push_back(to);
        plan.set_replicas(expert, std::move(with));
        placed = true;
      }
    }
  }

  /// Chiplets that hold few replicas of split experts come first: the mapper can shift work between two chiplets only
  /// through an expert they share, so spares pay by connecting all of them, not by piling up on the shortest queue.
  bool spare_place(const CostModel& cost, const PlacementBuilder& builder, const LayerPlan& plan, int expert,
                   double limit, Location& to) const {
    const auto& have = plan.at[static_cast<size_t>(expert)];
    std::vector<int> shared(static_cast<size_t>(cost.chiplets()), 0);
    for (const auto& replicas : plan.at)
      if (replicas.size() > 1)
        for (const Location& at : replicas) ++shared[static_cast<size_t>(at.chiplet)];
    bool found = false;
    int best_shared = 0;
    double best_queue = 0, best_bank = 0;
    for (int c = 0; c < cost.chiplets(); ++c) {
      if (std::any_of(have.begin(), have.end(), [&](const Location& at) { return at.chiplet == c; })) continue;
      const int count = shared[static_cast<size_t>(c)];
      const double queue = plan.load.compute[static_cast<size_t>(c)];
      for (int t = 0; t < kTiers; ++t)
        for (int set : cost.package().visible(static_cast<Tier>(t), c)) {
          if (builder.room(set) <= 0 || builder.masked(static_cast<Tier>(t))) continue;
          const double bank = plan.load.bank[static_cast<size_t>(set)] + cost.stream_s(set);
          if (bank > limit) continue;
          if (found && std::tie(count, queue, bank) >= std::tie(best_shared, best_queue, best_bank)) continue;
          to = {static_cast<Tier>(t), c, set};
          best_shared = count;
          best_queue = queue;
          best_bank = bank;
          found = true;
        }
    }
    return found;
  }

  /// D_div of (36): among places within eta_p of the best gain, the one farthest from the copies there are.
  void diversify(const CostModel& cost, const LayerPlan& plan, const PlacementBuilder& builder, int l,
                 CopyChoice& c) const {
    (void)l;
    const auto& have = plan.at[static_cast<size_t>(c.expert)];
    const double now = plan.smooth(), least = c.gain * (1.0 - s_.eta_p);
    const auto apart = [&](int chiplet) {
      int d = cost.diameter();
      for (const Location& at : have) d = std::min(d, cost.hops(at.chiplet, chiplet));
      return d;
    };
    int best = apart(c.to.chiplet);
    std::vector<Location> with = have;
    with.push_back(c.to);
    for (int chiplet = 0; chiplet < cost.chiplets(); ++chiplet) {
      if (apart(chiplet) <= best) continue;
      for (int s : cost.package().visible(c.to.tier, chiplet)) {
        if (builder.room(s) <= 0) continue;
        const Location to{c.to.tier, chiplet, s};
        with.back() = to;
        const double gain = now - plan.smooth_if(c.expert, with);
        if (gain < least) continue;
        best = apart(chiplet);
        c.to = to;
        c.gain = gain;
        break;
      }
    }
  }

  Settings s_;
  CostModel cost_;
  FastMapper mapper_;
  std::unique_ptr<SlowController> controller_;
};

Settings settings_of(const ParamSet& p) {
  Settings s;
  const bool link = p.flag("link_aware"), bank = p.flag("bank_aware"), load = p.flag("load_aware");
  s.alpha_p = link ? p.number("alpha_p") : 0.0;
  s.beta_p = load ? p.number("beta_p") : 0.0;
  s.chi_p = bank ? p.number("chi_p") : 0.0;
  s.psi_p = p.number("psi_p");
  s.eta_p = p.number("eta_p");
  s.near_full = p.number("near_full");
  s.copy_gain = p.number("copy_gain");
  s.spare_bank = p.number("spare_bank");
  s.spare_tiles = p.number("spare_tiles");
  s.fast_map = p.flag("fast_map");
  s.copies = p.flag("copies");
  s.slow = p.word("slow");
  s.checkpoint = p.word("checkpoint");
  s.map = {load ? p.number("omega_q") : 0.0, link ? p.number("omega_p") : 0.0,     bank ? p.number("omega_b") : 0.0,
           bank ? p.number("omega_s") : 0.0, static_cast<int>(p.integer("block")), p.word("normalise") == "minmax"};
  SlowSettings& w = s.slow_loop;
  w.horizon = p.number("horizon");
  w.hysteresis = p.flag("migration_aware") ? p.number("hysteresis") : 0.0;
  w.alpha_mig = p.number("alpha_mig");
  w.defer_link = p.number("defer_link");
  w.defer_mig = p.number("defer_mig");
  w.layers = static_cast<int>(p.integer("search_layers"));
  w.migration_aware = p.flag("migration_aware");
  w.link_aware = link;
  w.bank_ratio = s.map.queue > 0 ? s.map.bank / s.map.queue : 0.0;
  w.stream_ratio = s.map.queue > 0 ? s.map.stream / s.map.queue : 0.0;
  w.hbm = p.flag("hbm_tier");
  return s;
}

}  // namespace

void register_policies_hcrmap(PolicyRegistry& registry) {
  using I = std::int64_t;
  const auto num = [](const char* name, double value, double max, const char* text, const char* source) {
    return Param{name, Unit::none, value, 0.0, max, {}, text, source};
  };
  const auto flag = [](const char* name, const char* text) {
    return Param{name, Unit::none, true, -1e300, 1e300, {}, text, "6.7, ablation of Figure 6"};
  };
  registry.add(
      {"hcrmap",
       "multi-level residency, bounded copies and pressure-aware token mapping (HCRMap, arXiv 2607.11586)",
       {num("alpha_p", 0.1, 1e3, "weight of source distance in (36)", "[R], tuned"),
        num("beta_p", 1.0, 1e3, "weight of the compute queue in (36)", "[R]"),
        num("chi_p", 0.3, 1e3, "weight of bank pressure in (36)", "[R], tuned"),
        num("psi_p", 0.1, 1e3, "weight of capacity scarcity in (36)", "[R], tuned"),
        num("eta_p", 0.1, 1.0, "gain that may be given up for location diversity, as a share", "[R], tuned"),
        num("near_full", 1.0, 1e3, "near-bank service over ideal time above which shared tiers help", "[R], tuned"),
        num("copy_gain", 0.0002, 1.0, "least fall of the smooth layer time for an initial copy, as a share",
            "[R], tuned"),
        num("spare_bank", 0.9, 1.0, "bank over compute time up to which spare copies are placed; 0: none", "[R]"),
        num("spare_tiles", 2.0, 1e6, "tiles of tokens each copy of a spared expert must keep on average", "[R]"),
        num("omega_q", 0.4, 1e3, "weight of queued service in (39)", "[R]"),
        num("omega_p", 0.2, 1e3, "weight of path pressure in (39)", "[R]"),
        num("omega_b", 0.05, 1e3, "weight of bank pressure in (39)", "[R], on synthetic training traces"),
        num("omega_s", 0.02, 1e3, "weight of the stream a replica would start in (39)",
            "[R], on synthetic training traces"),
        {"block", Unit::tokens, I{64}, 1, 65536, {}, "tokens mapped before the counters are updated", "[R], 6.7"},
        {"normalise",
         Unit::none,
         std::string("time"),
         -1e300,
         1e300,
         {"time", "minmax"},
         "scale of the four terms: seconds, or 0..1 over the legal replicas",
         "[R]"},
        {"slow",
         Unit::none,
         std::string("dqn"),
         -1e300,
         1e300,
         {"dqn", "amortised", "none"},
         "slow-loop controller: masked Double DQN, closed-form rule, or no updates",
         "6.3; amortised is [R]"},
        {"checkpoint",
         Unit::none,
         std::string(kShippedCheckpoint),
         -1e300,
         1e300,
         {},
         "frozen Q-network of slow = dqn: a name in checkpoints/ or a file of sojourn train",
         "6.9"},
        {"horizon", Unit::windows, 32.0, 0.0, 1e6, {}, "windows over which an action must pay", "[R]"},
        num("hysteresis", 0.01, 1.0, "least gain of an action as a share of its layer's time", "[R]"),
        num("alpha_mig", kMigrationWeight, 1e3,
            "weight of migrations: of their traffic in pressures, of exposed time in amortised", "(6), [R]"),
        num("defer_link", 0.85, 1e3, "link pressure above which no migration starts", "[R], 6.8"),
        num("defer_mig", 0.5, 1e3, "migration pressure above which no migration starts", "[R], 6.8"),
        {"search_layers", Unit::none, I{4}, 1, 4096, {}, "layers searched a window, those farthest from ideal", "ours"},
        flag("link_aware", "use link pressure"),
        flag("bank_aware", "use bank pressure"),
        flag("load_aware", "use compute-load pressure"),
        flag("migration_aware", "weigh and defer migrations"),
        flag("hbm_tier", "use HBM"),
        flag("fast_map", "fast token mapping; off: nearest replica"),
        flag("copies", "initial copies within the budget")}},
      [](const ParamSet& p) -> std::unique_ptr<Policy> { return std::make_unique<HcrmapPolicy>(settings_of(p)); });
}

}  // namespace sojourn
