// Assembly of expert loads. Sizes are bounded before memory is taken: at most 2^27 numbers in all.
#include "trace/loads.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sojourn {
namespace {
constexpr std::int64_t kMaxSteps = 1 << 22;
constexpr std::uint64_t kMaxCells = 1ULL << 27;
}  // namespace

std::vector<std::vector<double>> LoadData::total() const {
  std::vector<std::vector<double>> out(static_cast<std::size_t>(layers),
                                       std::vector<double>(static_cast<std::size_t>(experts), 0.0));
  std::size_t i = 0;
  for (std::int64_t s = 0; s < steps; ++s)
    for (auto& row : out)
      for (double& v : row) v += counts[i++];
  return out;
}

void LoadBuilder::declare_layer(std::int64_t layer) {
  const auto it = std::lower_bound(layers_.begin(), layers_.end(), static_cast<int>(layer));
  if (it == layers_.end() || *it != layer) layers_.insert(it, static_cast<int>(layer));
}

bool LoadBuilder::add(std::int64_t step, std::int64_t layer, std::int64_t expert, double count, std::string& why) {
  if (step < 0 || step >= kMaxSteps)
    why = fmt::format("step {} is out of range", step);
  else if (layer < 0 || layer > 4095)
    why = fmt::format("layer {} is out of range (0 to 4095)", layer);
  else if (expert < 0 || expert > 65534)
    why = fmt::format("expert {} is out of range (0 to 65534)", expert);
  else if (!std::isfinite(count) || count < 0 || count > 1e18)
    why = fmt::format("count {} is not a number of tokens", count);
  else {
    declare_layer(layer);
    declare_experts(static_cast<int>(expert) + 1);
    steps_ = std::max(steps_, step + 1);
    cells_.push_back({step, static_cast<int>(layer), static_cast<int>(expert), count});
    return true;
  }
  return false;
}

void LoadBuilder::name_step(std::int64_t step, std::string name) {
  if (step < 0 || step >= kMaxSteps) return;
  if (names_.size() <= static_cast<std::size_t>(step)) names_.resize(static_cast<std::size_t>(step) + 1);
  names_[static_cast<std::size_t>(step)] = std::move(name);
}

Result<LoadData> LoadBuilder::finish(const SourceSpan& where) {
  if (layers_.empty() || experts_ == 0 || steps_ == 0)
    return fail(where, "", "no counts found", "is this the right format? `sojourn describe formats` lists them");
  LoadData out;
  out.layers = static_cast<int>(layers_.size());
  out.experts = experts_;
  out.steps = steps_;
  const std::uint64_t cells =
      static_cast<std::uint64_t>(steps_) * layers_.size() * static_cast<std::uint64_t>(experts_);
  if (cells > kMaxCells)
    return fail(where, "",
                fmt::format("{} steps x {} layers x {} experts is more than {} numbers", steps_, layers_.size(),
                            experts_, kMaxCells),
                "import fewer files at a time");
  out.counts.assign(cells, 0.0);
  for (const Cell& c : cells_) {
    const auto layer =
        static_cast<std::size_t>(std::lower_bound(layers_.begin(), layers_.end(), c.layer) - layers_.begin());
    out.counts[(static_cast<std::size_t>(c.step) * layers_.size() + layer) * static_cast<std::size_t>(experts_) +
               static_cast<std::size_t>(c.expert)] += c.count;
  }
  out.meta = std::move(meta);
  out.meta.format = format_;
  out.meta.layers = out.layers;
  out.meta.experts = out.experts;
  out.meta.layer_ids = layers_;
  out.step_names = std::move(names_);
  if (!out.step_names.empty()) out.step_names.resize(static_cast<std::size_t>(steps_));
  out.traffic = traffic;
  return out;
}

LoadData loads_of(const Trace& trace) {
  LoadData out;
  out.meta = trace.meta();
  out.layers = out.meta.layers;
  out.experts = out.meta.experts;
  out.steps = 1;
  out.counts.assign(static_cast<std::size_t>(out.layers) * static_cast<std::size_t>(out.experts), 0.0);
  for (int l = 0; l < out.layers; ++l)
    for (std::uint16_t id : trace.ids(l))
      if (id < out.experts) out.counts[static_cast<std::size_t>(l) * static_cast<std::size_t>(out.experts) + id] += 1;
  return out;
}

}  // namespace sojourn
