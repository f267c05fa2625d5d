// Reads systems and rows, runs each row through src/memory, collects what both sides have.
#include "study/validate_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <mutex>

#include "base/parallel.h"
#include "memory/family.h"
#include "memory/traffic.h"
#include "study/csv_table.h"

namespace sojourn {
namespace {

using dram::DramRecord;
using dram::Outcome;
using dram::Pattern;
using dram::Traffic;

struct System {
  DramRecord record;
  std::string simulator;
  dram::Family family = dram::Family::hbm2;
};

/// Runs of one row and what they are compared with.
struct Job {
  DramRecord record;
  Traffic traffic;
  std::string id;
  struct Expected {
    std::string quantity;
    double value = 0;
    double Outcome::*field = nullptr;
    double absolute = 0, relative = 0;  ///< tolerance, if there is one
  };
  std::vector<Expected> expected;
  double total = -1;  ///< energy of all sources
};

System read_system(const CsvTable& t, std::size_t i) {
  System s;
  DramRecord& r = s.record;
  r.name = t.text(i, "system");
  r.text = t.text(i, "memory");
  s.simulator = t.text(i, "simulator");
  if (r.name.empty()) t.wrong(i, "system", "a system needs a name", "give the name that measurements.csv uses");
  r.tck_ns = t.number(i, "tCK_ns", 0.01, 100);
  const std::pair<const char*, int DramRecord::*> timings[] = {
      {"CL", &DramRecord::cl},       {"RCD_read", &DramRecord::rcd}, {"RP", &DramRecord::rp},
      {"RAS", &DramRecord::ras},     {"RC", &DramRecord::rc},        {"burst_cycles", &DramRecord::burst},
      {"CCD_S", &DramRecord::ccd_s}, {"CCD_L", &DramRecord::ccd_l},  {"RRD_S", &DramRecord::rrd_s},
      {"RRD_L", &DramRecord::rrd_l}, {"FAW", &DramRecord::faw},      {"RFC", &DramRecord::rfc},
      {"REFI", &DramRecord::refi}};
  for (const auto& [column, field] : timings) r.*field = t.integer(i, column, 1, 1'000'000);
  r.bank_groups = t.integer(i, "bank_groups", 1, 64);
  r.banks = t.integer(i, "banks_per_group", 1, 64);
  r.page_bytes = t.integer(i, "page_bytes", 64, 1 << 20);
  r.transaction_bytes = t.integer(i, "transaction_bytes", 16, 64);
  r.channels = t.integer(i, "channels_in_model", 1, 1024);
  r.capacity = static_cast<std::int64_t>(t.number(i, "capacity_GiB", 1e-3, 1e6) * (1 << 30));
  r.interleave_bytes = static_cast<int>(t.maybe(i, "channel_interleave_bytes").value_or(0));
  r.queue = t.integer(i, "read_queue_per_channel", 1, 4096);
  const double peak = t.number(i, "peak_GBps", 1e-3, 1e6) * 1e9;
  if (!t.maybe(i, "tCK_ns") || !t.maybe(i, "burst_cycles")) return s;
  r.pseudo_channels = static_cast<int>(std::lround(peak / r.peak()));
  if (std::abs(r.pseudo_channels * r.peak() / std::max(1, r.pseudo_channels) / peak - 1) > 0.02)
    t.wrong(i, "peak_GBps", "is not a multiple of transaction_bytes / (burst_cycles * tCK_ns) * channels_in_model",
            "give the peak of all channels, or check those columns");
  const auto family = dram::family_in(r.name + " " + r.text);
  if (!family) {
    t.wrong(i, "memory", "no DRAM family in this text", "name one of HBM2, DDR4, DDR5 here or in the system");
    return s;
  }
  s.family = *family;
  dram::apply_family(r, *family);
  if (t.text(i, "page_policy") != "open") t.wrong(i, "page_policy", "unknown policy", "known: open");
  if (t.text(i, "scheduler").find("FR-FCFS") == std::string::npos)
    t.wrong(i, "scheduler", "unknown scheduler", "known: FR-FCFS, FR-FCFS per-bank queues");
  if (t.text(i, "scheduler").find("per-bank") != std::string::npos) {
    r.scheduler = dram::Scheduler::bank_queues;
    const std::string& queues = t.text(i, "read_queue_per_channel");  // "32 + 8 per bank"
    const auto plus = queues.find('+');
    r.bank_queue = plus == std::string::npos ? 8 : std::atoi(queues.c_str() + plus + 1);
    if (r.bank_queue < 1)
      t.wrong(i, "read_queue_per_channel", "no depth of the bank queues", "write it as '32 + 8 per bank'");
  }
  return s;
}

std::map<std::string, System> read_systems(const std::string& folder, Diagnostics& problems) {
  const CsvTable t(folder + "/systems.csv", problems);
  t.require({"system",
             "simulator",
             "memory",
             "channels_in_model",
             "peak_GBps",
             "transaction_bytes",
             "tCK_ns",
             "CL",
             "RCD_read",
             "RP",
             "RAS",
             "RC",
             "burst_cycles",
             "CCD_S",
             "CCD_L",
             "RRD_S",
             "RRD_L",
             "FAW",
             "RFC",
             "REFI",
             "bank_groups",
             "banks_per_group",
             "page_bytes",
             "capacity_GiB",
             "read_queue_per_channel",
             "scheduler",
             "page_policy",
             "channel_interleave_bytes"});
  std::map<std::string, System> out;
  if (problems.has_errors()) return out;
  for (std::size_t i = 0; i < t.size(); ++i) {
    System s = read_system(t, i);
    if (!out.emplace(s.record.name, std::move(s)).second)
      t.wrong(i, "system", "this system is there twice", "keep one of the rows");
  }
  return out;
}

const std::map<std::string, Pattern>& patterns() {
  static const std::map<std::string, Pattern> known = {{"idle_random", Pattern::idle_random},
                                                       {"idle_rowhit", Pattern::idle_rowhit},
                                                       {"stream", Pattern::stream},
                                                       {"random64", Pattern::random64},
                                                       {"random_chunks", Pattern::random_chunks},
                                                       {"load_stream", Pattern::load_stream},
                                                       {"load_random64", Pattern::load_random64}};
  return known;
}

Traffic read_traffic(const CsvTable& t, std::size_t i) {
  Traffic out;
  const auto pattern = patterns().find(t.text(i, "pattern"));
  if (pattern == patterns().end()) {
    t.wrong(i, "pattern", "unknown pattern",
            "known: idle_random, idle_rowhit, stream, random64, random_chunks, load_stream, load_random64");
    return out;
  }
  out.pattern = pattern->second;
  out.seed = static_cast<std::uint64_t>(t.integer(i, "seed", 0, 1'000'000'000));
  out.requests = t.integer(i, "requests_64B", 1, 1'000'000'000);
  if (out.pattern == Pattern::stream || out.pattern == Pattern::random_chunks) {
    out.streams = t.integer(i, "streams", 1, 1024);
    out.bytes_per_stream = static_cast<std::int64_t>(t.number(i, "bytes_per_stream", 64, 1e12));
    out.turn_bytes = t.integer(i, "turn_bytes", 64, 1 << 30);
  }
  if (out.pattern == Pattern::random_chunks) out.chunk_bytes = t.integer(i, "chunk_bytes", 64, 1 << 30);
  if (out.pattern == Pattern::stream) {
    static const std::map<std::string, dram::Bases> known = {{"aligned", dram::Bases::aligned},
                                                             {"same_bank_group", dram::Bases::same_bank_group},
                                                             {"diff_bank_group", dram::Bases::diff_bank_group},
                                                             {"spread", dram::Bases::spread}};
    const auto bases = known.find(t.text(i, "base_align"));
    if (bases == known.end())
      t.wrong(i, "base_align", "unknown placement", "known: aligned, same_bank_group, diff_bank_group, spread");
    else
      out.bases = bases->second;
  }
  if (out.pattern == Pattern::load_stream || out.pattern == Pattern::load_random64)
    out.load = t.number(i, "offered_load", 1e-6, 10);
  return out;
}

/// What a row measured that the model can be held against.
void expect(Job& job, const CsvTable& t, std::size_t i) {
  const bool open_loop = job.traffic.load > 0, saturated = t.text(i, "saturated") == "1";
  const bool idle = job.traffic.pattern == Pattern::idle_random || job.traffic.pattern == Pattern::idle_rowhit;
  if (idle || (open_loop && !saturated)) {
    const bool near_limit = open_loop && job.traffic.load > 0.8;
    const std::string quantity = idle ? "idle_latency" : near_limit ? "loaded_latency_above_80" : "loaded_latency";
    job.expected.push_back({quantity, t.number(i, "lat_avg_ns", 0, 1e9), &Outcome::latency_ns, 0,
                            idle         ? 0.10
                            : near_limit ? 0
                                         : 0.15});
  } else {
    const std::string quantity = open_loop                                ? "saturated_efficiency"
                                 : job.traffic.pattern == Pattern::stream ? "stream_efficiency"
                                                                          : "random_efficiency";
    job.expected.push_back({quantity, t.number(i, "efficiency", 0, 1), &Outcome::efficiency, 0.03, 0});
  }
  if (job.record.idd.vdd <= 0) return;
  const std::pair<const char*, double Outcome::*> sources[] = {{"act", &Outcome::act},
                                                               {"read", &Outcome::read},
                                                               {"refresh", &Outcome::refresh},
                                                               {"background", &Outcome::background}};
  for (const auto& [name, field] : sources)
    if (const auto v = t.maybe(i, fmt::format("e_{}_pJ_per_B", name)))
      job.expected.push_back({fmt::format("energy_{}", name), *v, field, 0, 0});
  job.total = t.maybe(i, "energy_pJ_per_B").value_or(-1);
}

std::string id_of(const CsvTable& t, std::size_t i) {
  std::string id = fmt::format("{} {} {}", t.text(i, "system"), t.text(i, "mapping"), t.text(i, "pattern"));
  const std::pair<const char*, const char*> parts[] = {
      {"streams", "x"},         {"base_align", ""},       {"bytes_per_stream", "B"}, {"turn_bytes", "turn"},
      {"chunk_bytes", "chunk"}, {"offered_load", "load"}, {"seed", "seed"}};
  for (const auto& [column, mark] : parts)
    if (!t.text(i, column).empty()) id += fmt::format(" {}{}", mark, t.text(i, column));
  return id;
}

std::vector<Job> read_jobs(const std::string& folder, const std::map<std::string, System>& systems,
                           Diagnostics& problems) {
  const CsvTable t(folder + "/measurements.csv", problems);
  t.require({"system", "mapping", "pattern", "streams", "base_align", "bytes_per_stream", "turn_bytes", "chunk_bytes",
             "offered_load", "seed", "requests_64B", "efficiency", "saturated", "lat_avg_ns"});
  std::vector<Job> jobs;
  if (problems.has_errors()) return jobs;
  for (std::size_t i = 0; i < t.size(); ++i) {
    const auto system = systems.find(t.text(i, "system"));
    if (system == systems.end()) {
      t.wrong(i, "system", "systems.csv has no such system", "add a row there, or correct the name");
      continue;
    }
    Job job;
    job.record = system->second.record;
    job.record.mapping = t.text(i, "mapping");
    dram::check_record(job.record, t.span(i, "system"), problems);
    job.traffic = read_traffic(t, i);
    job.id = id_of(t, i);
    expect(job, t, i);
    jobs.push_back(std::move(job));
  }
  return jobs;
}

void hold(std::vector<MemoryTolerance>& tolerances, const Job& job, const Job::Expected& e, const ValidationCase& c) {
  if (e.absolute == 0 && e.relative == 0) return;
  auto at = std::find_if(tolerances.begin(), tolerances.end(), [&](const MemoryTolerance& t) {
    return t.system == job.record.name && t.quantity == e.quantity;
  });
  if (at == tolerances.end()) {
    const std::string words =
        e.absolute > 0 ? fmt::format("{:.0f} points", 100 * e.absolute) : fmt::format("{:.0f} %", 100 * e.relative);
    at = tolerances.insert(at, {job.record.name, e.quantity, words, 0, 0});
  }
  ++at->rows;
  const bool held =
      e.absolute > 0 ? std::abs(c.measured - c.reference) <= e.absolute : std::abs(c.error()) <= e.relative;
  at->held += held ? 1 : 0;
}

/// "HBM2 one pseudo-channel sequential stream": the system of that simulator, family and number of channels.
void measure_speed(const std::string& folder, const std::map<std::string, System>& systems,
                   const std::vector<Job>& jobs, MemoryValidation& out, Diagnostics& problems) {
  const std::string path = folder + "/sim_speed.csv";
  if (!std::filesystem::exists(path)) return;
  const CsvTable t(path, problems);
  t.require({"simulator", "case", "channels", "requests_64B", "requests_per_cpu_second"});
  if (problems.has_errors()) return;
  for (std::size_t i = 0; i < t.size(); ++i) {
    const std::string& what = t.text(i, "case");
    const auto family = dram::family_in(what);
    const int channels = t.integer(i, "channels", 1, 100'000);
    const double requests = t.number(i, "requests_64B", 1, 1e9);
    Traffic traffic;
    traffic.requests = static_cast<std::int64_t>(requests);
    traffic.bytes_per_stream = traffic.requests * 64;
    traffic.pattern = what.find("idle") != std::string::npos     ? Pattern::idle_random
                      : what.find("random") != std::string::npos ? Pattern::random64
                                                                 : Pattern::stream;
    const auto job = std::find_if(jobs.begin(), jobs.end(), [&](const Job& j) {
      const System& s = systems.at(j.record.name);
      return family && s.family == *family && s.simulator == t.text(i, "simulator") &&
             j.record.channels * j.record.pseudo_channels == channels;
    });
    if (job == jobs.end()) continue;
    const auto begin = std::chrono::steady_clock::now();
    const Outcome o = dram::run(job->record, traffic);
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
    out.speed.push_back({what, static_cast<double>(o.requests), static_cast<double>(o.requests) / wall.count(),
                         t.number(i, "requests_per_cpu_second", 0, 1e12)});
  }
}

}  // namespace

Result<MemoryValidation> validate_memory(const std::string& folder, int threads, ProgressSink& progress) {
  if (!std::filesystem::is_directory(folder)) return fail({}, "--reference", folder + ": is not a folder");
  for (const char* file : {"systems.csv", "measurements.csv"})
    if (!std::filesystem::exists(folder + "/" + file))
      return fail({}, "--reference", fmt::format("{}: holds no {}", folder, file),
                  "expected systems.csv and measurements.csv, and perhaps sim_speed.csv");
  Diagnostics problems;
  const auto systems = read_systems(folder, problems);
  if (problems.has_errors()) return fail(std::move(problems));
  const std::vector<Job> jobs = read_jobs(folder, systems, problems);
  if (problems.has_errors()) return fail(std::move(problems));

  // The longest first, so that no thread is left alone with one of them.
  std::vector<std::size_t> order(jobs.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return jobs[a].traffic.requests > jobs[b].traffic.requests; });
  std::vector<Outcome> outcomes(jobs.size());
  std::mutex mutex;
  int done = 0;
  parallel_for(jobs.size(), threads, [&](std::size_t n) {
    if (progress.interrupted()) return;
    const std::size_t i = order[n];
    outcomes[i] = dram::run(jobs[i].record, jobs[i].traffic);
    const std::lock_guard lock(mutex);
    progress.step(++done, static_cast<int>(jobs.size()), "reference rows");
  });
  MemoryValidation out;
  if (progress.interrupted()) return out;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    for (const Job::Expected& e : jobs[i].expected) {
      out.cases.push_back({"measurements.csv", jobs[i].id, e.quantity, e.value, outcomes[i].*e.field});
      hold(out.tolerances, jobs[i], e, out.cases.back());
    }
    if (jobs[i].total >= 0)
      out.cases.push_back({"measurements.csv", jobs[i].id, "energy_total", jobs[i].total, outcomes[i].energy()});
  }
  measure_speed(folder, systems, jobs, out, problems);
  if (problems.has_errors()) return fail(std::move(problems));
  return out;
}

}  // namespace sojourn
