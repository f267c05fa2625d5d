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

void FastMapper::add_links(std::span<const int> route, const std::vector<double>& seconds) {
  for (const int u : route) {
    double& link = link_s_[static_cast<size_t>(u)];
    link += seconds[static_cast<size_t>(rate_of_[static_cast<size_t>(u)])];
    fullest_ = std::max(fullest_, link);
  }
}

void FastMapper::set_tokens(double bytes) {
  for (size_t r = 0; r < rate_.size(); ++r) tokens_s_[r] = bytes / rate_[r];
}

/// Rates and routes of the package, flat.
void FastMapper::lay_out(const CostModel& cost) {
  const int n = cost.chiplets(), links = static_cast<int>(cost.package().links.size());
  chiplets_ = static_cast<size_t>(n);
  rate_.clear();
  rate_of_.resize(static_cast<size_t>(links));
  size_t last = 0;
  for (int u = 0; u < links; ++u) {
    const double rate = cost.link_rate(u);
    if (last >= rate_.size() || rate_[last] != rate)
      last = static_cast<size_t>(std::find(rate_.begin(), rate_.end(), rate) - rate_.begin());
    if (last == rate_.size()) rate_.push_back(rate);
    rate_of_[static_cast<size_t>(u)] = static_cast<int>(last);
  }
  if (rate_.empty()) rate_.push_back(1.0);  // no links: every path is 0, any bound will do
  slowest_ = static_cast<size_t>(std::min_element(rate_.begin(), rate_.end()) - rate_.begin());
  tokens_s_.resize(rate_.size());
  stream_s_.resize(rate_.size());
  for (size_t r = 0; r < rate_.size(); ++r) stream_s_[r] = cost.expert_bytes() / rate_[r];
  way_.clear();
  way_first_.assign(1, 0);
  for (int s = 0; s < n; ++s)
    for (int c = 0; c < n; ++c) {
      for (const auto route : {cost.package().route_chiplets(s, c), cost.package().route_chiplets(c, s)})
        way_.insert(way_.end(), route.begin(), route.end());
      way_first_.push_back(static_cast<int>(way_.size()));
    }
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
  lay_out(cost);
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
  fullest_ = 0;
  for (int e : seen_) {
    const Entry& entry = entries_[static_cast<size_t>(e)];
    if (entry.tokens == 0) continue;
    const int set = directory.replica(entry.replica).at.bank_set;
    chiplet_s_[static_cast<size_t>(entry.chiplet)] +=
        cost.tiles(entry.tokens) * cost.tile() * cost.token_s(entry.chiplet);
    bank_s_[static_cast<size_t>(set)] += cost.stream_s(set);
    add_links(cost.set_route(set, entry.chiplet), stream_s_);
  }
  for (int s = 0; s < n; ++s)
    for (int c = 0; c < n; ++c) {
      const std::int64_t tokens = flow_[static_cast<size_t>(s) * static_cast<size_t>(n) + static_cast<size_t>(c)];
      if (tokens == 0 || s == c) continue;
      set_tokens(static_cast<double>(tokens) * cost.token_bytes());
      add_links(both_ways(s, c), tokens_s_);
    }
}

/// The fullest link of the tokens' way, and of the weights' unless they are there already.
double FastMapper::path_s(const CostModel& cost, const Candidate& c, int source) const {
  double path = 0;
  const auto walk = [&](std::span<const int> route, const std::vector<double>& seconds) {
    for (const int u : route)
      path = std::max(path,
                      link_s_[static_cast<size_t>(u)] + seconds[static_cast<size_t>(rate_of_[static_cast<size_t>(u)])]);
  };
  walk(both_ways(source, c.chiplet), tokens_s_);
  if (!c.woken) walk(cost.set_route(c.set, c.chiplet), stream_s_);
  return path;
}

/// The cheapest candidate for `tokens` more tokens; ties to the oldest replica. No tile is open, so each would start
/// the same number of tiles.
size_t FastMapper::choose(const CostModel& cost, int source, int tokens) {
  const int tiles = cost.tiles(tokens);
  for (Candidate& c : candidates_) {
    c.queue = chiplet_s_[static_cast<size_t>(c.chiplet)] + tiles * c.step_s;
    c.stream = c.woken ? 0.0 : cost.stream_s(c.set);
    c.bank = bank_s_[static_cast<size_t>(c.set)] + c.stream;
    c.path = 0;
  }
  if (w_.minmax || w_.path < 0) {
    if (w_.path != 0)
      for (Candidate& c : candidates_) c.path = path_s(cost, c, source);
    return pick();
  }
  size_t best = 0;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    candidates_[i].least = total(candidates_[i], 0.0);
    if (candidates_[i].least < candidates_[best].least) best = i;
  }
  if (w_.path == 0) return best;
  // Does it stay the best whatever the paths are? Rounding is monotone, so the bounds hold in floating point, too.
  const double added =
      candidates_[best].woken ? tokens_s_[slowest_] : std::max(tokens_s_[slowest_], stream_s_[slowest_]);
  const double most = total(candidates_[best], fullest_ + added);
  bool sure = true;
  for (size_t i = 0; i < candidates_.size(); ++i)
    sure = sure && (i == best || most < candidates_[i].least || (most == candidates_[i].least && best < i));
  if (sure) return best;
  double best_cost = total(candidates_[best], path_s(cost, candidates_[best], source));
  const size_t first = best;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    if (i == first || candidates_[i].least > best_cost) continue;
    const double mine = total(candidates_[i], path_s(cost, candidates_[i], source));
    if (mine < best_cost || (mine == best_cost && i < best)) {
      best = i;
      best_cost = mine;
    }
  }
  return best;
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
    const double mine = total(candidates_[i], candidates_[i].path);
    if (i == 0 || mine < best_cost) {  // ties stay with the oldest replica
      best = i;
      best_cost = mine;
    }
  }
  return best;
}

void FastMapper::map_expert(const CostModel& cost, const DirectoryView& directory, const LayerTask& task, int expert,
                            std::vector<Assignment>& out) {
  candidates_.clear();
  for (int id : directory.replicas(task.layer, expert)) {
    const Location& at = directory.replica(id).at;
    Candidate c;
    c.replica = id;
    c.chiplet = at.chiplet;
    c.set = at.bank_set;
    c.step_s = cost.tile() * cost.token_s(at.chiplet);
    candidates_.push_back(c);
  }
  const int tile = cost.tile(), most = std::max(1, w_.block);
  size_t chosen = 0;
  int gap = 0;  // tokens that still fit the open tile, which is `chosen`'s; at most one is open
  for (int g = entries_[static_cast<size_t>(expert)].first; g >= 0; g = next_[static_cast<size_t>(g)]) {
    const TokenGroup& group = task.groups[static_cast<size_t>(g)];
    for (int left = group.tokens; left > 0;) {
      // An open tile costs nothing more to fill, so it is filled before the next one is opened anywhere.
      const int block = std::min(left, gap > 0 ? gap : most);
      set_tokens(block * cost.token_bytes());
      if (gap > 0) {
        gap -= block;
      } else {
        chosen = choose(cost, group.source, block);
        const int tiles = cost.tiles(block), chiplet = candidates_[chosen].chiplet;
        chiplet_s_[static_cast<size_t>(chiplet)] += tiles * tile * cost.token_s(chiplet);
        gap = tiles * tile - block;
      }
      left -= block;
      Candidate& c = candidates_[chosen];
      if (!c.woken) {
        c.woken = true;
        bank_s_[static_cast<size_t>(c.set)] += cost.stream_s(c.set);
        add_links(cost.set_route(c.set, c.chiplet), stream_s_);
      }
      add_links(both_ways(group.source, c.chiplet), tokens_s_);
      if (!out.empty() && out.back().group == g && out.back().replica == c.replica) {
        out.back().tokens += block;
      } else {
        out.push_back({g, c.replica, block});
      }
    }
  }
}

}  // namespace sojourn
