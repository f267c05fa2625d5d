// EPLB, DeepSeek's expert-parallel load balancer (deepseek-ai/EPLB, March 2025), as a library over plain arrays.
//
//   replicate   while a place is left, one more replica of argmax_e load_e / count_e
//   pack        items by descending load, each to the least loaded pack that has a free slot
//   hierarchical, if groups % nodes == 0: pack groups of experts to nodes by their summed load, replicate within each
//               node, pack a node's replicas to its devices by load / count. Else global: one node, one group.
//
// Exactness: loads, shares and running sums are IEEE binary32, sums accumulated in order of placement; sorting is
// stable, so equal loads go by lower index; ties of argmax and of the least loaded pack go to the lower index; with one
// item a pack, item i goes to pack i unsorted. With that every map is determined (the original sorts unstably, which
// orders equal loads at random but changes no count and no sorted device load).
//
// Ours, where the original asserts: a number of replicas that does not fill the devices evenly leaves empty slots
// (phy2log -1), packed as items of load 0 after all others; `copies_max` bounds the replicas of one expert (0: no
// bound, as in the original). Neither changes a result the original can give. Like the original, two replicas of one
// expert may land on one device.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "sojourn/diagnostics.h"

namespace sojourn {

struct EplbShape {
  int layers = 1, experts = 0;
  int replicas = 0;    ///< of a layer, over all devices
  int groups = 1;      ///< of experts with consecutive ids (node-limited routing)
  int nodes = 1;       ///< of devices with consecutive ids
  int devices = 1;     ///< ranks
  int copies_max = 0;  ///< most replicas of one expert; 0: no bound
};

struct EplbPlan {
  int layers = 0, experts = 0;
  int slots = 0;       ///< of a layer; device d has slots d * per_device to (d + 1) * per_device - 1
  int per_device = 0;  ///< slots of a device
  int width = 0;       ///< largest replica count of an expert
  bool hierarchical = false;
  std::vector<int> phy2log;  ///< [layer][slot] expert, -1: empty
  std::vector<int> log2phy;  ///< [layer][expert][width] slot of its i-th replica, -1: none
  std::vector<int> logcnt;   ///< [layer][expert] replicas
  [[nodiscard]] int expert(int layer, int slot) const { return phy2log[index(layer, slots, slot)]; }
  [[nodiscard]] int count(int layer, int e) const { return logcnt[index(layer, experts, e)]; }

 private:
  [[nodiscard]] static std::size_t index(int row, int columns, int column) {
    return static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) + static_cast<std::size_t>(column);
  }
};

/// Plans every layer. `load` is [layer][expert] tokens. Errors: a shape that cannot be planned, keyed by its field.
[[nodiscard]] Result<EplbPlan> eplb_plan(std::span<const float> load, const EplbShape& shape);

/// n items into `packs` packs of n / packs each (n a multiple): out arrays are [item] pack and position within it.
void balanced_packing(std::span<const float> weight, int packs, std::vector<int>& pack, std::vector<int>& position);

/// Replicas 0..E-1 are the experts; each further one goes to the largest load / count below `copies_max`, as long as
/// there is one. Out: [replica] its expert and its number among that expert's replicas, [expert] count.
void replicate_experts(std::span<const float> load, int replicas, int copies_max, std::vector<int>& expert_of,
                       std::vector<int>& rank, std::vector<int>& count);

/// Largest device load of a layer of a plan over the mean one, replicas of an expert sharing its load equally.
[[nodiscard]] double eplb_imbalance(const EplbPlan& plan, int layer, std::span<const float> load_of_layer, int devices);

}  // namespace sojourn
