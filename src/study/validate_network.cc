// Reads the reference tables, runs each row, collects what both have.
#include "study/validate_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>

#include "base/parallel.h"
#include "network/flit/traffic.h"
#include "study/csv_table.h"
#include "study/validate_popnet.h"

namespace sojourn {
namespace {

using flit::Cycle;
using flit::FlitConfig;
using flit::FlitNetwork;
using flit::OpenLoop;
using flit::OpenLoopResult;

/// A reference table with the settings of its rows.
class Table : public CsvTable {
 public:
  using CsvTable::CsvTable;
  flit::Pattern pattern(std::size_t row) const {
    if (const auto p = flit::pattern_named(text(row, "traffic"))) return *p;
    wrong(row, "traffic", "unknown pattern", "known: uniform, transpose, neighbor, hotspot1, hotspot4");
    return flit::Pattern::uniform;
  }
  FlitConfig mesh(std::size_t row) const {
    const int k = integer(row, "k", 1, 32);
    FlitConfig c = flit::grid(k, k);
    c.vcs = integer(row, "num_vcs", 1, 12);
    if (has("vc_buf_size")) c.buffer = integer(row, "vc_buf_size", 1, 255);
    if (has("speculative")) c.speculative = integer(row, "speculative", 0, 1) == 1;
    return c;
  }
  /// "4x4 vc1 buf4 spec uniform L5"
  std::string setting(std::size_t row) const {
    std::string s = fmt::format("{0}x{0} vc{1}", text(row, "k"), text(row, "num_vcs"));
    if (has("vc_buf_size")) s += " buf" + text(row, "vc_buf_size");
    if (has("speculative")) s += text(row, "speculative") == "1" ? " spec" : " nospec";
    if (has("traffic")) s += " " + text(row, "traffic");
    return s + " L" + text(row, "packet_size");
  }
};

using Cases = std::vector<ValidationCase>;
using Job = std::function<Cases()>;
constexpr Cycle kLongest = 100'000'000;

struct Plan {
  std::string folder;
  std::uint64_t seed = 1;
  Diagnostics problems;
  std::vector<Job> jobs;

  /// Of the next row: rows with equal draws would all err to the same side.
  [[nodiscard]] std::uint64_t row_seed() const { return seed + 1'000'003 * (jobs.size() + 1); }
  [[nodiscard]] bool has(const std::string& file) const { return std::filesystem::exists(folder + "/" + file); }
  Table open(const std::string& file) { return {folder + "/" + file, problems}; }
};

OpenLoop run_of(const Table& t, std::size_t i, const std::string& offered) {
  OpenLoop run;
  run.pattern = t.pattern(i);
  run.k = t.integer(i, "k", 1, 32);
  run.flits = t.integer(i, "packet_size", 1, 1 << 20);
  run.offered = t.number(i, offered, 0, 1e6);
  return run;
}

void plan_open_loop(Plan& plan, const std::string& file) {
  if (!plan.has(file)) return;
  const Table t = plan.open(file);
  for (std::size_t i = 0; i < t.size(); ++i) {
    const FlitConfig c = t.mesh(i);
    OpenLoop run = run_of(t, i, "offered");
    run.warm_up = static_cast<Cycle>(t.number(i, "warmup_cycles", 0, kLongest));
    run.measured = static_cast<Cycle>(t.number(i, "measured_cycles", 1, kLongest));
    run.seed = plan.row_seed();
    const bool stable = t.text(i, "saturated") == "0";
    if (!stable && t.text(i, "mode") == "latency") continue;  // on the knee: latencies without a level
    run.drain = stable;
    const std::string id = fmt::format("{} {} seed {}", t.setting(i), t.text(i, "offered"), t.text(i, "seed"));
    const auto plat = t.maybe(i, "plat_avg"), nlat = t.maybe(i, "nlat_avg"), accepted = t.maybe(i, "accepted");
    plan.jobs.emplace_back([=] {
      FlitNetwork network(c);
      const OpenLoopResult r = open_loop(network, run);
      Cases out;
      if (stable && plat) out.push_back({file, id, "plat_avg", *plat, r.latency});
      if (stable && nlat) out.push_back({file, id, "nlat_avg", *nlat, r.network_latency});
      if (accepted) out.push_back({file, id, "accepted", *accepted, r.accepted});
      return out;
    });
  }
}

/// Stable as in the reference's README: latency below a cap, accepted near offered, latency below six times the lowest.
bool stable(const FlitConfig& c, OpenLoop run, double lowest) {
  run.give_up = 500 + 20.0 * run.flits;
  FlitNetwork network(c);
  const OpenLoopResult r = open_loop(network, run);
  const double slack = std::max(0.03, 3 / std::sqrt(std::max(1.0, static_cast<double>(r.packets))));
  return !r.stopped && r.accepted >= run.offered * (1 - slack) && (lowest <= 0 || r.latency <= 6 * lowest);
}

void plan_saturation(Plan& plan) {
  const std::string file = "saturation.csv";
  if (!plan.has(file)) return;
  const Table t = plan.open(file);
  for (std::size_t i = 0; i < t.size(); ++i) {
    const auto low = t.maybe(i, "max_stable_offered"), high = t.maybe(i, "min_saturated_offered");
    if (!low || !high) continue;
    const FlitConfig c = t.mesh(i);
    OpenLoop run = run_of(t, i, "max_stable_offered");
    run.warm_up = 9000;
    run.measured = 30000;
    run.seed = plan.row_seed();
    const double lowest = t.maybe(i, "low_load_plat").value_or(0), step = *high - *low;
    const std::string id = t.setting(i);
    plan.jobs.emplace_back([=]() mutable -> Cases {
      // The grid of the reference goes on with the step of its bracket, three steps to either side.
      double first = *high + 3 * step;
      for (int n = -3; n <= 3; ++n) {
        run.offered = *high + n * step;
        if (run.offered <= 0 || stable(c, run, lowest)) continue;
        first = run.offered;
        break;
      }
      return {{file, id, "saturation", *high, first}};
    });
  }
}

Cases burst_cases(const std::string& file, const std::string& id, const std::vector<flit::Delivery>& deliveries,
                  std::optional<double> makespan, std::optional<double> nlat) {
  Cycle last = 0;
  double sum = 0;
  for (const flit::Delivery& d : deliveries) {
    last = std::max(last, d.tail + 1);
    sum += static_cast<double>(d.tail - d.inject);
  }
  Cases out;
  if (makespan) out.push_back({file, id, "makespan", *makespan, static_cast<double>(last)});
  if (nlat && !deliveries.empty())
    out.push_back({file, id, "nlat_avg", *nlat, sum / static_cast<double>(deliveries.size())});
  return out;
}

void plan_batch(Plan& plan) {
  const std::string file = "batch.csv";
  if (!plan.has(file)) return;
  const Table t = plan.open(file);
  for (std::size_t i = 0; i < t.size(); ++i) {
    const FlitConfig c = t.mesh(i);
    const flit::Pattern pattern = t.pattern(i);
    const int k = t.integer(i, "k", 1, 32), flits = t.integer(i, "packet_size", 1, 1 << 20),
              packets = t.integer(i, "packets_per_node", 1, 1'000'000);
    const std::uint64_t seed = plan.row_seed();
    const std::string id =
        fmt::format("{} x {} seed {}", t.setting(i), t.text(i, "packets_per_node"), t.text(i, "seed"));
    const auto makespan = t.maybe(i, "makespan_cycles"), nlat = t.maybe(i, "nlat_avg");
    plan.jobs.emplace_back([=] {
      FlitNetwork network(c);
      return burst_cases(file, id, replay(network, flit::burst(pattern, k, flits, packets, seed)), makespan, nlat);
    });
  }
}

void plan_zero_load(Plan& plan) {
  const std::string file = "zero_load.csv";
  if (!plan.has(file)) return;
  const Table t = plan.open(file);
  for (std::size_t i = 0; i < t.size(); ++i) {
    const FlitConfig c = t.mesh(i);
    const int k = t.integer(i, "k", 1, 32), flits = t.integer(i, "packet_size", 1, 1 << 20),
              d = t.integer(i, "distance", 0, 2 * k - 2);
    const auto latency = t.maybe(i, "nlat_min");
    const std::string id = t.setting(i) + " D" + t.text(i, "distance");
    plan.jobs.emplace_back([=] {
      const int x = std::min(d, k - 1), y = d - x;
      FlitNetwork network(c);
      return burst_cases(file, id, replay(network, {{0, y * k + x, flits, 0}}), std::nullopt, latency);
    });
  }
}

/// The number after `mark` in a trace's name, or nothing.
std::optional<int> number_after(const std::string& name, const std::string& mark) {
  const std::size_t i = name.find(mark);
  int v = 0;
  if (i == std::string::npos) return std::nullopt;
  const char* first = name.data() + i + mark.size();
  if (std::from_chars(first, name.data() + name.size(), v).ec != std::errc()) return std::nullopt;
  return v;
}

void plan_traces(Plan& plan) {
  if (!plan.has("traces")) return;
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(plan.folder + "/traces"))
    if (entry.path().extension() == ".csv" && entry.path().stem() != "summary") names.push_back(entry.path().stem());
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    const std::string file = "traces/" + name + ".csv";
    const auto k = number_after(name, "_"), vcs = number_after(name, "_vc");
    if (!k || !vcs || *k < 1 || *k > 32 || *vcs < 1 || *vcs > 12) {
      plan.problems.error({plan.folder + "/" + file, 0, 0}, "", "its name does not say mesh and VCs",
                          "name it like open_4x4_vc1_uniform_L5_r0.20.csv");
      continue;
    }
    FlitConfig c = flit::grid(*k, *k);
    c.vcs = *vcs;
    c.buffer = std::clamp(number_after(name, "_buf").value_or(4), 1, 255);
    c.speculative = name.find("_nospec") == std::string::npos;
    const Table t = plan.open(file);
    std::vector<flit::TracePacket> packets;
    std::vector<double> latency;
    double makespan = 0, plat = 0;
    for (std::size_t i = 0; i < t.size(); ++i) {
      const double ready = t.number(i, "ready_cycle", 0, kLongest),
                   tail = t.number(i, "tail_arrive_cycle", 0, kLongest);
      packets.push_back({t.integer(i, "src", 0, *k * *k - 1), t.integer(i, "dst", 0, *k * *k - 1),
                         t.integer(i, "flits", 1, 1 << 20), static_cast<Cycle>(ready)});
      if (i > 0 && packets[i].ready < packets[i - 1].ready)
        plan.problems.error({plan.folder + "/" + file, static_cast<int>(i) + 2, 0}, "ready_cycle", "goes back",
                            "sort the packets by ready_cycle");
      latency.push_back(tail - ready);
      makespan = std::max(makespan, tail + 1);
      plat += (tail - ready) / static_cast<double>(t.size());
    }
    plan.jobs.emplace_back([=] {
      FlitNetwork network(c);
      const auto got = replay(network, packets);
      Cases out = burst_cases(file, name, got, makespan, std::nullopt);
      double sum = 0;
      for (std::size_t i = 0; i < got.size(); ++i) {
        const auto measured = static_cast<double>(got[i].tail - got[i].ready);
        sum += measured / static_cast<double>(got.size());
        out.push_back({file, fmt::format("{} #{}", name, i), "packet", latency[i], measured});
      }
      if (!got.empty()) out.push_back({file, name, "plat_avg", plat, sum});
      return out;
    });
  }
}

void measure_speed(Plan& plan, NetworkValidation& out) {
  if (!plan.has("speed.csv")) return;
  const Table t = plan.open("speed.csv");
  for (std::size_t i = 0; i < t.size(); ++i) {
    const FlitConfig c = t.mesh(i);
    OpenLoop run;
    run.k = t.integer(i, "k", 1, 32);
    run.flits = t.integer(i, "packet_size", 1, 1 << 20);
    run.offered = t.number(i, "offered", 0, 1e6);
    run.warm_up = static_cast<Cycle>(t.number(i, "sim_cycles", 11, kLongest)) / 11;
    run.measured = 10 * run.warm_up;
    ValidationSpeed s{t.text(i, "name"),
                      t.text(i, "load"),
                      0,
                      0,
                      t.maybe(i, "flit_router_hops_per_s").value_or(0),
                      t.maybe(i, "cycles_per_s").value_or(0)};
    for (int attempt = 0; attempt < 3; ++attempt) {  // the best of three, as the reference
      const auto begin = std::chrono::steady_clock::now();
      FlitNetwork network(c);
      const OpenLoopResult r = open_loop(network, run);
      const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      s.hops_per_s = std::max(s.hops_per_s, static_cast<double>(network.router_hops()) / wall);
      s.cycles_per_s = std::max(s.cycles_per_s, static_cast<double>(r.cycles) / wall);
    }
    out.speed.push_back(s);
  }
}

}  // namespace

std::vector<ValidationSummary> summarize(const std::vector<ValidationCase>& cases) {
  std::map<std::string, std::vector<double>> errors;
  for (const ValidationCase& c : cases) errors[c.quantity].push_back(std::abs(c.error()));
  std::vector<ValidationSummary> out;
  for (auto& entry : errors) {
    std::vector<double>& e = entry.second;
    std::sort(e.begin(), e.end());
    const auto quantile = [&e](double q) {
      return e[static_cast<std::size_t>(std::ceil(q * static_cast<double>(e.size()))) - 1];
    };
    out.push_back({entry.first, e.size(), quantile(0.5), quantile(0.95), e.back()});
  }
  return out;
}

Result<NetworkValidation> validate_network(const std::string& folder, std::uint64_t seed, int threads,
                                           ProgressSink& progress) {
  Plan plan{folder, seed, {}, {}};
  if (!std::filesystem::is_directory(folder)) return fail({}, "--reference", folder + ": is not a folder");
  plan_traces(plan);
  plan_zero_load(plan);
  plan_batch(plan);
  plan_open_loop(plan, "open_loop.csv");
  plan_open_loop(plan, "seed_runs.csv");
  plan_saturation(plan);
  for (auto& job : plan_popnet(folder, plan.problems)) plan.jobs.push_back(std::move(job));
  if (plan.problems.has_errors()) return fail(std::move(plan.problems));
  if (plan.jobs.empty() && !plan.has("speed.csv"))
    return fail({}, "--reference", folder + ": holds no file of network reference data",
                "expected open_loop.csv, saturation.csv, batch.csv, zero_load.csv, speed.csv, traces/ or NAME.bench "
                "with NAME.delay.txt");
  std::vector<Cases> found(plan.jobs.size());
  std::mutex mutex;
  int done = 0;
  parallel_for(plan.jobs.size(), threads, [&](std::size_t i) {
    if (progress.interrupted()) return;
    found[i] = plan.jobs[i]();
    const std::lock_guard lock(mutex);
    progress.step(++done, static_cast<int>(plan.jobs.size()), "reference rows");
  });
  NetworkValidation out;
  for (const Cases& c : found) out.cases.insert(out.cases.end(), c.begin(), c.end());
  if (!progress.interrupted()) measure_speed(plan, out);
  if (plan.problems.has_errors()) return fail(std::move(plan.problems));
  return out;
}

}  // namespace sojourn
