// The three network models on the same messages: dispatch and gather of real MoE layers, and the layers as a whole.
#pragma once
#include <string>
#include <vector>

#include "base/progress.h"
#include "study/compare.h"

namespace sojourn {

/// One set of messages, or one layer, under each model.
struct ModelCase {
  std::string model, mode, policy;
  int window = 0, layer = 0;
  std::string what;                     ///< dispatch | gather | layer
  Ps closed = 0, packet = 0, flit = 0;  ///< makespan
  double packet_s = 0, flit_s = 0;      ///< wall time
  Bytes bytes = 0;                      ///< of the messages
};

struct ModelRow {  ///< over the cases of one mode and kind
  std::string mode, what;
  std::size_t n = 0;
  double closed_mean = 0, closed_worst = 0;  ///< relative error against flit: mean of |e|, largest |e|
  double packet_mean = 0, packet_worst = 0;
  double closed_bias = 0, packet_bias = 0;  ///< mean of e
  double speed = 0;                         ///< flit wall time over packet wall time, both summed
};

struct NetworkModels {
  std::vector<ModelCase> cases;
  bool interrupted = false;
  [[nodiscard]] std::vector<ModelRow> rows() const;
};

/// Runs `options` (its network is ignored) and takes every scored window's first MoE layer of every policy.
/// dispatch: every source's tokens to every chiplet, all at time 0; gather: every group's outputs back, all at time 0;
/// layer: the executor's MoE layer without migrations. closed: equation (8) of HCRMap, and its layer.
Result<NetworkModels> compare_networks(CompareOptions options, const PolicyRegistry& registry, ProgressSink& progress);

}  // namespace sojourn
