// Algorithm 2 of HCRMap; equations, normalisation and order in fast_map.h.
#include "policy/fast_map.h"

namespace sojourn {

void FastMapper::load(const DirectoryView& directory, int layer, int expert, Entry& entry) {
  const auto list = directory.replicas(layer, expert);
  entry = Entry{};
  entry.epoch = epoch_;
  if (list.size() == 1) {
    entry.replica = list.front();
    entry.chiplet = directory.replica(list.front()).at.chiplet;
    seen_.push_back(expert);
  } else {
    several_.push_back(expert);
  }
}

void FastMapper::add_links(const CostModel& cost, std::span<const int> route, double bytes) {
  for (int u : route) link_s_[static_cast<size_t>(u)] += bytes / cost.link_rate(u);
}

void FastMapper::map(const CostModel& cost, const DirectoryView& directory, const LayerTask& task,
                     std::vector<Assignment>& out) {
  const size_t n = static_cast<size_t>(cost.chiplets());
  if (++epoch_ == 0) {
    entries_.clear();
    epoch_ = 1;
  }
  if (entries_.size() < static_cast<size_t>(directory.experts()))
    entries_.resize(static_cast<size_t>(directory.experts()));
  if (next_.size() < task.groups.size()) next_.resize(task.groups.size());
  flow_.assign(n * n, 0);
  seen_.clear();
  several_.clear();

  const size_t base = out.size();
  out.resize(base + task.groups.size());
  Assignment* to = out.data() + base;
  const TokenGroup* groups = task.groups.data();
  for (size_t g = 0; g < task.groups.size(); ++g) {
    const TokenGroup& group = groups[g];
    Entry& entry = entries_[static_cast<size_t>(group.expert)];
    if (entry.epoch != epoch_) load(directory, task.layer, group.expert, entry);
    if (group.tokens <= 0) continue;
    entry.tokens += group.tokens;
    if (entry.replica >= 0) {
      flow_[static_cast<size_t>(group.source) * n + static_cast<size_t>(entry.chiplet)] += group.tokens;
      *to++ = {static_cast<int>(g), entry.replica, group.tokens};
    } else {
      next_[g] = -1;
      if (entry.last >= 0) next_[static_cast<size_t>(entry.last)] = static_cast<int>(g);
      if (entry.first < 0) entry.first = static_cast<int>(g);
      entry.last = static_cast<int>(g);
    }
  }
  out.resize(static_cast<size_t>(to - out.data()));
  settle(cost, directory);
  std::sort(several_.begin(), several_.end(), [&](int a, int b) {
    const int ta = entries_[static_cast<size_t>(a)].tokens, tb = entries_[static_cast<size_t>(b)].tokens;
    return ta != tb ? ta > tb : a < b;
  });
  for (int e : several_) map_expert(cost, directory, task, e, out);
}

/// Folds the forced groups into the counters.
void FastMapper::settle(const CostModel& cost, const DirectoryView& directory) {
  const int n = cost.chiplets();
  chiplet_s_.assign(static_cast<size_t>(n), 0.0);
  bank_s_.assign(static_cast<size_t>(cost.sets()), 0.0);
  link_s_.assign(cost.package().links.size(), 0.0);
  for (int e : seen_) {
    const Entry& entry = entries_[static_cast<size_t>(e)];
    if (entry.tokens == 0) continue;
    const int set = directory.replica(entry.replica).at.bank_set;
    chiplet_s_[static_cast<size_t>(entry.chiplet)] +=
        cost.tiles(entry.tokens) * cost.tile() * cost.token_s(entry.chiplet);
    bank_s_[static_cast<size_t>(set)] += cost.stream_s(set);
    add_links(cost, cost.set_route(set, entry.chiplet), cost.expert_bytes());
  }
  for (int s = 0; s < n; ++s)
    for (int c = 0; c < n; ++c) {
      const std::int64_t tokens = flow_[static_cast<size_t>(s) * static_cast<size_t>(n) + static_cast<size_t>(c)];
      if (tokens == 0 || s == c) continue;
      const double bytes = static_cast<double>(tokens) * cost.token_bytes();
      add_links(cost, cost.package().route_chiplets(s, c), bytes);
      add_links(cost, cost.package().route_chiplets(c, s), bytes);
    }
}

void FastMapper::score(const CostModel& cost, Candidate& c, int source, int tokens) const {
  const double step = cost.tile() * cost.token_s(c.chiplet);
  c.queue = chiplet_s_[static_cast<size_t>(c.chiplet)] + (cost.tiles(c.tokens + tokens) - cost.tiles(c.tokens)) * step;
  c.stream = c.woken ? 0.0 : cost.stream_s(c.set);
  c.bank = bank_s_[static_cast<size_t>(c.set)] + c.stream;
  c.path = 0;
  if (w_.path == 0) return;
  const double bytes = tokens * cost.token_bytes();
  for (int u : cost.package().route_chiplets(source, c.chiplet))
    c.path = std::max(c.path, link_s_[static_cast<size_t>(u)] + bytes / cost.link_rate(u));
  for (int u : cost.package().route_chiplets(c.chiplet, source))
    c.path = std::max(c.path, link_s_[static_cast<size_t>(u)] + bytes / cost.link_rate(u));
  if (c.woken) return;
  for (int u : cost.set_route(c.set, c.chiplet))
    c.path = std::max(c.path, link_s_[static_cast<size_t>(u)] + cost.expert_bytes() / cost.link_rate(u));
}

size_t FastMapper::pick() {
  if (w_.minmax) {
    for (double Candidate::*term : {&Candidate::queue, &Candidate::path, &Candidate::bank, &Candidate::stream}) {
      double lo = candidates_[0].*term, hi = lo;
      for (const Candidate& c : candidates_) lo = std::min(lo, c.*term), hi = std::max(hi, c.*term);
      for (Candidate& c : candidates_) c.*term = hi > lo ? (c.*term - lo) / (hi - lo) : 0.0;
    }
  }
  size_t best = 0;
  double best_cost = 0;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    const Candidate& c = candidates_[i];
    const double total = w_.queue * c.queue + w_.path * c.path + w_.bank * c.bank + w_.stream * c.stream;
    if (i == 0 || total < best_cost) {  // ties stay with the oldest replica
      best = i;
      best_cost = total;
    }
  }
  return best;
}

void FastMapper::map_expert(const CostModel& cost, const DirectoryView& directory, const LayerTask& task, int expert,
                            std::vector<Assignment>& out) {
  candidates_.clear();
  for (int id : directory.replicas(task.layer, expert)) {
    Candidate c;
    c.replica = id;
    c.chiplet = directory.replica(id).at.chiplet;
    c.set = directory.replica(id).at.bank_set;
    candidates_.push_back(c);
  }
  for (int g = entries_[static_cast<size_t>(expert)].first; g >= 0; g = next_[static_cast<size_t>(g)]) {
    const TokenGroup& group = task.groups[static_cast<size_t>(g)];
    for (int left = group.tokens; left > 0;) {
      // An open tile costs nothing more to fill, so it is filled before the next one is opened anywhere.
      int block = std::min(left, std::max(1, w_.block));
      size_t chosen = 0;
      while (chosen < candidates_.size() && candidates_[chosen].tokens % cost.tile() == 0) ++chosen;
      if (chosen < candidates_.size()) {
        block = std::min(left, cost.tile() - candidates_[chosen].tokens % cost.tile());
      } else {
        for (Candidate& c : candidates_) score(cost, c, group.source, block);
        chosen = pick();
      }
      left -= block;
      Candidate& c = candidates_[chosen];
      chiplet_s_[static_cast<size_t>(c.chiplet)] +=
          (cost.tiles(c.tokens + block) - cost.tiles(c.tokens)) * cost.tile() * cost.token_s(c.chiplet);
      c.tokens += block;
      if (!c.woken) {
        c.woken = true;
        bank_s_[static_cast<size_t>(c.set)] += cost.stream_s(c.set);
        add_links(cost, cost.set_route(c.set, c.chiplet), cost.expert_bytes());
      }
      add_links(cost, cost.package().route_chiplets(group.source, c.chiplet), block * cost.token_bytes());
      add_links(cost, cost.package().route_chiplets(c.chiplet, group.source), block * cost.token_bytes());
      if (!out.empty() && out.back().group == g && out.back().replica == c.replica) {
        out.back().tokens += block;
      } else {
        out.push_back({g, c.replica, block});
      }
    }
  }
}

}  // namespace sojourn
