// LLEP's assignment; rules and sources in least_loaded.h.
#include "policy/least_loaded.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sojourn {
namespace {
size_t at(int i) { return static_cast<size_t>(i); }
}  // namespace

void LeastLoaded::solve(const LeastLoadedRule& rule, int devices, const ReplicaTable& table,
                        std::span<const int> tokens, std::vector<int>& quota) {
  quota.assign(table.device.size(), 0);
  load_.assign(at(devices), 0);
  fixed_.assign(at(devices), 0);
  std::int64_t total = 0;
  for (int e = 0; e < table.experts(); ++e) {
    load_of(table, table.first[at(e)]) += tokens[at(e)];
    total += tokens[at(e)];
  }
  const double mean = static_cast<double>(total) / devices;
  cap_ = static_cast<std::int64_t>(std::ceil(rule.alpha * mean));
  const std::int64_t most = *std::max_element(load_.begin(), load_.end());
  triggered_ = static_cast<double>(most) > rule.lambda * mean;
  order_.clear();
  for (int e = 0; e < table.experts(); ++e) {
    const int native = table.first[at(e)];
    if (triggered_ && table.first[at(e) + 1] - native > 1 && tokens[at(e)] > 0) {
      order_.push_back(e);
    } else {
      quota[at(native)] = tokens[at(e)];
      fixed_[at(table.device[at(native)])] += tokens[at(e)];
    }
  }
  if (order_.empty()) return;
  std::stable_sort(order_.begin(), order_.end(), [&](int a, int b) { return tokens[at(a)] > tokens[at(b)]; });
  for (const int e : order_) {
    const int native = table.first[at(e)];
    std::int64_t& assigned = fixed_[at(table.device[at(native)])];
    const int kept = static_cast<int>(std::clamp<std::int64_t>(cap_ - assigned, 0, tokens[at(e)]));
    quota[at(native)] = kept;
    assigned += kept;
    load_of(table, native) -= tokens[at(e)] - kept;
    spill(rule, table, e, tokens[at(e)] - kept, quota);
  }
  held_.resize(std::max(held_.size(), at(devices)));
  for (auto& list : held_) list.clear();
  for (const int e : order_)
    for (int i = table.first[at(e)]; i < table.first[at(e) + 1]; ++i) held_[at(table.device[at(i)])].push_back({e, i});
  for (int d = 0; d < devices; ++d)
    while (load_[at(d)] > cap_ && push(rule.chunk, table, d, quota)) {
    }
}

/// Algorithm 3.
void LeastLoaded::spill(const LeastLoadedRule& rule, const ReplicaTable& table, int e, int rest,
                        std::vector<int>& quota) {
  const auto give = [&](int replica, int n) {
    quota[at(replica)] += n;
    load_of(table, replica) += n;
    fixed_[at(table.device[at(replica)])] += n;
    rest -= n;
  };
  const int first = table.first[at(e)], end = table.first[at(e) + 1];
  used_.assign(at(end - first), 0);
  while (rest > 0) {
    int best = -1, least = first;
    for (int i = first; i < end; ++i) {
      if (load_of(table, i) < load_of(table, least)) least = i;
      if (i == first || used_[at(i - first)]) continue;
      if (best < 0 || load_of(table, i) < load_of(table, best)) best = i;
    }
    if (best < 0) {
      // When every device may take it, the rest is below chunk * devices: the second term never counts there.
      give(least, std::min(rest, std::max({1, rule.chunk, rest / static_cast<int>(load_.size())})));
      continue;
    }
    used_[at(best - first)] = 1;
    const int n = static_cast<int>(std::clamp<std::int64_t>(cap_ - load_of(table, best), 0, rest));
    if (n > 0 && (n >= rule.chunk || n == rest)) give(best, n);
  }
}

/// Moves tokens from device `from` along the shortest chain to a device below the cap; false if there is none.
bool LeastLoaded::push(int chunk, const ReplicaTable& table, int from, std::vector<int>& quota) {
  const auto needs = [&](int replica) { return quota[at(replica)] > 0 ? 1 : chunk; };
  const std::int64_t excess = load_[at(from)] - cap_;
  via_from_.assign(load_.size(), -1);
  via_to_.assign(load_.size(), -1);
  used_.assign(load_.size(), 0);
  used_[at(from)] = 1;
  queue_.assign(1, from);
  for (size_t head = 0; head < queue_.size(); ++head)
    for (const auto& [e, i] : held_[at(queue_[head])]) {
      if (quota[at(i)] == 0) continue;
      for (int j = table.first[at(e)]; j < table.first[at(e) + 1]; ++j) {
        const int d = table.device[at(j)];
        if (used_[at(d)] || std::min<std::int64_t>(excess, quota[at(i)]) < needs(j)) continue;
        used_[at(d)] = 1;
        via_from_[at(d)] = i;
        via_to_[at(d)] = j;
        queue_.push_back(d);
        if (load_[at(d)] >= cap_) continue;
        std::int64_t n = std::min(excess, cap_ - load_[at(d)]);
        int least = 1;
        for (int c = d; c != from; c = table.device[at(via_from_[at(c)])]) {
          n = std::min<std::int64_t>(n, quota[at(via_from_[at(c)])]);
          least = std::max(least, needs(via_to_[at(c)]));
        }
        if (n < least) continue;
        for (int c = d; c != from; c = table.device[at(via_from_[at(c)])]) {
          quota[at(via_from_[at(c)])] -= static_cast<int>(n);
          quota[at(via_to_[at(c)])] += static_cast<int>(n);
        }
        load_[at(from)] -= n;
        load_[at(d)] += n;
        return true;
      }
    }
  return false;
}

}  // namespace sojourn
