// Candidates of the learned slow loop and their features; see dqn.h.
#include <algorithm>
#include <cassert>
#include <cmath>

#include "policy/dqn.h"
#include "residency/residency.h"

namespace sojourn {
namespace {

// Places of the features; the names, in this order, are part of a checkpoint.
enum Feature : size_t {
  kGainSlow,
  kGainRecent,
  kGainTime,
  kExposed,
  kTransfer,
  kDemand,
  kFluctuation,
  kTrend,
  kQueueFrom,
  kQueueTo,
  kBankFrom,
  kBankTo,
  kReplicas,
  kTierFrom,
  kTierTo,
  kCopy,
  kPromote,
  kRelocate,
  kDemote,
  kEvict,
  kNoOp,
  kSameBanks,
  kExcess,
  kMemoryShare,
  kUnused,
  kHops,
  kBlocked,
  kLayerWeight,
  // The same for every action of a window:
  kBudgetLeft,
  kLink,
  kBank,
  kLoad,
  kMig,
  kTier,
  kBest,
  kTokens,
  kCount
};
static_assert(kCount == kSlowFeatures);

constexpr double kGainScale = 16;  // a gain of 1/16 of a layer's time is 1

float clamped(double x) { return static_cast<float>(std::clamp(x, -4.0, 4.0)); }

}  // namespace

const std::vector<std::string>& dqn_feature_names() {
  static const std::vector<std::string> names = {
      "gain_slow",   "gain_recent", "gain_time",    "exposed",      "transfer",    "demand",
      "fluctuation", "trend",       "queue_from",   "queue_to",     "bank_from",   "bank_to",
      "replicas",    "tier_from",   "tier_to",      "is_copy",      "is_promote",  "is_relocate",
      "is_demote",   "is_evict",    "is_no_op",     "same_banks",   "excess",      "memory_share",
      "unused",      "hops",        "blocked_gain", "layer_weight", "budget_left", "p_link",
      "p_bank",      "p_load",      "p_mig",        "p_tier",       "best_gain",   "tokens"};
  return names;
}

void DqnScan::observe(const CostModel& cost, const PolicyView& view) {
  cost_ = &cost;
  view_ = &view;
  // The simulator's directory: legal() needs its ledger, which the narrow view does not show.
  residency_ = dynamic_cast<const Residency*>(view.directory);
  assert(residency_ != nullptr);
  const size_t n = static_cast<size_t>(view.layers) * static_cast<size_t>(view.experts);
  if (slow_.size() != n) {
    slow_ = view.profile->demand;
    assert(slow_.size() == n);
    observed_ = std::max(1, view.profile->windows);
    seen_window_ = view.window;
    turn_ = 0;
    promise_.assign(static_cast<size_t>(view.layers), 0.0);
    smooth_.assign(static_cast<size_t>(view.layers), 0.0);
    mean_hops_.assign(static_cast<size_t>(cost.chiplets()), 0.0);
    for (int c = 0; c < cost.chiplets(); ++c)
      for (int s = 0; s < cost.chiplets(); ++s)
        mean_hops_[static_cast<size_t>(c)] += static_cast<double>(cost.hops(s, c)) / cost.chiplets();
  } else if (view.window != seen_window_) {
    seen_window_ = view.window;
    const double rate = std::max(kSlowRate, 1.0 / ++observed_);
    for (size_t i = 0; i < n; ++i) slow_[i] += rate * (view.last[i] - slow_[i]);
  }
  const DirectoryView& dir = *view.directory;
  const Bytes size = std::max<Bytes>(1, dir.expert_bytes());
  budget_left_ = std::max<std::int64_t>(0, view.limits->budget / size - dir.resident_bytes() / size);
}

void DqnScan::propose(const CostModel& cost, const PolicyView& view, SlowState& state,
                      std::vector<SlowCandidate>& out) {
  const bool first = slow_.empty();
  observe(cost, view);
  state.view = &view;
  const auto layers = static_cast<size_t>(view.layers);
  std::vector<int> chosen;
  if (first) {
    for (int l = 0; l < view.layers; ++l) chosen.push_back(l);
  } else {
    // The best promises first, ties by number; the layer whose turn it is takes the last place.
    std::vector<std::uint8_t> taken(layers, 0);
    const int turn = turn_;
    turn_ = (turn_ + 1) % view.layers;
    taken[static_cast<size_t>(turn)] = 1;
    for (int k = 0; k + 1 < kSearchLayers && k + 1 < view.layers; ++k) {
      int best = -1;
      for (int l = 0; l < view.layers; ++l)
        if (!taken[static_cast<size_t>(l)] &&
            (best < 0 || promise_[static_cast<size_t>(l)] > promise_[static_cast<size_t>(best)]))
          best = l;
      taken[static_cast<size_t>(best)] = 1;
      chosen.push_back(best);
    }
    chosen.push_back(turn);
  }
  double known = 0;
  int counted = 0;
  for (double j : smooth_) known += j, counted += j > 0;
  unit_ = counted > 0 ? known / counted : 0;
  best_ = 0;
  const size_t from = out.size();
  for (int l : chosen) {
    const auto i = static_cast<size_t>(l);
    promise_[i] = layer(l, out);
    best_ = std::max(best_, promise_[i]);
  }
  state.no_op.fill(0);
  state.no_op[kNoOp] = 1;
  shared_features(state.no_op);
  for (size_t i = from; i < out.size(); ++i) shared_features(out[i].features);
}

double DqnScan::layer(int l, std::vector<SlowCandidate>& out) {
  const auto experts = static_cast<size_t>(view_->experts), row = static_cast<size_t>(l) * experts;
  slow_plan_.build(*cost_, *view_->directory, l, std::span<const double>(slow_).subspan(row, experts));
  recent_plan_.build_beside(slow_plan_, view_->ewma.subspan(row, experts));
  smooth_[static_cast<size_t>(l)] = slow_plan_.smooth();
  if (unit_ <= 0) unit_ = std::max(1e-30, slow_plan_.smooth());
  targets();
  const size_t from = out.size();
  blocked_ = 0;
  copies(l, out);
  moves(l, out);
  evictions(l, out);
  double best = 0;
  for (size_t i = from; i < out.size(); ++i) {
    best = std::max(best, out[i].gain_s);
    out[i].features[kBlocked] = clamped(kGainScale * blocked_ / unit_);
  }
  return std::max(best, 0.5 * blocked_);
}

bool DqnScan::room(int set) const {
  const Bytes n = std::max(1, view_->package->bank_sets[static_cast<size_t>(set)].count);
  return view_->directory->free_bytes(set) >= (view_->directory->expert_bytes() + n - 1) / n * n;
}

/// Where work may go: the chiplets with the shortest queues and those that own the least-served bank sets, each with
/// its own tiers, and of shared tiers the least-served set.
void DqnScan::targets() {
  constexpr size_t kByQueue = 5, kByBank = 3;
  const bool memory = *std::max_element(slow_plan_.bank().begin(), slow_plan_.bank().end()) >
                      0.5 * *std::max_element(slow_plan_.compute().begin(), slow_plan_.compute().end());
  targets_.clear();
  std::vector<int> chiplets;
  const auto near_bank = [&](int c) {  // the nearest tier this chiplet has a place in
    double least = 1e300;
    for (Tier t : {Tier::sram, Tier::hbm})
      for (int s : view_->package->visible(t, c)) least = std::min(least, slow_plan_.bank()[static_cast<size_t>(s)]);
    return least;
  };
  const auto pick = [&](size_t most, const auto& key) {
    for (size_t k = 0; k < most && chiplets.size() < static_cast<size_t>(cost_->chiplets()); ++k) {
      int best = -1;
      for (int c = 0; c < cost_->chiplets(); ++c)
        if (std::find(chiplets.begin(), chiplets.end(), c) == chiplets.end() && (best < 0 || key(c) < key(best)))
          best = c;
      chiplets.push_back(best);
    }
  };
  pick(kByQueue, [&](int c) { return slow_plan_.compute()[static_cast<size_t>(c)]; });
  if (memory) pick(kByBank, near_bank);
  for (int c : chiplets)
    for (int t = 0; t < kTiers; ++t) {
      const Tier tier = static_cast<Tier>(t);
      if (tier == Tier::hbm && !s_.hbm) continue;
      int best = -1;
      bool fits = false;
      for (int s : view_->package->visible(tier, c)) {
        if (view_->package->bank_sets[static_cast<size_t>(s)].usable < view_->directory->expert_bytes()) continue;
        const bool roomy = room(s);
        if (best >= 0 && (fits && !roomy)) continue;
        if (best < 0 || (roomy && !fits) ||
            slow_plan_.bank()[static_cast<size_t>(s)] < slow_plan_.bank()[static_cast<size_t>(best)]) {
          best = s;
          fits = roomy;
        }
      }
      if (best >= 0) targets_.push_back({{tier, c, best}, fits});
    }
}

/// Replicas on a chiplet or bank set by the tokens they get, most (or fewest) first.
void DqnScan::busiest(bool by_bank, int where, bool coldest, size_t most, std::vector<Held>& out) const {
  const size_t from = out.size();
  const auto places = slow_plan_.places();
  const auto tokens = slow_plan_.shares();
  for (size_t p = 0; p < places.size(); ++p) {
    if ((by_bank ? places[p].bank_set : places[p].chiplet) != where || tokens[p] <= 0) continue;
    const double key = coldest ? -tokens[p] : tokens[p];
    if (out.size() - from == most && (most == 0 || key <= out.back().key)) continue;
    if (out.size() - from == most) out.pop_back();
    const int e = slow_plan_.owner()[p];
    size_t k = out.size();
    out.push_back({e, static_cast<int>(p) - slow_plan_.first(e), key});
    for (; k > from && out[k - 1].key < key; --k) std::swap(out[k - 1], out[k]);
  }
}

std::span<const Location> DqnScan::with(int e, int drop, const Location* extra) {
  list_.clear();
  const auto at = slow_plan_.at(e);
  for (size_t i = 0; i < at.size(); ++i)
    if (static_cast<int>(i) != drop) list_.push_back(at[i]);
  if (extra != nullptr) list_.push_back(*extra);
  return list_;
}

/// Copies of the busiest experts of the fullest chiplet or bank set. What only the budget forbids sets blocked_.
void DqnScan::copies(int l, std::vector<SlowCandidate>& out) {
  const auto fullest = [](const std::vector<double>& v) {
    return static_cast<int>(std::max_element(v.begin(), v.end()) - v.begin());
  };
  held_.clear();
  busiest(false, fullest(slow_plan_.compute()), false, 4, held_);
  if (slow_plan_.bank()[static_cast<size_t>(fullest(slow_plan_.bank()))] >
      slow_plan_.compute()[static_cast<size_t>(fullest(slow_plan_.compute()))])
    busiest(true, fullest(slow_plan_.bank()), false, 2, held_);
  for (const Held& h : held_) {
    const auto at = slow_plan_.at(h.expert);
    if (static_cast<int>(at.size()) >= std::min(view_->limits->replicas_max, WhatIf::kReplicas)) continue;
    const Target* best = nullptr;
    double most = 0;
    slow_plan_.lift(h.expert);
    for (const Target& t : targets_) {
      if (!t.room || std::any_of(at.begin(), at.end(), [&](const Location& a) { return a.chiplet == t.at.chiplet; }))
        continue;
      const double gain = slow_plan_.lifted_gain(with(h.expert, -1, &t.at));
      if (gain > most) most = gain, best = &t;
    }
    slow_plan_.drop();
    if (best == nullptr) continue;
    if (budget_left_ > 0)
      add(ActionKind::promote, l, h.expert, -1, best->at, out);
    else
      blocked_ = std::max(blocked_, most);
  }
}

/// Moves of replicas away from the fullest chiplet and bank set, to where they cost least in whatever tier.
void DqnScan::moves(int l, std::vector<SlowCandidate>& out) {
  const auto& compute = slow_plan_.compute();
  const auto& bank = slow_plan_.bank();
  const int chiplet = static_cast<int>(std::max_element(compute.begin(), compute.end()) - compute.begin());
  const int set = static_cast<int>(std::max_element(bank.begin(), bank.end()) - bank.begin());
  const bool memory = bank[static_cast<size_t>(set)] > compute[static_cast<size_t>(chiplet)];
  std::vector<Held> held;
  busiest(false, chiplet, false, memory ? 2 : 4, held);
  busiest(false, chiplet, true, memory ? 0 : 2, held);
  busiest(true, set, true, memory ? 4 : 1, held);
  for (size_t k = 0; k < held.size(); ++k) {
    const Held& h = held[k];
    bool again = false;
    for (size_t j = 0; j < k; ++j) again = again || (held[j].expert == h.expert && held[j].index == h.index);
    if (again) continue;
    const auto at = slow_plan_.at(h.expert);
    const Location here = at[static_cast<size_t>(h.index)];
    const Target *best = nullptr, *full = nullptr;
    double most = 0, wanted = 0;
    slow_plan_.lift(h.expert);
    for (const Target& t : targets_) {
      bool taken = t.at == here;
      for (size_t i = 0; i < at.size(); ++i)
        taken = taken || (static_cast<int>(i) != h.index && at[i].chiplet == t.at.chiplet);
      if (taken) continue;
      const double gain = slow_plan_.lifted_gain(with(h.expert, h.index, &t.at));
      if (t.room && gain > most) most = gain, best = &t;
      if (!t.room && gain > wanted) wanted = gain, full = &t;
    }
    slow_plan_.drop();
    if (best != nullptr) {
      const ActionKind kind = best->at.tier < here.tier   ? ActionKind::promote
                              : best->at.tier > here.tier ? ActionKind::demote
                                                          : ActionKind::relocate;
      add(kind, l, h.expert, h.index, best->at, out);
    }
    if (full != nullptr && wanted > 2 * most) {
      blocked_ = std::max(blocked_, wanted);
      make_room(l, full->at, slow_plan_.demand(h.expert), out);
    }
  }
}

/// A warm expert waits for a full near tier: demote the coldest replica in it, if that is much colder.
void DqnScan::make_room(int l, const Location& full, double waiting, std::vector<SlowCandidate>& out) {
  std::vector<Held> held;
  busiest(true, full.bank_set, true, 1, held);
  if (held.empty() || slow_plan_.demand(held[0].expert) > 0.5 * waiting) return;
  const Held h = held[0];
  const Location from = slow_plan_.at(h.expert)[static_cast<size_t>(h.index)];
  const Location* best = nullptr;
  double least = -1e300;
  slow_plan_.lift(h.expert);
  for (const Target& t : targets_) {
    if (!t.room || t.at.tier <= from.tier) continue;
    const double gain = slow_plan_.lifted_gain(with(h.expert, h.index, &t.at));
    if (gain > least) least = gain, best = &t.at;
  }
  slow_plan_.drop();
  if (best != nullptr) add(ActionKind::demote, l, h.expert, h.index, *best, out);
}

/// Extra replicas that get the fewest tokens.
void DqnScan::evictions(int l, std::vector<SlowCandidate>& out) {
  constexpr size_t kLooked = 24, kKept = 3;
  std::vector<Held> held;
  const auto tokens = slow_plan_.shares();
  for (size_t p = 0; p < tokens.size(); ++p) {
    const int e = slow_plan_.owner()[p];
    if (slow_plan_.count(e) < 2) continue;
    const double key = -tokens[p];
    if (held.size() == kLooked && key <= held.back().key) continue;
    if (held.size() == kLooked) held.pop_back();
    size_t k = held.size();
    held.push_back({e, static_cast<int>(p) - slow_plan_.first(e), key});
    for (; k > 0 && held[k - 1].key < key; --k) std::swap(held[k - 1], held[k]);
  }
  for (Held& h : held) h.key = slow_plan_.gain(h.expert, with(h.expert, h.index, nullptr));
  std::stable_sort(held.begin(), held.end(), [](const Held& a, const Held& b) { return a.key > b.key; });
  for (size_t k = 0; k < held.size() && k < kKept; ++k)
    add(ActionKind::evict, l, held[k].expert, held[k].index,
        slow_plan_.at(held[k].expert)[static_cast<size_t>(held[k].index)], out);
}

/// Adds the action if legal() lets it pass; `index` is the replica's among the expert's, -1 for a new copy.
void DqnScan::add(ActionKind kind, int l, int e, int index, const Location& to, std::vector<SlowCandidate>& out) {
  const Residency* residency = residency_;
  const auto ids = residency->replicas(l, e);
  SlowCandidate c;
  c.action = {kind, l, e, index < 0 ? -1 : ids[static_cast<size_t>(index)], to};
  LinkUse links;
  if (view_->pressure != nullptr) links = {view_->pressure->link_util, {}, view_->window_ps};
  if (legal(c.action, *residency, *view_->limits, view_->window, 0, links) != Verdict::ok) return;

  const int source = kind == ActionKind::evict ? c.action.replica : migration_source(c.action, *residency);
  const Location from = residency->replica(source).at;
  double transfer = 0, busy = 0;
  if (kind != ActionKind::evict && from.bank_set != to.bank_set) {
    transfer = std::max(cost_->stream_s(from.bank_set), cost_->stream_s(to.bank_set));
    const auto util = [](const std::vector<double>& v, int i) {
      return static_cast<size_t>(i) < v.size() ? v[static_cast<size_t>(i)] : 0.0;
    };
    const bool known = view_->pressure != nullptr;
    if (known)
      busy = std::max(util(view_->pressure->bank_util, from.bank_set), util(view_->pressure->bank_util, to.bank_set));
    for (int u : migration_path(*view_->package, from, to)) {
      transfer = std::max(transfer, cost_->expert_bytes() / cost_->link_rate(u));
      if (known) busy = std::max(busy, util(view_->pressure->link_util, u));
    }
  }
  c.exposed_s = transfer * std::clamp(busy, 0.0, 1.0);
  const bool evict = kind == ActionKind::evict;
  double time_gain = 0;
  const auto list = with(e, index, evict ? nullptr : &to);
  c.gain_s = slow_plan_.gain(e, list, &time_gain);
  c.layer_s = slow_plan_.smooth();
  const double recent_gain = recent_plan_.gain(e, list);
  features(c, index, from, time_gain, transfer);
  c.features[kGainRecent] = clamped(kGainScale * recent_gain / unit_);
  out.push_back(c);
}

void DqnScan::features(SlowCandidate& c, int index, const Location& from, double time_gain, double transfer_s) const {
  const Location& to = c.action.to;
  const size_t i =
      static_cast<size_t>(c.action.layer) * static_cast<size_t>(view_->experts) + static_cast<size_t>(c.action.expert);
  const double average = std::max(
      1e-9, static_cast<double>(view_->tokens) * std::max(1, view_->model->top_k) / std::max(1, view_->experts));
  const double slow = slow_[i], recent = view_->ewma[i], sigma = i < view_->sigma.size() ? view_->sigma[i] : 0.0;
  const double j = std::max(1e-30, slow_plan_.smooth());
  const double max_q = *std::max_element(slow_plan_.compute().begin(), slow_plan_.compute().end());
  const double max_m = *std::max_element(slow_plan_.bank().begin(), slow_plan_.bank().end());
  auto& f = c.features;
  f[kGainSlow] = clamped(kGainScale * c.gain_s / unit_);
  f[kGainTime] = clamped(kGainScale * time_gain / unit_);
  f[kExposed] = clamped(c.exposed_s / unit_);
  f[kTransfer] = clamped(transfer_s / unit_);
  f[kDemand] = clamped(std::log2(1.0 + slow / average));
  f[kFluctuation] = clamped(sigma / std::max(recent, 0.1 * average));
  f[kTrend] = clamped((recent - slow) / (slow + 0.1 * average));
  f[kQueueFrom] = clamped(slow_plan_.compute()[static_cast<size_t>(from.chiplet)] / j);
  f[kQueueTo] = clamped(slow_plan_.compute()[static_cast<size_t>(to.chiplet)] / j);
  f[kBankFrom] = clamped(slow_plan_.bank()[static_cast<size_t>(from.bank_set)] / j);
  f[kBankTo] = clamped(slow_plan_.bank()[static_cast<size_t>(to.bank_set)] / j);
  f[kReplicas] = clamped(static_cast<double>(slow_plan_.at(c.action.expert).size()) / 4);
  f[kTierFrom] = clamped(static_cast<double>(from.tier) / 2);
  f[kTierTo] = clamped(static_cast<double>(to.tier) / 2);
  f[kCopy] = c.action.kind == ActionKind::promote && index < 0;
  f[kPromote] = c.action.kind == ActionKind::promote && index >= 0;
  f[kRelocate] = c.action.kind == ActionKind::relocate;
  f[kDemote] = c.action.kind == ActionKind::demote;
  f[kEvict] = c.action.kind == ActionKind::evict;
  f[kSameBanks] = from.bank_set == to.bank_set;
  f[kExcess] = clamped((j - slow_plan_.ideal()) / j);
  f[kMemoryShare] = clamped(max_m / std::max(1e-30, max_m + max_q));
  if (index >= 0) {
    const Replica& r = view_->directory->replica(c.action.replica);
    f[kUnused] = clamped(std::clamp((view_->window - r.last_used_window - 4) / 16.0, 0.0, 1.0));
  }
  f[kHops] = clamped((mean_hops_[static_cast<size_t>(to.chiplet)] - mean_hops_[static_cast<size_t>(from.chiplet)]) /
                     cost_->diameter() * 4);
  f[kLayerWeight] = clamped(j / unit_);
  // Ablations: a controller that may not see a pressure gets zeros for it.
  if (!s_.migration_aware) f[kExposed] = f[kTransfer] = 0;
  if (!s_.link_aware) f[kHops] = 0;
}

void DqnScan::shared_features(std::array<float, kSlowFeatures>& f) const {
  const Pressure none;
  const Pressure& p = view_->pressure != nullptr ? *view_->pressure : none;
  const double experts = static_cast<double>(view_->layers) * view_->experts;
  f[kBudgetLeft] = clamped(static_cast<double>(budget_left_) / std::max(1.0, 0.1 * experts));
  f[kLink] = s_.link_aware ? clamped(p.link) : 0.0F;
  f[kBank] = clamped(p.bank);
  f[kLoad] = clamped(p.load);
  f[kMig] = s_.migration_aware ? clamped(p.mig) : 0.0F;
  f[kTier] = clamped(p.tier);
  f[kBest] = clamped(kGainScale * best_ / std::max(1e-30, unit_));
  f[kTokens] = clamped(std::log2(1.0 + static_cast<double>(view_->tokens) * std::max(1, view_->model->top_k) /
                                           std::max(1, view_->experts) / cost_->tile()) /
                       4);
}

}  // namespace sojourn
