// describe: every registered name with its parameter record.
#include <fmt/format.h>

#include <algorithm>

#include "base/quantity.h"
#include "cli/commands.h"
#include "cli/io.h"
#include "memory/timing.h"
#include "moe/model_load.h"
#include "package/load.h"
#include "package/topologies.h"
#include "policy/policies.h"
#include "trace/formats.h"

namespace sojourn::cli {
namespace {

struct Entry {
  std::string name, text;
  std::vector<Param> params;
  std::vector<std::pair<std::string, std::string>> facts;  ///< only when the entry was asked for by name
};

std::string value_text(const Value& value, Unit unit) {
  if (const bool* b = std::get_if<bool>(&value)) return *b ? "true" : "false";
  if (const auto* s = std::get_if<std::string>(&value)) return *s;
  const double number = std::holds_alternative<double>(value) ? std::get<double>(value)
                                                              : static_cast<double>(std::get<std::int64_t>(value));
  if (needs_suffix(unit)) return format_quantity(number, unit);
  return std::holds_alternative<double>(value) ? json_double(number) : std::to_string(std::get<std::int64_t>(value));
}

const char* type_name(const Value& value) {
  constexpr const char* names[] = {"bool", "integer", "number", "text"};
  return names[value.index()];
}

std::string range_text(const Param& p) {
  if (!p.choices.empty()) return fmt::format("{}", fmt::join(p.choices, "|"));
  if (std::holds_alternative<bool>(p.default_value) || std::holds_alternative<std::string>(p.default_value)) return "";
  const auto side = [&](double v) {
    if (std::abs(v) >= 1e300) return std::string();
    return needs_suffix(p.unit) ? format_quantity(v, p.unit) : json_double(v);
  };
  const std::string low = side(p.min), high = side(p.max);
  if (low.empty() && high.empty()) return "";
  if (low.empty()) return "<= " + high;
  if (high.empty()) return ">= " + low;
  return low + " .. " + high;
}

void write_param(JsonWriter& w, const Param& p) {
  w.begin_object().field("name", p.name).field("type", type_name(p.default_value)).field("unit", unit_name(p.unit));
  w.key("default");
  if (p.required)
    w.null();
  else
    std::visit([&](const auto& v) { w.value(v); }, p.default_value);
  w.field("required", p.required);
  w.key("min");
  p.min <= -1e300 ? w.null() : w.value(p.min);
  w.key("max");
  p.max >= 1e300 ? w.null() : w.value(p.max);
  w.key("choices").begin_array();
  for (const std::string& c : p.choices) w.value(c);
  w.end_array();
  w.field("text", p.text).field("source", p.source).end_object();
}

template <class Factory>
std::vector<Entry> entries_of(const Registry<Factory>& registry) {
  std::vector<Entry> out;
  for (const auto& [name, entry] : registry.entries()) out.push_back({name, entry.info.text, entry.info.params, {}});
  return out;
}

Result<std::vector<Entry>> package_entries(const std::string& only) {
  const std::vector<std::string> dirs = search_dirs("packages");
  std::vector<Entry> out;
  if (!only.empty()) {
    auto p = load_package(only, dirs);
    if (!p) return tl::unexpected(p.error());
    Entry e{only, p->text, package_params(), {}};
    double sram = 0, hbm = 0, dram = 0, macs = 0;
    for (const BankSet& set : p->bank_sets)
      (set.tier == Tier::sram ? sram : set.tier == Tier::hbm ? hbm : dram) += static_cast<double>(set.usable);
    for (int c = 0; c < p->compute_count; ++c) macs += static_cast<double>(p->chiplet_rate(c).per_second());
    e.facts = {{"topology", fmt::format("{} {}x{}, routing {}", p->topology, p->width, p->height, p->routing)},
               {"chiplets", fmt::format("{} compute, {} IO/memory, {} groups", p->compute_count,
                                        p->chiplets.size() - static_cast<size_t>(p->compute_count), p->groups)},
               {"links", fmt::format("{} one-way", p->links.size())},
               {"compute", fmt::format("{} TMAC/s", significant(macs / 1e12))},
               {"usable SRAM", format_bytes(static_cast<Bytes>(sram))},
               {"usable HBM", format_bytes(static_cast<Bytes>(hbm))},
               {"usable DRAM", format_bytes(static_cast<Bytes>(dram))},
               {"sha256", p->source_sha256}};
    out.push_back(std::move(e));
    return out;
  }
  for (const auto& [name, path] : list_packages(dirs)) {
    auto p = load_package(path, dirs);
    out.push_back({name, p ? p->text : "cannot be loaded: sojourn check " + path, {}, {}});
  }
  return out;
}

Result<std::vector<Entry>> model_entries(const std::string& only) {
  const std::vector<std::string> dirs = search_dirs("models");
  std::vector<Entry> out;
  const auto summary = [](const ModelShape& m) {
    return fmt::format("{} layers, d {}, {} experts of {}, top-{}, {} GB routed", m.layers, m.hidden, m.experts,
                       m.moe_ff, m.top_k, significant(static_cast<double>(m.routed_bytes()) / 1e9, 3));
  };
  if (!only.empty()) {
    auto m = load_model(only, dirs, command_line(), "describe models");
    if (!m) return tl::unexpected(m.error());
    Entry e{m->name, m->text.empty() ? summary(*m) : m->text, model_params(), {}};
    e.facts = {
        {"shape", summary(*m)},
        {"MoE layers", std::to_string(m->moe_layers())},
        {"an expert", fmt::format("{}, {} MACs a token", format_bytes(m->expert_bytes()), m->expert_macs_per_token())},
        {"parameters", fmt::format("{} G, {} G active", significant(static_cast<double>(m->total_params()) / 1e9, 4),
                                   significant(static_cast<double>(m->active_params()) / 1e9, 4))},
        {"unverified keys", m->unverified.empty() ? "none" : fmt::format("{}", fmt::join(m->unverified, ", "))},
        {"source", m->source},
        {"sha256", m->source_sha256}};
    out.push_back(std::move(e));
    return out;
  }
  for (const std::string& name : model_names(dirs)) {
    auto m = load_model(name, dirs);
    out.push_back({name, m ? summary(*m) : "cannot be loaded: sojourn check it", {}, {}});
  }
  return out;
}

Result<std::vector<Entry>> memory_entries(const std::string& only) {
  std::vector<Entry> out;
  for (const std::string& name : only.empty() ? memory_preset_names() : std::vector<std::string>{only}) {
    auto m = memory_preset(name);
    if (!m) return tl::unexpected(m.error());
    Entry e{name, m->text, {}, {}};
    if (!only.empty()) {
      std::vector<std::string> curve;
      for (const MemoryTiming::Point& p : m->curve)
        curve.push_back(fmt::format("{}: {:.1f} %", p.streams, 100 * p.efficiency));
      const double energy = m->act + m->read + m->refresh + m->background;
      e.facts = {
          {"kind", m->kind},
          {"idle latency", fmt::format("{} ns", significant(m->idle_ns, 4))},
          {"peak", fmt::format("{} GB/s", significant(m->peak / 1e9, 4))},
          {"of peak", fmt::format("{}", fmt::join(curve, ", "))},
          {"energy", energy > 0 ? fmt::format("{} pJ/B (activate {}, read {}, refresh {}, background {})",
                                              significant(energy, 3), significant(m->act, 3), significant(m->read, 3),
                                              significant(m->refresh, 3), significant(m->background, 3))
                                : "unknown"},
          {"source", m->source}};
    }
    out.push_back(std::move(e));
  }
  return out;
}

std::vector<Param> section_params(const std::string& name) {
  for (const PackageSection& s : package_sections())
    if (s.name == name) return s.params;
  return {};
}

std::vector<Entry> network_entries() {
  return {{"closed", "the paper's equations: store and forward, no contention between flows", {}, {}},
          {"packet", "cut-through chunks that contend for links (default)", {}, {}},
          {"flit",
           "cycle-accurate virtual-channel routers; slower, for checking the other two",
           section_params("flit"),
           {}}};
}

Result<std::vector<Entry>> entries_of_kind(const std::string& kind, const std::string& only) {
  if (kind == "policies") {
    PolicyRegistry registry("policy");
    register_all_policies(registry);
    return entries_of(registry);
  }
  if (kind == "topologies") {
    TopologyRegistry registry("topology");
    register_all_topologies(registry);
    return entries_of(registry);
  }
  if (kind == "formats") return entries_of(formats());
  if (kind == "packages") return package_entries(only);
  if (kind == "models") return model_entries(only);
  if (kind == "memories") return memory_entries(only);
  return network_entries();
}

void print_entry(const Entry& e, bool detail, const TextStyle& style, std::string& out) {
  out += style.bold(printable(e.name)) + "  " + printable(e.text) + "\n";
  for (const auto& [name, value] : e.facts) out += fmt::format("  {:<16}{}\n", name + ":", printable(value));
  if (!detail || e.params.empty()) return;
  TextTable table;
  for (const char* header : {"parameter", "default", "range", "unit", "meaning", "source"})
    table.column(header, "", TextTable::Align::left);
  for (const Param& p : e.params)
    table.row({p.name, p.required ? "(required)" : value_text(p.default_value, p.unit), range_text(p),
               needs_suffix(p.unit) || p.unit == Unit::none ? "" : unit_name(p.unit), p.text, p.source});
  out += table.text(style) + "\n";
}

}  // namespace

int describe(const DescribeArgs& args) {
  static const std::vector<std::string> kinds = {"policies",   "packages", "models",  "memories",
                                                 "topologies", "formats",  "networks"};
  std::string kind = args.kind;
  for (const std::string& k : kinds) {
    const bool singular = kind == "policy"     ? k == "policies"
                          : kind == "topology" ? k == "topologies"
                          : kind == "memory"   ? k == "memories"
                                               : kind + "s" == k;
    if (!kind.empty() && singular) kind = k;
  }
  if (!kind.empty() && std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) {
    const std::string near = closest(kind, kinds);
    return report(usage("describe", fmt::format("nothing is called '{}'", kind),
                        fmt::format("{}choose {}", near.empty() ? "" : fmt::format("did you mean {}? ", near),
                                    fmt::join(kinds, ", ")))
                      .value());
  }
  if (auto fine = check_writable(args.json, "--json"); !fine) return report(fine.error());
  const TextOutput text(args.json, false);
  std::string out;
  JsonWriter w;
  begin_document(w, "sojourn.describe/1");
  for (const std::string& k : kinds) {
    if (!kind.empty() && k != kind) continue;
    auto found = entries_of_kind(k, args.name);
    if (!found) return report(found.error());
    std::vector<Entry> entries = std::move(*found);
    if (!args.name.empty() && k != "packages" && k != "models" && k != "memories") {
      std::vector<std::string> names;
      for (const Entry& e : entries) names.push_back(e.name);
      std::erase_if(entries, [&](const Entry& e) { return e.name != args.name; });
      if (entries.empty()) {
        const std::string near = closest(args.name, names);
        return report(usage("describe " + k, fmt::format("there is no '{}'", args.name),
                            fmt::format("{}known: {}", near.empty() ? "" : fmt::format("did you mean {}? ", near),
                                        fmt::join(names, ", ")))
                          .value());
      }
    }
    const bool detail = !args.name.empty() || kind == "policies" || kind == "topologies" || kind == "formats";
    if (kind.empty()) out += (out.empty() ? "" : "\n") + text.style().bold(k + ":") + "\n";
    for (const Entry& e : entries) print_entry(e, detail, text.style(), out);
    w.key(k).begin_array();
    for (const Entry& e : entries) {
      w.begin_object().field("name", e.name).field("text", e.text);
      if (!e.facts.empty()) {
        w.key("facts").begin_object();
        for (const auto& [name, value] : e.facts) w.field(name, value);
        w.end_object();
      }
      w.key("params").begin_array();
      for (const Param& p : e.params) write_param(w, p);
      w.end_array().end_object();
    }
    w.end_array();
  }
  if (kind == "packages" && args.name.empty()) {
    w.key("sections").begin_array();
    for (const PackageSection& s : package_sections()) {
      w.begin_object()
          .field("name", s.name)
          .field("text", s.text)
          .field("repeated", s.repeated)
          .key("params")
          .begin_array();
      for (const Param& p : s.params) write_param(w, p);
      w.end_array().end_object();
    }
    w.end_array();
    out += "\nThe keys of a package file: sojourn describe packages NAME\n";
  }
  if (kind == "models" && args.name.empty()) out += "\nThe keys of a model file: sojourn describe models NAME\n";
  end_document(w, "describe");
  text.write(out);
  if (auto written = write_output(args.json, "--json", w.text()); !written) return report(written.error());
  return kDone;
}

int version(const VersionArgs& args) {
  JsonWriter w;
  begin_document(w, "sojourn.version/1");
  w.field("version", SOJOURN_VERSION);
  end_document(w, "version");
  TextOutput(args.json, false).write("sojourn " SOJOURN_VERSION "\n");
  if (auto written = write_output(args.json, "--json", w.text()); !written) return report(written.error());
  return kDone;
}

}  // namespace sojourn::cli
