// The algorithm of eplb.h. Kept in binary32 on purpose: a wider sum would break other ties than the original does.
#include "policy/eplb.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace sojourn {
namespace {

size_t at(int i) { return static_cast<size_t>(i); }

/// One layer's maps, by slot.
struct LayerMaps {
  std::vector<int> expert, rank, count;
};

int per_device(int replicas, int devices) { return (replicas + devices - 1) / devices; }

/// Steps 1 to 3 of the original for one layer; groups = nodes = 1 is the global policy.
void plan_layer(std::span<const float> load, const EplbShape& s, int groups, int nodes, LayerMaps& out) {
  const int group_size = s.experts / groups, groups_per_node = groups / nodes;
  const int experts = s.experts / nodes, replicas = s.replicas / nodes, devices = s.devices / nodes;
  const int slots = per_device(replicas, devices) * devices;

  // 1: groups to nodes. `order` lists the experts node by node.
  std::vector<float> of_group(at(groups), 0.0F);
  for (int e = 0; e < s.experts; ++e) of_group[at(e / group_size)] += load[at(e)];
  std::vector<int> node, place;
  balanced_packing(of_group, nodes, node, place);
  std::vector<int> order(at(s.experts));
  for (int e = 0; e < s.experts; ++e) {
    const auto g = at(e / group_size);
    order[at((node[g] * groups_per_node + place[g]) * group_size + e % group_size)] = e;
  }

  out.expert.assign(at(slots * nodes), -1);
  out.rank.assign(at(slots * nodes), 0);
  out.count.assign(at(s.experts), 0);
  std::vector<float> mine(at(experts)), share;
  std::vector<int> expert_of, rank, count, device, position;
  for (int n = 0; n < nodes; ++n) {
    // 2: replicas within the node.
    for (int i = 0; i < experts; ++i) mine[at(i)] = load[at(order[at(n * experts + i)])];
    replicate_experts(mine, replicas, s.copies_max, expert_of, rank, count);
    // 3: replicas to devices; empty slots are items without load.
    share.assign(at(slots), 0.0F);
    for (size_t r = 0; r < expert_of.size(); ++r)
      share[r] = mine[at(expert_of[r])] / static_cast<float>(count[at(expert_of[r])]);
    balanced_packing(share, devices, device, position);
    for (size_t r = 0; r < expert_of.size(); ++r) {
      const auto slot = at(n * slots + device[r] * (slots / devices) + position[r]);
      out.expert[slot] = order[at(n * experts + expert_of[r])];
      out.rank[slot] = rank[r];
    }
    for (int i = 0; i < experts; ++i) out.count[at(order[at(n * experts + i)])] = count[at(i)];
  }
}

void check(const EplbShape& s, size_t loads, bool hierarchical, Diagnostics& wrong) {
  const auto least = [&](const char* key, int value, int bound) {
    if (value < bound) wrong.error({}, key, fmt::format("{} is too few", value), fmt::format("at least {}", bound));
  };
  least("layers", s.layers, 0);
  least("experts", s.experts, 1);
  least("replicas", s.replicas, std::max(1, s.experts));
  least("groups", s.groups, 1);
  least("nodes", s.nodes, 1);
  least("devices", s.devices, 1);
  least("copies_max", s.copies_max, 0);
  if (wrong.has_errors()) return;
  const auto multiple = [&](const char* key, int value, const char* of, int n) {
    if (value % n != 0)
      wrong.error({}, key, fmt::format("{} is no multiple of {} {}", value, n, of),
                  fmt::format("{} or {}", value / n * n, (value / n + 1) * n));
  };
  if (loads != at(s.layers) * at(s.experts))
    wrong.error({}, "load", fmt::format("{} numbers for {} layers of {} experts", loads, s.layers, s.experts),
                "give one a layer and expert");
  if (!hierarchical) return;
  multiple("experts", s.experts, "groups", s.groups);
  multiple("devices", s.devices, "nodes", s.nodes);
  multiple("replicas", s.replicas, "nodes", s.nodes);
}

}  // namespace

void balanced_packing(std::span<const float> weight, int packs, std::vector<int>& pack, std::vector<int>& position) {
  const int n = static_cast<int>(weight.size()), room = n / packs;
  pack.resize(weight.size());
  position.assign(weight.size(), 0);
  if (room == 1) return std::iota(pack.begin(), pack.end(), 0);
  std::vector<int> order(weight.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return weight[at(a)] > weight[at(b)]; });
  std::vector<float> sum(at(packs), 0.0F);
  std::vector<int> held(at(packs), 0);
  for (const int item : order) {
    int best = -1;
    for (int p = 0; p < packs; ++p)
      if (held[at(p)] < room && (best < 0 || sum[at(p)] < sum[at(best)])) best = p;
    pack[at(item)] = best;
    position[at(item)] = held[at(best)]++;
    sum[at(best)] += weight[at(item)];
  }
}

void replicate_experts(std::span<const float> load, int replicas, int copies_max, std::vector<int>& expert_of,
                       std::vector<int>& rank, std::vector<int>& count) {
  const int experts = static_cast<int>(load.size());
  expert_of.resize(load.size());
  std::iota(expert_of.begin(), expert_of.end(), 0);
  rank.assign(load.size(), 0);
  count.assign(load.size(), 1);
  for (int r = experts; r < replicas; ++r) {
    int best = -1;
    float most = 0;
    for (int e = 0; e < experts; ++e) {
      if (copies_max > 0 && count[at(e)] >= copies_max) continue;
      const float share = load[at(e)] / static_cast<float>(count[at(e)]);
      if (best >= 0 && share <= most) continue;
      best = e;
      most = share;
    }
    if (best < 0) return;
    expert_of.push_back(best);
    rank.push_back(count[at(best)]++);
  }
}

Result<EplbPlan> eplb_plan(std::span<const float> load, const EplbShape& s) {
  const bool hierarchical = s.nodes > 0 && s.groups > 0 && s.groups % s.nodes == 0;
  Diagnostics wrong;
  check(s, load.size(), hierarchical, wrong);
  if (wrong.has_errors()) return fail(std::move(wrong));

  const int nodes = hierarchical ? s.nodes : 1, groups = hierarchical ? s.groups : 1;
  EplbPlan plan;
  plan.layers = s.layers;
  plan.experts = s.experts;
  plan.hierarchical = hierarchical;
  plan.per_device = per_device(s.replicas / nodes, s.devices / nodes);
  plan.slots = plan.per_device * s.devices;
  std::vector<int> ranks;
  LayerMaps maps;
  for (int l = 0; l < s.layers; ++l) {
    plan_layer(load.subspan(at(l) * at(s.experts), at(s.experts)), s, groups, nodes, maps);
    plan.phy2log.insert(plan.phy2log.end(), maps.expert.begin(), maps.expert.end());
    plan.logcnt.insert(plan.logcnt.end(), maps.count.begin(), maps.count.end());
    ranks.insert(ranks.end(), maps.rank.begin(), maps.rank.end());
  }
  for (const int n : plan.logcnt) plan.width = std::max(plan.width, n);
  plan.log2phy.assign(plan.logcnt.size() * at(plan.width), -1);
  for (int l = 0; l < s.layers; ++l)
    for (int slot = 0; slot < plan.slots; ++slot) {
      const int e = plan.expert(l, slot);
      if (e < 0) continue;
      const size_t row = (at(l) * at(s.experts) + at(e)) * at(plan.width);
      plan.log2phy[row + at(ranks[at(l) * at(plan.slots) + at(slot)])] = slot;
    }
  return plan;
}

double eplb_imbalance(const EplbPlan& plan, int layer, std::span<const float> load_of_layer, int devices) {
  double most = 0, sum = 0;
  for (int d = 0; d < devices; ++d) {
    double mine = 0;
    for (int slot = d * plan.per_device; slot < (d + 1) * plan.per_device; ++slot) {
      const int e = plan.expert(layer, slot);
      if (e >= 0) mine += static_cast<double>(load_of_layer[at(e)]) / plan.count(layer, e);
    }
    most = std::max(most, mine);
    sum += mine;
  }
  return sum > 0 ? most * devices / sum : 1.0;
}

}  // namespace sojourn
