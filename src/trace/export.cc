// Exports: EPLB's CSV of loads, the EPLB benchmark's expert-load.json, NumPy ids or counts, moe-balance JSONL.
#include "trace/export.h"

#include <fmt/format.h>

#include <cmath>

#include "trace/json_text.h"
#include "trace/npy.h"

namespace sojourn {
namespace {

std::string count_text(double v) {
  return v == std::floor(v) && std::abs(v) < 9e15 ? std::to_string(static_cast<std::int64_t>(v)) : fmt::format("{}", v);
}

std::string eplb_csv(const LoadData& d) {
  std::string out;
  for (const auto& layer : d.total()) {
    for (std::size_t e = 0; e < layer.size(); ++e) out += (e == 0 ? "" : ",") + count_text(layer[e]);
    out += '\n';
  }
  return out;
}

std::string expert_load(const LoadData& d) {
  std::string out = "{\"load_history\": [";
  for (std::int64_t s = 0; s < d.steps; ++s) {
    out += s == 0 ? "{\"logical_expert_load\": [" : ", {\"logical_expert_load\": [";
    for (int l = 0; l < d.layers; ++l) {
      out += l == 0 ? "[" : ", [";
      for (int e = 0; e < d.experts; ++e) out += (e == 0 ? "" : ", ") + count_text(d.at(s, l, e));
      out += ']';
    }
    out += "]}";
  }
  return out + "]}\n";
}

std::string npy_counts(const LoadData& d) {
  std::string out = npy_header("<f8", {static_cast<std::uint64_t>(d.layers), static_cast<std::uint64_t>(d.experts)});
  for (const auto& layer : d.total())
    out.append(reinterpret_cast<const char*>(layer.data()), layer.size() * sizeof(double));
  return out;
}

Status write_ids(const Trace& t, const std::string& path) {
  const TraceMeta& m = t.meta();
  auto file = AtomicFile::create(path);
  if (!file) return tl::unexpected(file.error());
  const std::vector<std::uint64_t> shape{static_cast<std::uint64_t>(m.layers), static_cast<std::uint64_t>(m.tokens),
                                         static_cast<std::uint64_t>(m.top_k)};
  if (auto ok = file->write(npy_header("<u2", shape)); !ok) return ok;
  for (int l = 0; l < m.layers; ++l) {
    const auto ids = t.ids(l);
    if (auto ok = file->write({reinterpret_cast<const char*>(ids.data()), ids.size_bytes()}); !ok) return ok;
  }
  return file->commit();
}

/// A batch is a sequence; origin_rows are 0, since a trace does not say where a token sat.
Status write_moe_balance(const Trace& t, const std::string& path) {
  const TraceMeta& m = t.meta();
  const auto k = static_cast<std::size_t>(m.top_k);
  auto file = AtomicFile::create(path);
  if (!file) return tl::unexpected(file.error());
  const auto sequence = t.sequence_id();
  for (std::size_t first = 0, last; first < sequence.size(); first = last) {
    for (last = first; last < sequence.size() && sequence[last] == sequence[first];) ++last;
    for (int l = 0; l < m.layers; ++l) {
      const auto ids = t.ids(l);
      const int layer = static_cast<std::size_t>(l) < m.layer_ids.size() ? m.layer_ids[static_cast<std::size_t>(l)] : l;
      std::string line = fmt::format("{{\"layer\": {}, \"batch_id\": {}, \"origin_rows\": [", layer, sequence[first]);
      for (std::size_t i = first; i < last; ++i) line += i == first ? "0" : ", 0";
      line += "], \"topk_experts\": [";
      for (std::size_t i = first; i < last; ++i) {
        line += i == first ? "[" : ", [";
        for (std::size_t j = 0; j < k; ++j) {
          const std::uint16_t id = ids[i * k + j];
          line += (j == 0 ? "" : ", ") + (id == 65535 ? std::string("-1") : std::to_string(id));
        }
        line += ']';
      }
      line += "]}\n";
      if (auto ok = file->write(line); !ok) return ok;
    }
  }
  return file->commit();
}

tl::unexpected<Failure> unknown(const std::string& format) {
  std::vector<std::string> names;
  for (const PluginInfo& i : export_formats()) names.push_back(i.name);
  const std::string near = closest(format, names);
  const std::string known = fmt::format("known: {}", fmt::join(names, ", "));
  return fail({"<command line>"}, "--format", "unknown export format '" + format + "'",
              near.empty() ? known : "did you mean " + near + "? (" + known + ")");
}

}  // namespace

std::vector<PluginInfo> export_formats() {
  return {{"eplb-csv", "CSV of loads: one row a layer, one column an expert", {}},
          {"expert-load", "expert-load.json of EPLB benchmarks", {}},
          {"npy", "NumPy uint16 ids [layers, tokens, k]; traces only", {}},
          {"npy-counts", "NumPy float64 counts [layers, experts]", {}},
          {"moe-balance", "moe-balance JSONL, a batch a sequence; traces only", {}}};
}

Status export_to(const Trace& trace, const std::string& format, const std::string& out) {
  if (format == "npy") return write_ids(trace, out);
  if (format == "moe-balance") return write_moe_balance(trace, out);
  return export_to(loads_of(trace), format, out);
}

Status export_to(const LoadData& loads, const std::string& format, const std::string& out) {
  if (format == "eplb-csv") return write_file(out, eplb_csv(loads));
  if (format == "expert-load") return write_file(out, expert_load(loads));
  if (format == "npy-counts") return write_file(out, npy_counts(loads));
  if (format == "npy" || format == "moe-balance")
    return fail({"<command line>"}, "--format", format + " needs a trace; this file holds loads without token order",
                "export eplb-csv, expert-load or npy-counts, or make a trace with `sojourn trace synth --fit FILE`");
  return unknown(format);
}

}  // namespace sojourn
