// Incremental what-if arithmetic; definitions in what_if.h.
#include "policy/what_if.h"

#include <algorithm>
#include <cassert>

namespace sojourn {
namespace {

double power8(double x) {
  const double x2 = x * x, x4 = x2 * x2;
  return x4 * x4;
}

double root8(double x) { return std::sqrt(std::sqrt(std::sqrt(std::max(0.0, x)))); }

double active_share(double tokens) { return tokens > 20 ? 1.0 : activity(tokens); }

}  // namespace

void WhatIf::touch(std::vector<double>& of, int index) {
  double* const value = &of[static_cast<size_t>(index)];
  if (!recording_) return;
  for (int i = 0; i < touches_; ++i)
    if (touched_[static_cast<size_t>(i)].value == value) return;
  if (touches_ < static_cast<int>(touched_.size())) touched_[static_cast<size_t>(touches_++)] = {value, *value, *value};
}

void WhatIf::put(const Location& at, double tokens, double active, double sign) {
  touch(compute_, at.chiplet);
  touch(bank_, at.bank_set);
  compute_[static_cast<size_t>(at.chiplet)] += sign * cost_->compute_s(at.chiplet, tokens, active);
  bank_[static_cast<size_t>(at.bank_set)] += sign * active * cost_->stream_s(at.bank_set);
}

void WhatIf::pour(std::span<const Location> replicas, double tokens, double* out) const {
  const size_t n = replicas.size();
  if (n == 1) {
    out[0] = tokens;
    return;
  }
  // Level lambda with sum_i max(0, (lambda - q_i) / t_i) = tokens, over replicas by ascending cost q.
  std::array<size_t, kReplicas> order;
  std::array<double, kReplicas> cost;
  const auto q = [&](size_t i) { return cost[i]; };
  for (size_t i = 0; i < n; ++i) {
    const double stream = cost_->stream_s(replicas[i].bank_set);
    cost[i] = compute_[static_cast<size_t>(replicas[i].chiplet)] +
              bank_ratio_ * (bank_[static_cast<size_t>(replicas[i].bank_set)] + stream) + stream_ratio_ * stream;
    size_t k = i;
    for (; k > 0 && q(i) < q(order[k - 1]); --k) order[k] = order[k - 1];
    order[k] = i;
    out[i] = 0;
  }
  double rate = 0, offset = 0, level = 0;
  size_t used = 0;
  for (; used < n; ++used) {
    const size_t i = order[used];
    if (used > 0 && level <= q(i)) break;
    const double r = 1.0 / cost_->token_s(replicas[i].chiplet);
    rate += r;
    offset += r * q(i);
    level = (tokens + offset) / rate;
  }
  for (size_t k = 0; k < used; ++k)
    out[order[k]] = std::max(0.0, (level - q(order[k])) / cost_->token_s(replicas[order[k]].chiplet));
}

void WhatIf::charge(std::span<const Location> replicas, const double* tokens, double active, double sign) {
  for (size_t i = 0; i < replicas.size(); ++i)
    if (tokens[i] > 0)
      put(replicas[i], tokens[i], replicas.size() == 1 ? active : std::min(active, active_share(tokens[i])), sign);
}

void WhatIf::build(const CostModel& cost, const DirectoryView& directory, int layer, std::span<const double> demand) {
  cost_ = &cost;
  const size_t experts = demand.size();
  demand_.assign(demand.begin(), demand.end());
  first_.resize(experts);
  count_.resize(experts);
  at_.clear();
  owner_.clear();
  several_.clear();
  for (size_t e = 0; e < experts; ++e) {
    const auto list = directory.replicas(layer, static_cast<int>(e));
    first_[e] = static_cast<int>(at_.size());
    count_[e] = static_cast<int>(std::min<size_t>(list.size(), kReplicas));
    for (int i = 0; i < count_[e]; ++i) {
      at_.push_back(directory.replica(list[static_cast<size_t>(i)]).at);
      owner_.push_back(static_cast<int>(e));
    }
    if (count_[e] > 1) several_.push_back(static_cast<int>(e));
  }
  fill();
}

void WhatIf::build_beside(const WhatIf& other, std::span<const double> demand) {
  cost_ = other.cost_;
  demand_.assign(demand.begin(), demand.end());
  first_ = other.first_;
  count_ = other.count_;
  at_ = other.at_;
  owner_ = other.owner_;
  several_ = other.several_;
  fill();
}

/// Loads of the replicas and demand that were set.
void WhatIf::fill() {
  recording_ = false;
  const size_t experts = demand_.size();
  compute_.assign(static_cast<size_t>(cost_->chiplets()), 0.0);
  bank_.assign(static_cast<size_t>(cost_->sets()), 0.0);
  active_.resize(experts);
  double all = 0, streams = 0;
  for (size_t e = 0; e < experts; ++e) {
    active_[e] = active_share(demand_[e]);
    all += demand_[e];
    streams += active_[e];
  }
  ideal_ = cost_->ideal_s(all, streams);
  tokens_.assign(at_.size(), 0.0);
  for (size_t e = 0; e < experts; ++e)
    if (count_[e] == 1) {
      tokens_[static_cast<size_t>(first_[e])] = demand_[e];
      charge(at(static_cast<int>(e)), &tokens_[static_cast<size_t>(first_[e])], active_[e], 1);
    }
  std::sort(several_.begin(), several_.end(), [&](int a, int b) {
    const double da = demand_[static_cast<size_t>(a)], db = demand_[static_cast<size_t>(b)];
    return da != db ? da > db : a < b;
  });
  for (int e : several_) {
    double* const mine = &tokens_[static_cast<size_t>(first_[static_cast<size_t>(e)])];
    pour(at(e), demand_[static_cast<size_t>(e)], mine);
    charge(at(e), mine, active_[static_cast<size_t>(e)], 1);
  }
  whole_time_ = time();
  const double worst = std::max(1e-30, whole_time_);
  inverse_ = 1.0 / worst;
  power_ = 0;
  for (double x : compute_) power_ += power8(x * inverse_);
  for (double x : bank_) power_ += power8(x * inverse_);
  smooth_ = root8(power_) * worst;
}

double WhatIf::time() const {
  double worst = 0;
  for (double x : compute_) worst = std::max(worst, x);
  for (double x : bank_) worst = std::max(worst, x);
  return worst;
}

double WhatIf::gain(int e, std::span<const Location> replicas, double* time_gain) {
  lift(e);
  const double gained = lifted_gain(replicas, time_gain);
  drop();
  return gained;
}

void WhatIf::lift(int e) {
  const size_t i = static_cast<size_t>(e);
  assert(!recording_ && "one expert at a time");
  lifted_expert_ = e;
  touches_ = 0;
  recording_ = true;
  charge(at(e), tokens_.data() + first_[i], active_[i], -1);
  lifted_ = touches_;
  for (int k = 0; k < lifted_; ++k) touched_[static_cast<size_t>(k)].lifted = *touched_[static_cast<size_t>(k)].value;
}

double WhatIf::lifted_gain(std::span<const Location> replicas, double* time_gain) {
  const size_t i = static_cast<size_t>(lifted_expert_);
  std::array<double, kReplicas> poured{};
  const auto kept = replicas.first(std::min<size_t>(replicas.size(), kReplicas));
  pour(kept, demand_[i], poured.data());
  charge(kept, poured.data(), active_[i], 1);
  double power = power_;
  for (int k = 0; k < touches_; ++k) {
    const Touched& t = touched_[static_cast<size_t>(k)];
    power += power8(*t.value * inverse_) - power8(t.before * inverse_);
  }
  if (time_gain != nullptr) {
    *time_gain = whole_time_ - time();
  }
  for (int k = 0; k < lifted_; ++k) *touched_[static_cast<size_t>(k)].value = touched_[static_cast<size_t>(k)].lifted;
  for (int k = lifted_; k < touches_; ++k)
    *touched_[static_cast<size_t>(k)].value = touched_[static_cast<size_t>(k)].before;
  touches_ = lifted_;
  return smooth_ - root8(power) / inverse_;
}

void WhatIf::drop() {
  for (int k = 0; k < lifted_; ++k) *touched_[static_cast<size_t>(k)].value = touched_[static_cast<size_t>(k)].before;
  recording_ = false;
}

}  // namespace sojourn
