// The makespan problem of a layer: items, options and charges from the directory, and the assignment of a solution.
// See makespan.h.
#include "policy/makespan.h"

#include <algorithm>
#include <cassert>

namespace sojourn {
namespace {

size_t z(int i) { return static_cast<size_t>(i); }

}  // namespace

void MakespanDispatcher::assign(const CostModel& cost, const DirectoryView& directory, const LayerTask& task,
                                std::vector<Assignment>& out) {
  cost_ = &cost;
  task_ = &task;
  lay_out();
  build(directory, task);
  seed();
  for (const int i : open_) fill(task, i);
  settle_links(task);
  evaluations_used_ = nodes_used_ = 0;
  refine();
  search();
  close();
  emit(task, out);
}

double MakespanDispatcher::time() const { return load_.empty() ? 0.0 : *std::max_element(load_.begin(), load_.end()); }

/// Routes and rates of the package, flat.
void MakespanDispatcher::lay_out() {
  chiplets_ = cost_->chiplets();
  sets_ = cost_->sets();
  links_ = static_cast<int>(cost_->package().links.size());
  tile_ = cost_->tile();
  token_link_s_.resize(z(links_));
  slowest_ = 0;
  for (int u = 0; u < links_; ++u) {
    token_link_s_[z(u)] = cost_->token_bytes() / cost_->link_rate(u);
    slowest_ = std::max(slowest_, token_link_s_[z(u)]);
  }
  const Package& package = cost_->package();
  way_.clear();
  way_first_.assign(1, 0);
  for (int s = 0; s < chiplets_; ++s)
    for (int c = 0; c < chiplets_; ++c) {
      for (const auto route : {package.route_chiplets(s, c), package.route_chiplets(c, s)})
        way_.insert(way_.end(), route.begin(), route.end());
      way_first_.push_back(static_cast<int>(way_.size()));
    }
}

void MakespanDispatcher::build(const DirectoryView& directory, const LayerTask& task) {
  load_.assign(z(chiplets_ + sets_ + links_), 0.0);
  flow_.assign(z(chiplets_) * z(chiplets_), 0);
  items_.clear();
  open_.clear();
  options_.clear();
  charges_.clear();
  parts_.clear();
  x_.clear();
  groups_.build(task, directory.experts());
  for (int e = 0; e < directory.experts(); ++e)
    if (groups_.tokens(e) > 0) add_expert(directory, task, e);
  index_machines();
}

/// Cuts the expert where no replica's run crosses, and each segment's replicas into exact covers.
void MakespanDispatcher::add_expert(const DirectoryView& directory, const LayerTask& task, int e) {
  const auto list = directory.replicas(task.layer, e);
  const auto slice = [&](int id) { return directory.replica(id).slice; };
  if (std::all_of(list.begin(), list.end(), [&](int id) { return slice(id).whole(); })) {
    const int first = static_cast<int>(options_.size());
    for (const int& id : list) add_option(directory, std::span(&id, 1));
    return add_item(task, e, first);
  }
  used_.assign(list.size(), 0);
  for (int begin = 0; begin < kSlices;) {
    int end = begin + 1;
    const auto crosses = [&](int id) { return slice(id).first < end && end < slice(id).end(); };
    while (end < kSlices && std::any_of(list.begin(), list.end(), crosses)) ++end;
    const int first = static_cast<int>(options_.size());
    while (true) {
      // next[p]: the oldest replica left that starts at p and can be continued to the segment's end.
      int next[kSlices + 1];
      std::fill(next, next + kSlices + 1, -1);
      for (int p = end - 1; p >= begin; --p)
        for (size_t i = 0; i < list.size() && next[p] < 0; ++i) {
          const int stop = slice(list[i]).end();
          if (used_[i] == 0 && slice(list[i]).first == p && stop <= end && (stop == end || next[stop] >= 0))
            next[p] = static_cast<int>(i);
        }
      if (next[begin] < 0) break;
      run_.clear();
      for (int p = begin; p < end; p = slice(list[z(next[p])]).end()) {
        run_.push_back(list[z(next[p])]);
        used_[z(next[p])] = 1;
      }
      add_option(directory, run_);
    }
    assert(first < static_cast<int>(options_.size()) && "a segment without an exact cover cannot be served");
    add_item(task, e, first);
    begin = end;
  }
}

void MakespanDispatcher::add_option(const DirectoryView& directory, std::span<const int> replicas) {
  Option o;
  o.item = static_cast<int>(items_.size());
  o.first_charge = static_cast<int>(charges_.size());
  o.first_part = static_cast<int>(parts_.size());
  for (const int id : replicas) {
    const Replica& r = directory.replica(id);
    const double share = static_cast<double>(r.slice.count) / kSlices;
    const int c = r.at.chiplet, set = r.at.bank_set;
    parts_.push_back({id, c});
    charge(o.first_charge, c, s_.launch_s, share * tile_ * cost_->token_s(c));
    charge(o.first_charge, chiplets_ + set, share * cost_->stream_s(set), 0.0);
    for (const int u : cost_->set_route(set, c))
      charge(o.first_charge, chiplets_ + sets_ + u, share * cost_->expert_bytes() / cost_->link_rate(u), 0.0);
  }
  o.charges = static_cast<int>(charges_.size()) - o.first_charge;
  o.parts = static_cast<int>(parts_.size()) - o.first_part;
  options_.push_back(o);
}

/// Adds to the charges of the option that began at `first`; one entry a machine.
void MakespanDispatcher::charge(int first, int machine, double fixed, double tile) {
  for (size_t i = z(first); i < charges_.size(); ++i)
    if (charges_[i].machine == machine) {
      charges_[i].fixed += fixed;
      charges_[i].tile += tile;
      return;
    }
  charges_.push_back({machine, fixed, tile});
}

void MakespanDispatcher::add_item(const LayerTask& task, int e, int first_option) {
  Item item;
  item.expert = e;
  item.tokens = groups_.tokens(e);
  item.first_option = first_option;
  item.options = static_cast<int>(options_.size()) - first_option;
  item.first_x = static_cast<int>(x_.size());
  if (item.options == 1) {
    Option& only = options_.back();
    change(only, 0, item.tokens);
    only.tokens = item.tokens;
    for (const int g : groups_.of(e))
      for (const Part& p : parts(only))
        flow_[z(task.groups[z(g)].source) * z(chiplets_) + z(p.chiplet)] += task.groups[z(g)].tokens;
  } else {
    open_.push_back(static_cast<int>(items_.size()));
    x_.resize(x_.size() + groups_.of(e).size() * z(item.options), 0);
    for (int o = 0; o < item.options; ++o) {
      Option& each = option(item, o);
      for (const int g : groups_.of(e))
        each.hops += static_cast<std::int64_t>(task.groups[z(g)].tokens) * hops_between(each, task.groups[z(g)].source);
    }
  }
  items_.push_back(item);
}

/// Which options of open items charge a machine.
void MakespanDispatcher::index_machines() {
  on_first_.assign(load_.size() + 1, 0);
  const auto each = [&](auto&& visit) {
    for (const int i : open_)
      for (int o = 0; o < items_[z(i)].options; ++o) {
        const Option& mine = option(items_[z(i)], o);
        for (int c = 0; c < mine.charges; ++c) visit(items_[z(i)].first_option + o, mine.first_charge + c);
      }
  };
  each([&](int, int c) { ++on_first_[z(charges_[z(c)].machine) + 1]; });
  for (size_t m = 1; m < on_first_.size(); ++m) on_first_[m] += on_first_[m - 1];
  on_.resize(z(on_first_.back()));
  each([&](int o, int c) { on_[z(on_first_[z(charges_[z(c)].machine)]++)] = {o, c}; });
  for (size_t m = on_first_.size() - 1; m > 0; --m) on_first_[m] = on_first_[m - 1];
  on_first_[0] = 0;
}

/// Deals the item's tokens to its options as the options' numbers say, near sources first.
void MakespanDispatcher::fill(const LayerTask& task, int i) {
  const Item& item = items_[z(i)];
  const auto mine = groups_.of(item.expert);
  int* x = x_.data() + item.first_x;
  std::fill(x, x + mine.size() * z(item.options), 0);
  int active = 0, last = 0;
  for (int o = 0; o < item.options; ++o)
    if (option(item, o).tokens > 0) ++active, last = o;
  if (active == 1) {
    for (size_t g = 0; g < mine.size(); ++g) x[g * z(item.options) + z(last)] = task.groups[z(mine[g])].tokens;
    return;
  }
  keys_.clear();
  for (int o = 0; o < item.options; ++o)
    if (option(item, o).tokens > 0)
      for (size_t g = 0; g < mine.size(); ++g)
        keys_.push_back(
            (static_cast<std::int64_t>(hops_between(option(item, o), task.groups[z(mine[g])].source)) << 40) |
            (static_cast<std::int64_t>(o) << 20) | static_cast<std::int64_t>(g));
  std::sort(keys_.begin(), keys_.end());
  room_.clear();
  left_.clear();
  for (int o = 0; o < item.options; ++o) room_.push_back(option(item, o).tokens);
  for (const int g : mine) left_.push_back(task.groups[z(g)].tokens);
  for (const std::int64_t key : keys_) {
    const auto o = static_cast<size_t>((key >> 20) & 0xfffff), g = static_cast<size_t>(key & 0xfffff);
    const int n = std::min(room_[o], left_[g]);
    room_[o] -= n;
    left_[g] -= n;
    x[g * z(item.options) + o] += n;
  }
}

/// Token traffic of everything onto the links.
void MakespanDispatcher::settle_links(const LayerTask& task) {
  for (const int i : open_) {
    const Item& item = items_[z(i)];
    const auto mine = groups_.of(item.expert);
    for (size_t g = 0; g < mine.size(); ++g)
      for (int o = 0; o < item.options; ++o)
        if (const int n = x_[z(item.first_x) + g * z(item.options) + z(o)]; n > 0)
          for (const Part& p : parts(option(item, o)))
            flow_[z(task.groups[z(mine[g])].source) * z(chiplets_) + z(p.chiplet)] += n;
  }
  for (int s = 0; s < chiplets_; ++s)
    for (int c = 0; c < chiplets_; ++c) {
      const auto n = static_cast<double>(flow_[z(s) * z(chiplets_) + z(c)]);
      if (n > 0)
        for (const int u : both_ways(s, c)) load_[z(chiplets_ + sets_ + u)] += n * token_link_s_[z(u)];
    }
}

void MakespanDispatcher::emit(const LayerTask& task, std::vector<Assignment>& out) {
  out.reserve(out.size() + task.groups.size());
  for (const Item& item : items_) {
    const auto mine = groups_.of(item.expert);
    for (int o = 0; o < item.options; ++o) {
      const Option& to = option(item, o);
      if (to.tokens == 0) continue;
      for (const Part& p : parts(to))
        for (size_t g = 0; g < mine.size(); ++g) {
          const int n =
              item.options == 1 ? task.groups[z(mine[g])].tokens : x_[z(item.first_x) + g * z(item.options) + z(o)];
          if (n > 0) out.push_back({mine[g], p.replica, n});
        }
    }
  }
}

}  // namespace sojourn
