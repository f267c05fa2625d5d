// Reads the shipped records and derives service curves.
//
// Equations, assumptions and sources: timing.h.
#include "memory/timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>

#include "config/reader.h"
#include "memory/family.h"
#include "memory/presets.h"
#include "memory/traffic.h"

namespace sojourn {
namespace {

using dram::DramRecord;
using dram::Outcome;
using dram::Pattern;
using dram::Traffic;

/// One file of memories/, either kind.
struct Preset {
  std::string text, source, kind;
  DramRecord dram;
  BankedMemory banked;
};

DramRecord read_dram(TableReader& t) {
  DramRecord r;
  r.tck_ns = t.number("tck_ns", Range{0.01, 100});
  const std::string family = t.choice("family", {"hbm2", "ddr4", "ddr5"});
  const std::pair<const char*, int DramRecord::*> required[] = {{"CL", &DramRecord::cl},
                                                                {"RCD", &DramRecord::rcd},
                                                                {"RP", &DramRecord::rp},
                                                                {"RAS", &DramRecord::ras},
                                                                {"RC", &DramRecord::rc},
                                                                {"burst", &DramRecord::burst},
                                                                {"CCD_S", &DramRecord::ccd_s},
                                                                {"CCD_L", &DramRecord::ccd_l},
                                                                {"RRD_S", &DramRecord::rrd_s},
                                                                {"RRD_L", &DramRecord::rrd_l},
                                                                {"FAW", &DramRecord::faw},
                                                                {"RFC", &DramRecord::rfc},
                                                                {"REFI", &DramRecord::refi},
                                                                {"bank_groups", &DramRecord::bank_groups},
                                                                {"banks", &DramRecord::banks},
                                                                {"page_bytes", &DramRecord::page_bytes},
                                                                {"transaction_bytes", &DramRecord::transaction_bytes},
                                                                {"channels", &DramRecord::channels},
                                                                {"queue", &DramRecord::queue}};
  for (const auto& [key, field] : required) r.*field = static_cast<int>(t.integer(key, Range{1, 1e6}));
  r.pseudo_channels = static_cast<int>(t.integer("pseudo_channels", 1, Range{1, 4}));
  r.interleave_bytes = static_cast<int>(t.integer("interleave_bytes", 0, Range{0, 1e6}));
  r.bank_queue = static_cast<int>(t.integer("bank_queue", 0, Range{0, 1e6}));
  if (r.bank_queue > 0) r.scheduler = dram::Scheduler::bank_queues;
  r.capacity = t.whole("capacity", Unit::bytes, Range{1, 1e15});
  r.mapping = t.text("mapping");
  dram::apply_family(r, family == "hbm2"   ? dram::Family::hbm2
                        : family == "ddr4" ? dram::Family::ddr4
                                           : dram::Family::ddr5);
  return r;
}

Result<Preset> read_preset(const std::string& name) {
  const auto& all = shipped_memories();
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& p) { return p.first == name; });
  if (found == all.end())
    return fail({}, "memories", fmt::format("there is no memory '{}'", name),
                fmt::format("known: {}", fmt::join(memory_preset_names(), ", ")));
  const auto file = ConfigFile::parse_text(found->second, "memories/" + name + ".toml");
  if (!file) return tl::unexpected(file.error());
  Diagnostics problems;
  TableReader t = file->root(problems);
  Preset p;
  p.text = t.text("text");
  p.source = t.text("source");
  p.kind = t.choice("kind", {"dram", "sram", "reram"});
  if (p.kind == "dram") {
    p.dram = read_dram(t);
    p.dram.name = name;
    p.dram.text = p.text;
    p.dram.source = p.source;
    if (!problems.has_errors()) dram::check_record(p.dram, t.where(), problems);
  } else {
    p.banked.banks = static_cast<int>(t.integer("banks", Range{1, 1e6}));
    p.banked.width_bytes = static_cast<int>(t.integer("width_bytes", Range{1, 1e6}));
    p.banked.access_ns = t.number("access_ns", Range{0, 1e6});
    p.banked.cycle_ns = t.number("cycle_ns", Range{1e-3, 1e6});
    p.banked.energy_pj_per_byte = t.number("energy_pj_per_byte", Range{0, 1e6});
  }
  t.finish();
  if (problems.has_errors()) return fail(in_file_order(problems));
  return p;
}

}  // namespace

double MemoryTiming::efficiency(int streams) const {
  if (curve.empty()) return 1;
  if (streams <= curve.front().streams) return curve.front().efficiency;
  for (std::size_t i = 1; i < curve.size(); ++i) {
    const Point &a = curve[i - 1], &b = curve[i];
    if (streams > b.streams) continue;
    const double part = static_cast<double>(streams - a.streams) / (b.streams - a.streams);
    return a.efficiency + part * (b.efficiency - a.efficiency);
  }
  return curve.back().efficiency;
}

MemoryTiming derive(const DramRecord& r) {
  constexpr std::int64_t kBytes = 4 << 20;
  constexpr int kSeeds = 4;
  MemoryTiming out;
  out.name = r.name;
  out.text = r.text;
  out.source = r.source;
  out.kind = "dram";
  out.peak = r.peak();
  Traffic idle;
  idle.pattern = Pattern::idle_random;
  idle.requests = 2000;
  out.idle_ns = dram::run(r, idle).latency_ns;
  for (const int streams : {1, 2, 4, 8, 16}) {
    double sum = 0;
    Outcome o;
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
      Traffic t;
      t.streams = streams;
      t.bytes_per_stream = kBytes / streams;
      t.turn_bytes = 1024;
      t.seed = seed;
      o = dram::run(r, t);
      sum += o.efficiency / kSeeds;
    }
    out.curve.push_back({streams, sum});
    out.act = o.act;
    out.read = o.read;
    out.refresh = o.refresh;
    out.background = o.background;
  }
  return out;
}

MemoryTiming derive(const BankedMemory& m) {
  MemoryTiming out;
  out.idle_ns = m.access_ns;
  out.peak = 1e9 * m.banks * m.width_bytes / m.cycle_ns;
  for (int streams = 1; streams <= 2 * m.banks; streams *= 2)
    out.curve.push_back({streams, m.banks * (1 - std::pow(1 - 1.0 / m.banks, streams)) / streams});
  out.read = m.energy_pj_per_byte;
  return out;
}

std::vector<std::string> memory_preset_names() {
  std::vector<std::string> names;
  for (const auto& p : shipped_memories()) names.push_back(p.first);
  std::sort(names.begin(), names.end());
  return names;
}

Result<MemoryTiming> memory_preset(const std::string& name) {
  static std::mutex mutex;
  static std::map<std::string, MemoryTiming> derived;
  const std::lock_guard lock(mutex);
  if (const auto known = derived.find(name); known != derived.end()) return known->second;
  const auto preset = read_preset(name);
  if (!preset) return tl::unexpected(preset.error());
  MemoryTiming t = preset->kind == "dram" ? derive(preset->dram) : derive(preset->banked);
  t.name = name;
  t.text = preset->text;
  t.source = preset->source;
  t.kind = preset->kind;
  derived.emplace(name, t);
  return t;
}

Result<DramRecord> dram_preset(const std::string& name) {
  const auto preset = read_preset(name);
  if (!preset) return tl::unexpected(preset.error());
  if (preset->kind != "dram") return fail({}, "memories", name + " is not a DRAM", "choose one of kind dram");
  return preset->dram;
}

}  // namespace sojourn
