// Candidate generation, legality and the amortised rule of HCRMap's slow loop; see slow_loop.h.
#include "policy/slow_loop.h"

#include <numeric>

namespace sojourn {
namespace {

double at_or_zero(const std::vector<double>& v, int i) {
  return static_cast<size_t>(i) < v.size() ? v[static_cast<size_t>(i)] : 0.0;
}

/// Search over one window: plans of all layers and the limits a candidate must keep.
class Search {
 public:
  Search(const SlowSettings& s, const CostModel& cost, const PolicyView& view) : s_(s), cost_(cost), view_(view) {}

  void run(SlowState& state, std::vector<SlowCandidate>& out) {
    const DirectoryView& dir = *view_.directory;
    const Bytes size = std::max<Bytes>(1, dir.expert_bytes());
    budget_left_ = view_.limits->budget / size - dir.resident_bytes() / size;
    std::vector<std::pair<double, int>> order;
    plans_.reserve(static_cast<size_t>(view_.layers));
    for (int l = 0; l < view_.layers; ++l) {
      plans_.emplace_back(cost_, view_.experts);
      LayerPlan& plan = plans_.back();
      double tokens = 0, streams = 0;
      for (int e = 0; e < view_.experts; ++e) {
        const auto i = static_cast<size_t>(e);
        plan.demand[i] = demand_of(view_, l, e);
        tokens += plan.demand[i].tokens;
        streams += plan.demand[i].active;
        for (int id : dir.replicas(l, e)) plan.at[i].push_back(dir.replica(id).at);
      }
      plan.rebuild();
      state.layers_s += plan.smooth();
      order.emplace_back(cost_.ideal_s(tokens, streams) - plan.smooth(), l);
    }
    std::sort(order.begin(), order.end());
    for (size_t i = 0; i < order.size() && static_cast<int>(i) < s_.layers; ++i) {
      const int l = order[i].second;
      const CopyChoice blocked = copies(l, out);
      nearer(l, out);
      evictions(l, blocked.gain, out);
    }
  }

 private:
  [[nodiscard]] bool room(const Location& to) const {
    if (to.tier == Tier::hbm && !s_.hbm) return false;
    const Bytes n = std::max(1, view_.package->bank_sets[static_cast<size_t>(to.bank_set)].count);
    return view_.directory->free_bytes(to.bank_set) >= (view_.directory->expert_bytes() + n - 1) / n * n;
  }

  [[nodiscard]] bool old_enough(const Replica& r) const {
    return r.born_window <= 0 || view_.window - r.born_window >= view_.limits->age_min;
  }

  /// Fills exposure and checks (40); false if the path is too busy now.
  bool migration(const Location& from, SlowCandidate& c) const {
    if (c.action.kind == ActionKind::evict || view_.pressure == nullptr) return true;
    const auto& sets = view_.package->bank_sets;
    const auto path = view_.package->route_chiplets(sets[static_cast<size_t>(from.bank_set)].owner,
                                                    sets[static_cast<size_t>(c.action.to.bank_set)].owner);
    const double window_s = ps_to_s(view_.window_ps);
    double transfer = std::max(cost_.stream_s(from.bank_set), cost_.stream_s(c.action.to.bank_set));
    double busy = std::max(at_or_zero(view_.pressure->bank_util, from.bank_set),
                           at_or_zero(view_.pressure->bank_util, c.action.to.bank_set));
    for (int u : path) {
      const double mine = cost_.expert_bytes() / cost_.link_rate(u);
      transfer = std::max(transfer, mine);
      const double util = at_or_zero(view_.pressure->link_util, u);
      busy = std::max(busy, util);
      if (window_s > 0 && util + mine / window_s > view_.limits->link_threshold) return false;
    }
    c.exposed_s = transfer * std::clamp(busy, 0.0, 1.0);
    return true;
  }

  void add(ActionKind kind, int l, int e, int replica, const Location& from, const Location& to, double gain,
           std::vector<SlowCandidate>& out) const {
    SlowCandidate c;
    c.action = {kind, l, e, replica, to};
    c.gain_s = gain;
    c.layer_s = plans_[static_cast<size_t>(l)].smooth();
    if (!migration(from, c)) return;
    const size_t i = static_cast<size_t>(l) * static_cast<size_t>(view_.experts) + static_cast<size_t>(e);
    const double mean = view_.ewma[i], sigma = i < view_.sigma.size() ? view_.sigma[i] : 0.0;
    c.persistence = mean > 0 ? std::clamp(1.0 - sigma / mean, 0.0, 1.0) : 0.0;
    out.push_back(c);
  }

  /// Copies; returns the best one that only the budget or capacity forbids.
  CopyChoice copies(int l, std::vector<SlowCandidate>& out) const {
    const LayerPlan& plan = plans_[static_cast<size_t>(l)];
    const DirectoryView& dir = *view_.directory;
    const auto may = [&](int e) {
      return static_cast<int>(dir.replicas(l, e).size()) < view_.limits->replicas_max && !dir.has_pending(l, e);
    };
    const CopyChoice free =
        best_copy(cost_, plan, s_.experts, s_.targets, may, [&](const Location& to) { return room(to); });
    if (free.expert < 0 || budget_left_ <= 0) return free;
    // The engine reads a new copy from the nearest replica; exposure is estimated from the oldest.
    const Location from = dir.replica(dir.replicas(l, free.expert).front()).at;
    add(ActionKind::promote, l, free.expert, -1, from, free.to, free.gain, out);
    return {};
  }

  /// Moves of the busiest experts of the fullest bank set (or chiplet) to where they cost least; when every near tier
  /// of a chiplet is full, the demotion of its coldest near replica that would make room.
  void nearer(int l, std::vector<SlowCandidate>& out) const {
    const LayerPlan& plan = plans_[static_cast<size_t>(l)];
    const DirectoryView& dir = *view_.directory;
    const double now = plan.smooth();
    const auto fullest = [](const std::vector<double>& v) {
      return static_cast<int>(std::max_element(v.begin(), v.end()) - v.begin());
    };
    const int set = fullest(plan.load.bank), chiplet = fullest(plan.load.compute);
    const bool memory = plan.load.max_bank() > plan.load.max_compute();
    std::vector<std::pair<double, int>> busy;
    for (int e = 0; e < view_.experts; ++e) {
      const auto i = static_cast<size_t>(e);
      if (plan.at[i].size() != 1 || dir.has_pending(l, e) || !old_enough(dir.replica(dir.replicas(l, e).front())))
        continue;
      const Location& here = plan.at[i].front();
      if (memory ? here.bank_set == set : here.chiplet == chiplet) busy.emplace_back(-plan.demand[i].tokens, e);
    }
    std::sort(busy.begin(), busy.end());
    for (size_t k = 0; k < busy.size() && static_cast<int>(k) < s_.experts; ++k) {
      const int e = busy[k].second;
      const Location here = plan.at[static_cast<size_t>(e)].front();
      Location best_to, blocked_to;
      double best = 0, blocked = 0;
      for (int c = 0; c < cost_.chiplets(); ++c)
        for (int t = 0; t <= static_cast<int>(here.tier); ++t)
          for (int s : view_.package->visible(static_cast<Tier>(t), c)) {
            const Location to{static_cast<Tier>(t), c, s};
            if (to == here || (to.tier == Tier::hbm && !s_.hbm)) continue;
            if (view_.package->bank_sets[static_cast<size_t>(s)].usable < dir.expert_bytes()) continue;
            const double gain = now - plan.smooth_if(e, std::span(&to, 1));
            double& which = room(to) ? best : blocked;
            if (gain <= which) continue;
            which = gain;
            (room(to) ? best_to : blocked_to) = to;
          }
      const int id = dir.replicas(l, e).front();
      if (best > 0)
        add(best_to.tier < here.tier ? ActionKind::promote : ActionKind::relocate, l, e, id, here, best_to, best, out);
      if (blocked > 2 * best) make_room(blocked_to, plan.demand[static_cast<size_t>(e)].active, blocked, out);
    }
  }

  /// Demotes the replica of set `full` whose activity is least over all layers, if it is much colder than the one
  /// waiting.
  void make_room(const Location& full, double waiting_active, double gain, std::vector<SlowCandidate>& out) const {
    const DirectoryView& dir = *view_.directory;
    int bl = -1, be = -1, bid = -1;
    double coldest = 0.5 * waiting_active;
    for (int l = 0; l < view_.layers; ++l)
      for (int e = 0; e < view_.experts; ++e) {
        const auto& at = plans_[static_cast<size_t>(l)].at[static_cast<size_t>(e)];
        const double active = plans_[static_cast<size_t>(l)].demand[static_cast<size_t>(e)].active;
        if (active >= coldest || dir.has_pending(l, e)) continue;
        for (size_t i = 0; i < at.size(); ++i)
          if (at[i].bank_set == full.bank_set && old_enough(dir.replica(dir.replicas(l, e)[i]))) {
            bl = l, be = e, bid = dir.replicas(l, e)[i];
            coldest = active;
          }
      }
    if (bid < 0) return;
    const Location from = dir.replica(bid).at;
    const LayerPlan& plan = plans_[static_cast<size_t>(bl)];
    Location to;
    double best = 0;
    for (int t = static_cast<int>(from.tier) + 1; t < kTiers; ++t)
      for (int s : view_.package->visible(static_cast<Tier>(t), from.chiplet)) {
        const Location candidate{static_cast<Tier>(t), from.chiplet, s};
        if (!room(candidate)) continue;
        const double lost = plan.smooth_if(be, std::span(&candidate, 1)) - plan.smooth();
        // Half of the gain: it comes a window later, and only if the promotion follows.
        if (0.5 * gain - lost > best) {
          best = 0.5 * gain - lost;
          to = candidate;
        }
      }
    if (best > 0) add(ActionKind::demote, bl, be, bid, from, to, best, out);
  }

  /// Extra replicas the layer would do as well without; more urgent when one is waiting for their bytes.
  void evictions(int l, double blocked, std::vector<SlowCandidate>& out) const {
    const LayerPlan& plan = plans_[static_cast<size_t>(l)];
    const DirectoryView& dir = *view_.directory;
    const double now = plan.smooth();
    std::vector<Location> rest;
    for (int e = 0; e < view_.experts; ++e) {
      const auto list = dir.replicas(l, e);
      if (list.size() < 2 || dir.has_pending(l, e)) continue;
      for (size_t i = 0; i < list.size(); ++i) {
        if (!old_enough(dir.replica(list[i]))) continue;
        rest = plan.at[static_cast<size_t>(e)];
        const Location gone = rest[i];
        rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
        const double lost = plan.smooth_if(e, rest) - now;
        const double gain = 0.5 * blocked - lost;
        if (gain > 0) add(ActionKind::evict, l, e, list[i], gone, gone, gain, out);
      }
    }
  }

  const SlowSettings& s_;
  const CostModel& cost_;
  const PolicyView& view_;
  std::vector<LayerPlan> plans_;
  std::int64_t budget_left_ = 0;
};

class Amortised final : public SlowController {
 public:
  explicit Amortised(const SlowSettings& s) : s_(s) {}
  void score(const SlowState& state, std::vector<SlowCandidate>& candidates) override {
    const Pressure* p = state.view->pressure;
    const double horizon = std::max(s_.horizon, static_cast<double>(state.view->limits->age_min));
    const bool busy =
        s_.migration_aware && p != nullptr && ((s_.link_aware && p->link > s_.defer_link) || p->mig > s_.defer_mig);
    for (SlowCandidate& c : candidates) {
      const bool moves = c.action.kind != ActionKind::evict;
      const double cost = s_.migration_aware && moves ? s_.alpha_mig * c.exposed_s : 0.0;
      const double phi = s_.migration_aware ? c.persistence : 1.0;
      c.score = phi * horizon * c.gain_s - cost;
      if (c.gain_s < s_.hysteresis * c.layer_s || (busy && moves)) c.score = 0;
    }
  }

 private:
  SlowSettings s_;
};

}  // namespace

std::unique_ptr<SlowController> make_amortised(const SlowSettings& settings) {
  return std::make_unique<Amortised>(settings);
}

void SlowController::propose(const SlowSettings& settings, const CostModel& cost, const PolicyView& view,
                             SlowState& state, std::vector<SlowCandidate>& out) {
  slow_candidates(settings, cost, view, state, out);
}

void slow_candidates(const SlowSettings& settings, const CostModel& cost, const PolicyView& view, SlowState& state,
                     std::vector<SlowCandidate>& out) {
  state.view = &view;
  Search(settings, cost, view).run(state, out);
}

void slow_decide(const SlowSettings& settings, const CostModel& cost, SlowController& controller,
                 const PolicyView& view, std::vector<Action>& out) {
  SlowState state;
  std::vector<SlowCandidate> candidates;
  controller.propose(settings, cost, view, state, candidates);
  controller.score(state, candidates);
  std::stable_sort(candidates.begin(), candidates.end(), [](const SlowCandidate& a, const SlowCandidate& b) {
    if (a.score != b.score) return a.score > b.score;
    if (a.action.layer != b.action.layer) return a.action.layer < b.action.layer;
    if (a.action.expert != b.action.expert) return a.action.expert < b.action.expert;
    return a.action.kind < b.action.kind;
  });
  std::vector<std::pair<int, int>> taken;
  for (const SlowCandidate& c : candidates) {
    if (static_cast<int>(taken.size()) >= view.limits->updates_max || c.score <= 0) break;
    const std::pair<int, int> key{c.action.layer, c.action.expert};
    if (std::find(taken.begin(), taken.end(), key) != taken.end()) continue;
    taken.push_back(key);
    out.push_back(c.action);
  }
}

}  // namespace sojourn
