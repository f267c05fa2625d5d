// Winners, reasons and published figures, computed from the runs.
#include "report/analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/student_t.h"
#include "moe/model_load.h"
#include "report/text_table.h"

namespace sojourn {
namespace {

/// Every policy served the same windows, so differences are judged window by window: is zero inside the 95 % interval
/// of the mean difference?
bool within_noise(const RunResult& best, const RunResult& second) {
  const size_t n = best.window_ps.size();
  if (n != second.window_ps.size() || n < 2)
    return best.latency_ps + best.latency_ps_ci95 >= second.latency_ps - second.latency_ps_ci95;
  double mean = 0, squares = 0;
  for (size_t i = 0; i < n; ++i) mean += static_cast<double>(second.window_ps[i] - best.window_ps[i]);
  mean /= static_cast<double>(n);
  for (size_t i = 0; i < n; ++i) {
    const double d = static_cast<double>(second.window_ps[i] - best.window_ps[i]) - mean;
    squares += d * d;
  }
  const double error = std::sqrt(squares / static_cast<double>(n - 1) / static_cast<double>(n));
  return mean <= student_t95(static_cast<int>(n) - 1) * error;
}

template <class Get>
std::vector<std::string> distinct(const CompareResult& result, Get get) {
  std::vector<std::string> out;
  for (const RunResult& r : result.runs) {
    const std::string& value = get(r);
    if (std::find(out.begin(), out.end(), value) == out.end()) out.push_back(value);
  }
  return out;
}

const std::pair<const std::string, int>* most(const std::map<std::string, int>& counts) {
  const std::pair<const std::string, int>* best = nullptr;
  for (const auto& entry : counts)
    if (best == nullptr || entry.second > best->second) best = &entry;
  return best;
}

int sum(const std::map<std::string, int>& counts) {
  int total = 0;
  for (const auto& [name, n] : counts) total += n;
  return total;
}

std::string bound_text(const RunResult& r) {
  const auto* top = most(r.bottleneck);
  if (top == nullptr) return {};
  return fmt::format("{} bound by {} in {:.0f} % of layer executions", r.policy, top->first,
                     100.0 * top->second / std::max(1, sum(r.bottleneck)));
}

/// What `better` relieved relative to `worse`.
std::string reason_text(const RunResult& better, const RunResult& worse) {
  int stage = -1;
  Ps best_gain = 0, gains = 0;
  for (int s = 0; s < kStages; ++s) {
    const size_t i = static_cast<size_t>(s);
    const Ps gain = worse.stages_ps[i] - better.stages_ps[i];
    if (gain > 0) gains += gain;
    if (gain > best_gain) {
      best_gain = gain;
      stage = s;
    }
  }
  std::string text;
  if (stage >= 0) {
    const size_t i = static_cast<size_t>(stage);
    text = fmt::format("{} {} -> {} us a layer ({} % of what the stages gained)", kStageNames[i],
                       significant(static_cast<double>(worse.stages_ps[i]) / kPsPerUs, 3),
                       significant(static_cast<double>(better.stages_ps[i]) / kPsPerUs, 3),
                       percent(static_cast<double>(best_gain) / static_cast<double>(gains), 0));
  } else {
    text = "no stage of the critical group got shorter; the gain is outside the routed experts";
  }
  const auto* before = most(worse.bottleneck);
  const auto* after = most(better.bottleneck);
  if (before != nullptr && after != nullptr) {
    if (resource_kind(before->first) != resource_kind(after->first)) {
      text += "; " + bound_text(worse) + ", " + bound_text(better);
    } else {
      const auto it = better.bottleneck.find(before->first);
      const double was = static_cast<double>(before->second) / std::max(1, sum(worse.bottleneck));
      const double now =
          it == better.bottleneck.end() ? 0.0 : static_cast<double>(it->second) / std::max(1, sum(better.bottleneck));
      if (now < was)
        text += fmt::format("; {} bound {:.0f} % -> {:.0f} % of layer executions", before->first, 100 * was, 100 * now);
    }
  }
  if (worse.load_max_over_mean > 0 && better.load_max_over_mean > 0 &&
      std::abs(better.load_max_over_mean - worse.load_max_over_mean) > 0.005 * worse.load_max_over_mean)
    text += fmt::format("; load max/mean {:.2f} -> {:.2f}", worse.load_max_over_mean, better.load_max_over_mean);
  return text;
}

void flatten(const std::string& prefix, const nlohmann::ordered_json& node, std::vector<ManifestLine>& out) {
  if (node.is_object()) {
    for (const auto& [name, child] : node.items()) flatten(prefix.empty() ? name : prefix + "." + name, child, out);
    return;
  }
  if (node.is_array()) {
    bool scalars = true, texts = true;
    for (const auto& item : node) {
      scalars = scalars && !item.is_structured();
      texts = texts && item.is_string() && item.get_ref<const std::string&>().size() < 40;
    }
    if (scalars && (texts || std::none_of(node.begin(), node.end(), [](const auto& i) { return i.is_string(); }))) {
      std::string line;
      for (const auto& item : node)
        line += (line.empty() ? "" : ", ") + (item.is_string() ? item.template get<std::string>() : item.dump());
      out.push_back({prefix, line});
      return;
    }
    int i = 0;
    for (const auto& item : node) flatten(fmt::format("{}[{}]", prefix, i++), item, out);
    return;
  }
  out.push_back({prefix, node.is_string() ? node.get<std::string>() : node.dump()});
}

nlohmann::ordered_json parsed(const std::string& text) {
  return nlohmann::ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
}

}  // namespace

std::vector<std::string> modes_of(const CompareResult& result) {
  return distinct(result, [](const RunResult& r) -> const std::string& { return r.mode; });
}
std::vector<std::string> models_of(const CompareResult& result) {
  return distinct(result, [](const RunResult& r) -> const std::string& { return r.model; });
}
std::vector<std::string> policies_of(const CompareResult& result) {
  return distinct(result, [](const RunResult& r) -> const std::string& { return r.policy; });
}

const RunResult* find_run(const CompareResult& result, const std::string& model, const std::string& mode,
                          const std::string& policy) {
  for (const RunResult& r : result.runs)
    if (r.model == model && r.mode == mode && r.policy == policy) return &r;
  return nullptr;
}

std::optional<double> above_bound(const RunResult& run) {
  if (run.lower_bound_ps <= 0) return std::nullopt;
  return static_cast<double>(run.moe_latency_ps) / static_cast<double>(run.lower_bound_ps) - 1;
}

std::array<double, kStages> stage_shares(const RunResult& run) {
  std::array<double, kStages> shares{};
  double total = 0;
  for (const Ps t : run.stages_ps) total += static_cast<double>(t);
  if (total <= 0) return shares;
  for (size_t s = 0; s < shares.size(); ++s) shares[s] = static_cast<double>(run.stages_ps[s]) / total;
  return shares;
}

std::string resource_kind(const std::string& resource) {
  if (resource.find("->") != std::string::npos) return "link";
  for (const char* tier : {"sram", "hbm", "dram"})
    if (resource.find(tier) != std::string::npos) return std::string(tier) + " banks";
  size_t n = 0;
  while (n < resource.size() && std::isalpha(static_cast<unsigned char>(resource[n])) != 0) ++n;
  return n == 0 ? resource : resource.substr(0, n);
}

std::map<std::string, int> bottleneck_kinds(const RunResult& run) {
  std::map<std::string, int> kinds;
  for (const auto& [resource, count] : run.bottleneck) kinds[resource_kind(resource)] += count;
  return kinds;
}

std::vector<Winner> winners(const CompareResult& result) {
  std::vector<Winner> out;
  for (const std::string& mode : modes_of(result)) {
    for (const std::string& model : models_of(result)) {
      std::vector<const RunResult*> runs;
      for (const RunResult& r : result.runs)
        if (r.model == model && r.mode == mode) runs.push_back(&r);
      if (runs.size() < 2) continue;
      std::stable_sort(runs.begin(), runs.end(),
                       [](const RunResult* a, const RunResult* b) { return a->latency_ps < b->latency_ps; });
      const RunResult& best = *runs[0];
      const RunResult& second = *runs[1];
      const RunResult* base = find_run(result, model, mode, "static");
      Winner w;
      w.model = model;
      w.mode = mode;
      w.policy = best.policy;
      w.runner_up = second.policy;
      w.within_noise = within_noise(best, second);
      if (base == nullptr || base == &best) base = &second;
      w.against = base->policy;
      if (base->latency_ps > 0)
        w.reduction = 1 - static_cast<double>(best.latency_ps) / static_cast<double>(base->latency_ps);
      w.reason = best.policy == "static" ? fmt::format("no policy was faster; next is {}", second.policy)
                                         : reason_text(best, *base);
      out.push_back(std::move(w));
    }
  }
  return out;
}

std::optional<PaperFigure> paper_figure(const SummaryRow& row, const PaperNumbers* paper) {
  if (paper == nullptr) return std::nullopt;
  const std::vector<std::string>& known = table2_models();
  for (const auto& [model, reduction] : row.per_model)
    if (std::find(known.begin(), known.end(), model) == known.end()) return std::nullopt;
  for (const PaperComparison& c : paper->comparisons) {
    if (c.mode != row.mode || c.policy != row.policy || c.against != row.against) continue;
    const PaperNumber* n = paper->find(c.number);
    if (n == nullptr) continue;
    return PaperFigure{n->value / 100, c.note.empty() ? paper->publication : paper->title + ", " + c.note};
  }
  return std::nullopt;
}

std::string paper_percent(const PaperFigure& figure) {
  const std::string text = percent(figure.reduction, 2);
  return text.back() == '0' ? percent(figure.reduction, 1) : text;
}

std::vector<ManifestLine> manifest_lines(const std::string& manifest_json) {
  std::vector<ManifestLine> out;
  const nlohmann::ordered_json root = parsed(manifest_json);
  if (root.is_object()) flatten("", root, out);
  return out;
}

std::vector<std::string> assumptions(const std::string& manifest_json) {
  std::vector<std::string> out;
  const nlohmann::ordered_json root = parsed(manifest_json);
  if (!root.is_object() || !root.contains("assumptions") || !root["assumptions"].is_array()) return out;
  for (const auto& item : root["assumptions"]) out.push_back(item.is_string() ? item.get<std::string>() : item.dump());
  return out;
}

}  // namespace sojourn
