// Dispatch rules; described in dispatch.h.
#include "policy/dispatch.h"

#include <tuple>

namespace sojourn {

Dispatch dispatch_of(const std::string& word) {
  return word == "nearest" ? Dispatch::nearest : word == "even" ? Dispatch::even : Dispatch::least_loaded;
}

Param dispatch_param(const char* default_word, const char* source) {
  return {"dispatch",
          Unit::none,
          std::string(default_word),
          -1e300,
          1e300,
          {"least-loaded", "nearest", "even"},
          "how tokens of a replicated expert are shared",
          source};
}

void ExpertGroups::build(const LayerTask& task, int experts) {
  first_.assign(static_cast<size_t>(experts) + 1, 0);
  tokens_.assign(static_cast<size_t>(experts), 0);
  for (const TokenGroup& g : task.groups)
    if (g.tokens > 0) {
      ++first_[static_cast<size_t>(g.expert) + 1];
      tokens_[static_cast<size_t>(g.expert)] += g.tokens;
    }
  for (size_t e = 1; e < first_.size(); ++e) first_[e] += first_[e - 1];
  index_.resize(static_cast<size_t>(first_.back()));
  for (size_t g = 0; g < task.groups.size(); ++g)
    if (task.groups[g].tokens > 0)
      index_[static_cast<size_t>(first_[static_cast<size_t>(task.groups[g].expert)]++)] = static_cast<int>(g);
  for (size_t e = first_.size() - 1; e > 0; --e) first_[e] = first_[e - 1];
  first_[0] = 0;
}

void fill_quotas(const CostModel& cost, const DirectoryView& directory, std::span<const TokenGroup> groups,
                 std::span<const int> mine, std::span<const int> replicas, std::span<const int> quota,
                 std::vector<Assignment>& out) {
  struct Pair {
    int hops, replica, group;
  };
  std::vector<Pair> pairs;
  for (size_t r = 0; r < replicas.size(); ++r) {
    if (quota[r] <= 0) continue;
    const int chiplet = directory.replica(replicas[r]).at.chiplet;
    for (size_t i = 0; i < mine.size(); ++i)
      pairs.push_back(
          {cost.hops(groups[static_cast<size_t>(mine[i])].source, chiplet), static_cast<int>(r), static_cast<int>(i)});
  }
  std::sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) {
    return std::tie(a.hops, a.replica, a.group) < std::tie(b.hops, b.replica, b.group);
  });
  std::vector<int> room(quota.begin(), quota.end()), left;
  for (const int g : mine) left.push_back(groups[static_cast<size_t>(g)].tokens);
  for (const Pair& p : pairs) {
    const auto r = static_cast<size_t>(p.replica), i = static_cast<size_t>(p.group);
    const int n = std::min(room[r], left[i]);
    if (n <= 0) continue;
    room[r] -= n;
    left[i] -= n;
    out.push_back({mine[i], replicas[r], n});
  }
}

void Dispatcher::assign(const CostModel& cost, const DirectoryView& directory, const LayerTask& task,
                        std::vector<Assignment>& out) {
  groups_.build(task, directory.experts());
  held_.assign(static_cast<size_t>(cost.chiplets()), 0);
  several_.clear();
  out.reserve(out.size() + task.groups.size());
  for (int e = 0; e < directory.experts(); ++e) {
    if (groups_.tokens(e) == 0) continue;
    const auto list = directory.replicas(task.layer, e);
    if (list.size() > 1) {
      several_.push_back(e);
      continue;
    }
    held_[static_cast<size_t>(directory.replica(list.front()).at.chiplet)] += groups_.tokens(e);
    for (const int g : groups_.of(e)) out.push_back({g, list.front(), task.groups[static_cast<size_t>(g)].tokens});
  }
  std::stable_sort(several_.begin(), several_.end(),
                   [&](int a, int b) { return groups_.tokens(a) > groups_.tokens(b); });
  if (rule_ == Dispatch::least_loaded) level(cost, directory, task.layer);
  for (size_t i = 0; i < several_.size(); ++i) {
    const int e = several_[i];
    if (rule_ == Dispatch::nearest) nearest(cost, directory, task, e, out);
    if (rule_ == Dispatch::even) even(directory, task, e, out);
    if (rule_ != Dispatch::least_loaded) continue;
    const auto list = directory.replicas(task.layer, e);
    fill_quotas(cost, directory, task.groups, groups_.of(e), list,
                std::span(quota_).subspan(static_cast<size_t>(first_[i]), list.size()), out);
  }
}

void Dispatcher::nearest(const CostModel& cost, const DirectoryView& directory, const LayerTask& task, int e,
                         std::vector<Assignment>& out) {
  const auto list = directory.replicas(task.layer, e);
  const auto chiplet = [&](int id) { return directory.replica(id).at.chiplet; };
  for (const int g : groups_.of(e)) {
    const TokenGroup& group = task.groups[static_cast<size_t>(g)];
    int best = list.front();
    for (const int id : list) {
      const int mine = cost.hops(group.source, chiplet(id)), other = cost.hops(group.source, chiplet(best));
      if (mine < other ||
          (mine == other && held_[static_cast<size_t>(chiplet(id))] < held_[static_cast<size_t>(chiplet(best))]))
        best = id;
    }
    held_[static_cast<size_t>(chiplet(best))] += group.tokens;
    out.push_back({g, best, group.tokens});
  }
}

void Dispatcher::even(const DirectoryView& directory, const LayerTask& task, int e, std::vector<Assignment>& out) {
  const auto list = directory.replicas(task.layer, e);
  const int n = static_cast<int>(list.size());
  int turn = 0;
  for (const int g : groups_.of(e)) {
    const int tokens = task.groups[static_cast<size_t>(g)].tokens;
    for (int i = 0; i < std::min(n, tokens); ++i)
      out.push_back({g, list[static_cast<size_t>((turn + i) % n)], tokens / n + (i < tokens % n ? 1 : 0)});
    turn = (turn + tokens % n) % n;
  }
}

/// Quotas of the replicas of `several_`: those of several_[i] start at first_[i].
void Dispatcher::level(const CostModel& cost, const DirectoryView& directory, int layer) {
  const auto held = [&](int id) -> int& { return held_[static_cast<size_t>(directory.replica(id).at.chiplet)]; };
  first_.clear();
  quota_.clear();
  for (const int e : several_) {
    first_.push_back(static_cast<int>(quota_.size()));
    const auto list = directory.replicas(layer, e);
    const int n = static_cast<int>(list.size()), tokens = groups_.tokens(e);
    for (int i = 0; i < n; ++i) {
      quota_.push_back(tokens / n + (i < tokens % n ? 1 : 0));
      held(list[static_cast<size_t>(i)]) += quota_.back();
    }
  }
  bool changed = true;
  for (int round = 0; round < kRounds && changed; ++round) {
    changed = false;
    for (size_t k = 0; k < several_.size(); ++k) {
      const auto list = directory.replicas(layer, several_[k]);
      int* quota = quota_.data() + first_[k];
      for (size_t i = 0; i < list.size(); ++i) held(list[i]) -= quota[i];
      dealt_.assign(list.size(), 0);
      for (int left = groups_.tokens(several_[k]); left > 0;) {
        const int block = std::min(left, cost.tile());
        size_t best = 0;
        for (size_t i = 1; i < list.size(); ++i)
          if (held(list[i]) < held(list[best])) best = i;
        held(list[best]) += block;
        dealt_[best] += block;
        left -= block;
      }
      changed = changed || !std::equal(dealt_.begin(), dealt_.end(), quota);
      std::copy(dealt_.begin(), dealt_.end(), quota);
    }
  }
}

}  // namespace sojourn
