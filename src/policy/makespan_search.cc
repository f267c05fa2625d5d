// Seed, refinement, search and closing of the makespan problem. See makespan.h.
#include <algorithm>
#include <numeric>
#include <tuple>

#include "policy/makespan.h"

namespace sojourn {
namespace {

size_t z(int i) { return static_cast<size_t>(i); }

/// Loads are sums that come and go; below this share two of them are equal.
constexpr double kSame = 1e-9;
constexpr int kRounds = 4;     ///< of pouring
constexpr int kDepth = 3;      ///< moves of a chain
constexpr double kTail = 0.9;  ///< machines below this share of the fullest one are left as the seed has them

}  // namespace

void MakespanDispatcher::change(const Option& o, int before, int after) {
  const int tile = tiles(after) - tiles(before), fixed = (after > 0) - (before > 0);
  if (tile == 0 && fixed == 0) return;
  for (const Charge& c : charges(o)) load_[z(c.machine)] += fixed * c.fixed + tile * c.tile;
}

/// The fullest of the machines that get fuller when the option goes from `before` to `after` tokens.
double MakespanDispatcher::level(const Option& o, int before, int after) const {
  const int tile = tiles(after) - tiles(before), fixed = (after > 0) - (before > 0);
  double worst = 0;
  for (const Charge& c : charges(o))
    if (const double more = fixed * c.fixed + tile * c.tile; more > 0)
      worst = std::max(worst, load_[z(c.machine)] + more);
  return worst;
}

int MakespanDispatcher::hops_between(const Option& o, int source) const {
  int sum = 0;
  for (const Part& p : parts(o)) sum += cost_->hops(source, p.chiplet) + cost_->hops(p.chiplet, source);
  return sum;
}

void MakespanDispatcher::add_tokens(const Option& o, int source, double tokens) {
  for (const Part& p : parts(o))
    for (const int u : both_ways(source, p.chiplet)) load_[z(chiplets_ + sets_ + u)] += tokens * token_link_s_[z(u)];
}

double MakespanDispatcher::peak_link() const {
  double peak = 0;
  for (int u = 0; u < links_; ++u) peak = std::max(peak, load_[z(chiplets_ + sets_ + u)]);
  return peak;
}

int MakespanDispatcher::fullest(bool skip_frozen) const {
  int best = -1;
  for (int m = 0; m < static_cast<int>(load_.size()); ++m)
    if (!(skip_frozen && frozen_[z(m)] != 0) && (best < 0 || load_[z(m)] > load_[z(best)])) best = m;
  return best;
}

// Seed ----------------------------------------------------------------------------------------------------------------

void MakespanDispatcher::seed() {
  work_.assign(items_.size(), 0.0);
  for (const int i : open_) {
    double tile = 0, fixed = 0;
    for (const Charge& c : charges(option(items_[z(i)], 0))) {
      tile = std::max(tile, c.tile);
      fixed = std::max(fixed, c.fixed);
    }
    work_[z(i)] = tiles(items_[z(i)].tokens) * tile + fixed;
  }
  std::sort(open_.begin(), open_.end(),
            [&](int a, int b) { return work_[z(a)] != work_[z(b)] ? work_[z(a)] > work_[z(b)] : a < b; });
  bool changed = true;
  for (int round = 0; round < kRounds && changed; ++round) {
    changed = false;
    for (const int i : open_) changed = pour(i) || changed;
  }
}

/// Deals an item anew, the others as they are: tile by tile, or all to one option if that is no worse.
bool MakespanDispatcher::pour(int i) {
  const Item& item = items_[z(i)];
  dealt_.clear();
  int whole = 0;
  double whole_level = 0;
  for (int o = 0; o < item.options; ++o) {
    Option& mine = option(item, o);
    dealt_.push_back(mine.tokens);
    change(mine, mine.tokens, 0);
    mine.tokens = 0;
  }
  for (int o = 0; o < item.options; ++o) {
    const double mine = level(option(item, o), 0, item.tokens);
    if (o == 0 || std::tie(mine, option(item, o).hops) < std::tie(whole_level, option(item, whole).hops)) {
      whole = o;
      whole_level = mine;
    }
  }
  for (int left = item.tokens; left > 0;) {
    const int n = std::min(left, tile_);
    int best = 0;
    double best_level = 0;
    for (int o = 0; o < item.options; ++o) {
      const Option& mine = option(item, o);
      const double after = level(mine, mine.tokens, mine.tokens + n);
      if (o > 0 && std::tie(after, mine.hops) >= std::tie(best_level, option(item, best).hops)) continue;
      best = o;
      best_level = after;
    }
    Option& to = option(item, best);
    change(to, to.tokens, to.tokens + n);
    to.tokens += n;
    left -= n;
  }
  double split_level = 0;
  for (int o = 0; o < item.options; ++o)
    if (option(item, o).tokens > 0)
      for (const Charge& c : charges(option(item, o))) split_level = std::max(split_level, load_[z(c.machine)]);
  bool changed = false;
  for (int o = 0; o < item.options; ++o) {
    Option& mine = option(item, o);
    const int tokens = whole_level > split_level ? mine.tokens : o == whole ? item.tokens : 0;
    change(mine, mine.tokens, tokens);
    mine.tokens = tokens;
    changed = changed || tokens != dealt_[z(o)];
  }
  return changed;
}

// Moves ---------------------------------------------------------------------------------------------------------------

/// Charges and numbers only; which tokens go is shift()'s.
void MakespanDispatcher::move(const Move& m) {
  Option &from = options_[z(m.from)], &to = options_[z(m.to)];
  change(from, from.tokens, from.tokens - m.tokens);
  change(to, to.tokens, to.tokens + m.tokens);
  from.tokens -= m.tokens;
  to.tokens += m.tokens;
}

/// Of the machines that move `m`, made already, filled further: the fullest, how many are at the limit, one of those.
double MakespanDispatcher::raised(const Move& m, int& above, int& which, double limit) const {
  const Option& to = options_[z(m.to)];
  const int before = to.tokens - m.tokens;
  const int tile = tiles(to.tokens) - tiles(before), fixed = before == 0;
  double worst = 0;
  above = 0;
  for (const Charge& c : charges(to)) {
    if (fixed * c.fixed + tile * c.tile <= 0) continue;
    const double mine = load_[z(c.machine)];
    worst = std::max(worst, mine);
    if (mine < limit) continue;
    ++above;
    which = c.machine;
  }
  return worst;
}

void MakespanDispatcher::shift_group(const Move& m, int group, int tokens) {
  const Item& item = items_[z(m.item)];
  const int row = item.first_x + group * item.options - item.first_option;
  const int source = task_->groups[z(groups_.of(item.expert)[z(group)])].source;
  x_[z(row + m.from)] -= tokens;
  x_[z(row + m.to)] += tokens;
  add_tokens(options_[z(m.from)], source, -tokens);
  add_tokens(options_[z(m.to)], source, tokens);
  log_.push_back({row + m.from, row + m.to, source, tokens, m.from, m.to});
}

/// Gives a move its tokens: those that lose fewest hops.
void MakespanDispatcher::shift(const Move& m) {
  const Item& item = items_[z(m.item)];
  const auto mine = groups_.of(item.expert);
  keys_.clear();
  for (size_t g = 0; g < mine.size(); ++g) {
    if (x_[z(item.first_x + m.from - item.first_option) + g * z(item.options)] == 0) continue;
    const int source = task_->groups[z(mine[g])].source;
    const std::int64_t more =
        hops_between(options_[z(m.to)], source) - hops_between(options_[z(m.from)], source) + (1 << 20);
    keys_.push_back((more << 32) | static_cast<std::int64_t>(g));
  }
  std::sort(keys_.begin(), keys_.end());
  int left = m.tokens;
  for (const std::int64_t key : keys_) {
    const auto g = static_cast<int>(key & 0xffffffff);
    const int n = std::min(left, x_[z(item.first_x + g * item.options + m.from - item.first_option)]);
    shift_group(m, g, n);
    if ((left -= n) == 0) break;
  }
}

void MakespanDispatcher::unshift(size_t to) {
  while (log_.size() > to) {
    const Shifted& s = log_.back();
    x_[z(s.from)] += s.tokens;
    x_[z(s.to)] -= s.tokens;
    add_tokens(options_[z(s.option_to)], s.source, -s.tokens);
    add_tokens(options_[z(s.option_from)], s.source, s.tokens);
    log_.pop_back();
  }
}

/// Moves the tokens of `moves`, whose charges are applied. False, and nothing moved, if that fills a link to the limit
/// (or leaves `machine` there).
bool MakespanDispatcher::settle(std::span<const Move> moves, int machine, double limit) {
  double more = 0;
  for (const Move& m : moves) more += 2.0 * m.tokens * options_[z(m.to)].parts * slowest_;
  const bool check = machine >= chiplets_ + sets_ || peak_link() + more >= limit;
  if (check) before_.assign(load_.begin() + chiplets_ + sets_, load_.end());
  log_.clear();
  for (const Move& m : moves) shift(m);
  if (!check || links_below(machine, limit)) return true;
  unshift(0);
  return false;
}

bool MakespanDispatcher::links_below(int machine, double limit) const {
  for (int u = 0; u < links_; ++u) {
    const double now = load_[z(chiplets_ + sets_ + u)];
    if (now >= limit && (now > before_[z(u)] || machine == chiplets_ + sets_ + u)) return false;
  }
  return true;
}

// Refinement ----------------------------------------------------------------------------------------------------------

void MakespanDispatcher::refine() {
  frozen_.assign(load_.size(), 0);
  seen_.resize(load_.size(), 0);
  while (evaluations_used_ < s_.evaluations) {
    const int m = fullest(true);
    if (m < 0 || load_[z(m)] <= kTail * time()) return;
    if (!relieve(m) && !(m >= chiplets_ + sets_ && relieve_link(m))) frozen_[z(m)] = 1;
  }
}

/// Brings a machine below its present load without filling another that far: the best single move, or else the first
/// chain of moves found breadth first.
bool MakespanDispatcher::relieve(int machine) {
  const double limit = load_[z(machine)] * (1 - kSame);
  ++stamp_;
  for (size_t m = 0; m < frozen_.size(); ++m)
    if (frozen_[m] != 0) seen_[m] = stamp_;
  seen_[z(machine)] = stamp_;
  nodes_.clear();
  nodes_.push_back({-1, machine, 0, {}});
  for (size_t head = 0; head < nodes_.size(); ++head) {
    const Node node = nodes_[head];
    path_.clear();
    for (int n = static_cast<int>(head); nodes_[z(n)].parent >= 0; n = nodes_[z(n)].parent)
      path_.push_back(nodes_[z(n)].move);
    std::reverse(path_.begin(), path_.end());
    for (const Move& m : path_) move(m);
    const auto undo = [&](const Move& m) { move({m.item, m.to, m.from, m.tokens}); };
    Move best;
    double best_level = 0;
    for (int k = on_first_[z(node.machine)]; k < on_first_[z(node.machine) + 1]; ++k) {
      const int a = on_[z(k)].option;
      const Charge& c = charges_[z(on_[z(k)].charge)];
      const int held = options_[z(a)].tokens, have = tiles(held);
      if (held == 0) continue;
      const double over = load_[z(node.machine)] - limit;
      const Item& item = items_[z(options_[z(a)].item)];
      for (int b = item.first_option; b < item.first_option + item.options; ++b) {
        if (b == a) continue;
        int last = -1;
        for (int way = 0; way < 3; ++way) {
          int n = have;  // all; as little as helps; as much as levels the two (at the root only)
          if (way == 1) n = c.tile > 0 ? static_cast<int>(std::min(over / c.tile, 1e6)) + 1 : have;
          if (way == 2) n = node.parent < 0 ? half_gap(a, b, c.machine, c.tile) : have;
          if (n >= have ? last == held : n <= 0) continue;
          const int tokens = n >= have ? held : held - (have - n) * tile_;
          if (tokens == last) continue;
          last = tokens;
          if (evaluations_used_ >= s_.evaluations) break;
          ++evaluations_used_;
          const Move m{options_[z(a)].item, a, b, tokens};
          move(m);
          int above = 0, which = 0;
          const double worst = std::max(raised(m, above, which, limit), load_[z(node.machine)]);
          if (load_[z(node.machine)] < limit && above == 0) {
            if (node.parent >= 0) {
              path_.push_back(m);
              if (settle(path_, machine, limit)) return true;
              path_.pop_back();
            } else if (best.tokens == 0 || worst < best_level) {
              best = m;
              best_level = worst;
            }
          } else if (load_[z(node.machine)] < limit && above == 1 && node.depth + 1 < kDepth &&
                     seen_[z(which)] != stamp_) {
            seen_[z(which)] = stamp_;
            nodes_.push_back({static_cast<int>(head), which, node.depth + 1, m});
          }
          undo(m);
        }
      }
    }
    if (best.tokens > 0) {
      move(best);
      if (settle({&best, 1}, machine, limit)) return true;
      undo(best);
    }
    for (size_t i = path_.size(); i-- > 0;) undo(path_[i]);
  }
  return false;
}

/// Tiles from option a to b after which `machine` and the machines of b are about equally full.
int MakespanDispatcher::half_gap(int a, int b, int machine, double tile) const {
  if (tile <= 0) return tiles(options_[z(a)].tokens);
  const Option& to = options_[z(b)];
  double n = 1e6;
  for (const Charge& c : charges(to)) {
    const double gap = load_[z(machine)] - load_[z(c.machine)] - (to.tokens == 0 ? c.fixed : 0.0);
    n = std::min(n, c.tile + tile > 0 ? gap / (c.tile + tile) : 1e6);
  }
  return static_cast<int>(std::max(n, 0.0));
}

/// A link is full of tokens: other sources' tokens, or fewer, over it.
bool MakespanDispatcher::relieve_link(int machine) {
  const int u = machine - chiplets_ - sets_;
  const double limit = load_[z(machine)] * (1 - kSame);
  const auto crossings = [&](int o, int source) {
    int n = 0;
    for (const Part& p : parts(options_[z(o)]))
      for (const int v : both_ways(source, p.chiplet)) n += v == u;
    return n;
  };
  before_.assign(load_.begin() + chiplets_ + sets_, load_.end());
  for (const int i : open_) {
    const Item& item = items_[z(i)];
    const auto mine = groups_.of(item.expert);
    const auto held = [&](size_t g, int o) {
      return x_[z(item.first_x) + g * z(item.options) + z(o - item.first_option)];
    };
    const auto source = [&](size_t g) { return task_->groups[z(mine[g])].source; };
    for (size_t g = 0; g < mine.size(); ++g)
      for (int a = item.first_option; a < item.first_option + item.options; ++a)
        for (int b = item.first_option; held(g, a) > 0 && b < item.first_option + item.options; ++b) {
          if (a == b || crossings(a, source(g)) <= crossings(b, source(g))) continue;
          for (int n = held(g, a); n > 0; n /= 2) {
            if (++evaluations_used_ > s_.evaluations) return false;
            const Move there{i, a, b, n};
            log_.clear();
            move(there);
            shift_group(there, static_cast<int>(g), n);
            int above = 0, which = 0;
            (void)raised(there, above, which, limit);
            if (above == 0 && links_below(machine, limit)) return true;
            for (size_t h = 0; h < mine.size(); ++h) {
              if (h == g || held(h, b) < n || crossings(b, source(h)) < crossings(a, source(h))) continue;
              const Move back{i, b, a, n};
              move(back);
              shift_group(back, static_cast<int>(h), n);
              if (links_below(machine, limit)) return true;
              unshift(1);
              move({i, a, b, n});
            }
            unshift(0);
            move({i, b, a, n});
          }
        }
  }
  return false;
}

// Search --------------------------------------------------------------------------------------------------------------

void MakespanDispatcher::search() {
  const int machine = fullest(false);
  choose_neighbourhood(machine);
  if (chosen_.empty()) return;
  kept_x_ = x_;
  kept_tokens_.clear();
  double most = 0;
  for (const int i : chosen_) {
    const Item& item = items_[z(i)];
    add_item_tokens(item, -1);
    int widest = 0;
    for (int o = 0; o < item.options; ++o) {
      Option& mine = option(item, o);
      kept_tokens_.push_back(mine.tokens);
      change(mine, mine.tokens, 0);
      mine.tokens = 0;
      widest = std::max(widest, mine.parts);
    }
    most += 2.0 * item.tokens * widest * slowest_;
  }
  const size_t n = chosen_.size();
  tile_left_.assign(n + 1, 0.0);
  fixed_left_.assign(n + 1, 0.0);
  for (size_t d = n; d-- > 0;) {
    const Item& item = items_[z(chosen_[d])];
    double tile = 1e300, fixed = 1e300;
    for (int o = 0; o < item.options; ++o) {
      double t = 0, f = 0;
      for (const Charge& c : charges(option(item, o))) {
        if (c.machine < chiplets_) t += tiles(item.tokens) * c.tile + c.fixed;
        if (c.machine >= chiplets_ && c.machine < chiplets_ + sets_) f += c.fixed;
      }
      tile = std::min(tile, t);
      fixed = std::min(fixed, f);
    }
    tile_left_[d] = tile_left_[d + 1] + tile;
    fixed_left_[d] = fixed_left_[d + 1] + fixed;
  }
  best_ = target_ * (1 - kSame);
  links_matter_ = peak_link() + most >= best_;
  improved_ = false;
  best_tokens_ = kept_tokens_;
  if (*std::max_element(load_.begin(), load_.end()) < best_) branch(0, 0, items_[z(chosen_[0])].tokens);
  if (!improved_) x_ = kept_x_;
  size_t k = 0;
  for (const int i : chosen_) {
    const Item& item = items_[z(i)];
    for (int o = 0; o < item.options; ++o, ++k) {
      option(item, o).tokens = best_tokens_[k];
      change(option(item, o), 0, best_tokens_[k]);
    }
    if (improved_) fill(*task_, i);
    add_item_tokens(item, 1);
  }
}

void MakespanDispatcher::add_item_tokens(const Item& item, int sign) {
  const auto mine = groups_.of(item.expert);
  for (size_t g = 0; g < mine.size(); ++g)
    for (int o = 0; o < item.options; ++o)
      if (const int n = x_[z(item.first_x) + g * z(item.options) + z(o)]; n > 0)
        add_tokens(option(item, o), task_->groups[z(mine[g])].source, sign * n);
}

/// Items that charge the machine, then items that share a machine with those, and so on. None if the machine's load is
/// not theirs.
void MakespanDispatcher::choose_neighbourhood(int machine) {
  chosen_.clear();
  target_ = load_[z(machine)];
  double theirs = 0;
  for (int k = on_first_[z(machine)]; k < on_first_[z(machine) + 1]; ++k) {
    const Option& o = options_[z(on_[z(k)].option)];
    const Charge& c = charges_[z(on_[z(k)].charge)];
    if (o.tokens > 0) theirs += c.fixed + c.tile;
  }
  if (theirs <= 0 && machine < chiplets_ + sets_) return;
  if (open_.size() <= z(s_.neighbourhood)) {
    chosen_ = open_;
    return;
  }
  ++stamp_;
  by_item_.assign(items_.size(), 0);
  machines_.assign(1, machine);
  seen_[z(machine)] = stamp_;
  for (size_t head = 0; head < machines_.size(); ++head)
    for (int k = on_first_[z(machines_[head])]; k < on_first_[z(machines_[head]) + 1]; ++k) {
      const int i = options_[z(on_[z(k)].option)].item;
      if (by_item_[z(i)] != 0 || (head == 0 && options_[z(on_[z(k)].option)].tokens == 0)) continue;
      by_item_[z(i)] = 1;
      chosen_.push_back(i);
      if (chosen_.size() >= z(s_.neighbourhood)) head = machines_.size() - 1;
      if (chosen_.size() >= z(s_.neighbourhood)) break;
      for (int o = 0; o < items_[z(i)].options; ++o)
        for (const Charge& c : charges(option(items_[z(i)], o)))
          if (seen_[z(c.machine)] != stamp_) {
            seen_[z(c.machine)] = stamp_;
            machines_.push_back(c.machine);
          }
    }
  std::sort(chosen_.begin(), chosen_.end(),
            [&](int a, int b) { return work_[z(a)] != work_[z(b)] ? work_[z(a)] > work_[z(b)] : a < b; });
}

/// What is still to be placed does not fit below the best time, even if it could be spread like a fluid.
bool MakespanDispatcher::hopeless(size_t depth) const {
  double compute = tile_left_[depth], streams = fixed_left_[depth];
  for (int c = 0; c < chiplets_ && compute > 0; ++c) compute -= std::max(0.0, best_ - load_[z(c)]);
  if (compute > 0) return true;
  for (int b = chiplets_; b < chiplets_ + sets_ && streams > 0; ++b) streams -= std::max(0.0, best_ - load_[z(b)]);
  return streams > 0;
}

/// Option `o` and later ones of item `depth` share `left` tokens.
void MakespanDispatcher::branch(size_t depth, int o, int left) {
  if (depth == chosen_.size()) {
    best_ = *std::max_element(load_.begin(), load_.end()) * (1 - kSame);
    best_tokens_.clear();
    for (const int i : chosen_)
      for (int k = 0; k < items_[z(i)].options; ++k) best_tokens_.push_back(option(items_[z(i)], k).tokens);
    improved_ = true;
    return;
  }
  const Item& item = items_[z(chosen_[depth])];
  Option& mine = option(item, o);
  const bool last = o + 1 == item.options;
  for (int n = tiles(left); n >= 0; --n) {
    if (last && n < tiles(left)) return;
    if (++nodes_used_ > s_.nodes) return;
    const int tokens = std::min(left, n * tile_);
    if (level(mine, 0, tokens) >= best_) continue;
    change(mine, 0, tokens);
    mine.tokens = tokens;
    if (tokens < left) {
      branch(depth, o + 1, left - tokens);
    } else if (!hopeless(depth + 1)) {
      bool fits = true;
      if (links_matter_) {
        fill(*task_, chosen_[depth]);
        add_item_tokens(item, 1);
        fits = peak_link() < best_;
      }
      if (fits) branch(depth + 1, 0, depth + 1 < chosen_.size() ? items_[z(chosen_[depth + 1])].tokens : 0);
      if (links_matter_) add_item_tokens(item, -1);
    }
    change(mine, tokens, 0);
    mine.tokens = 0;
  }
}

/// Lets replicas sleep whose tokens another active one takes without becoming fuller than either is now.
void MakespanDispatcher::close() {
  for (size_t k = open_.size(); k-- > 0;) {
    const Item& item = items_[z(open_[k])];
    for (int a = item.first_option + item.options - 1; a >= item.first_option; --a)
      for (int b = item.first_option; b < item.first_option + item.options; ++b) {
        Option &from = options_[z(a)], &to = options_[z(b)];
        if (a == b || from.tokens == 0 || to.tokens == 0) continue;
        double limit = 0;
        for (const Option* each : {&from, &to})
          for (const Charge& c : charges(*each)) limit = std::max(limit, load_[z(c.machine)]);
        const Move m{open_[k], a, b, from.tokens};
        move(m);
        int above = 0, which = 0;
        (void)raised(m, above, which, limit * (1 + kSame));
        if (above == 0 && settle({&m, 1}, -1, limit)) continue;
        move({m.item, b, a, m.tokens});
      }
  }
}

}  // namespace sojourn
