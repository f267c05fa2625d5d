// What a comparison yields: one record a (model, mode, policy), as in the JSON contract, and what the pictures need.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sojourn/model.h"
#include "sojourn/package.h"
#include "sojourn/trace.h"
#include "sojourn/units.h"

namespace sojourn {

enum class Stage : std::uint8_t { gate, dispatch, queue, memory, compute, gather, combine };
inline constexpr int kStages = 7;
inline constexpr std::array<const char*, kStages> kStageNames = {"gate",    "dispatch", "queue",  "memory",
                                                                 "compute", "gather",   "combine"};

struct EnergyTerms {
  Fj compute = 0, noc = 0, d2d = 0, sram = 0, hbm = 0, dram = 0, migration = 0, gate = 0;
  [[nodiscard]] Fj total() const { return compute + noc + d2d + sram + hbm + dram + migration + gate; }
};

struct RunResult {
  std::string model, mode, policy, package, network;
  std::string trace_name, trace_sha256, trace_origin;
  int windows = 0, warmup = 0, packages = 0, moe_layers = 0;
  Ps latency_ps = 0;                    ///< mean end-to-end a scored window, all packages of a pipeline
  Ps latency_ps_ci95 = 0;               ///< half width of the 95 % interval of that mean over windows
  double normalized_latency = 0;        ///< to `static` of the same model, mode and seed; 0 if static was not run
  Ps moe_latency_ps = 0;                ///< mean routed-MoE part a window (sum of T_l^MoE)
  Ps lower_bound_ps = 0;                ///< proven lower bound of the same scope
  std::string bound_resource;           ///< which resource sets it most often
  std::array<Ps, kStages> stages_ps{};  ///< of the critical group, mean over layers and windows
  EnergyTerms energy;                   ///< mean a window
  double edp_js = 0;                    ///< mean energy x mean latency of a window, joule-seconds
  Bytes bytes_dispatch = 0, bytes_gather = 0, bytes_memory = 0, bytes_migration = 0;  ///< mean a window, requests
  double replicas_mean = 0;                                                           ///< live replicas an expert
  std::int64_t promote = 0, demote = 0, evict = 0, relocate = 0, deferred = 0,
               refused = 0;  ///< over all scored windows
  Bytes resident_bytes_max = 0, budget_bytes = 0;
  double load_max_over_mean = 0;  ///< compute load of the fullest chiplet over the mean, mean over layers and windows
  Bytes directory_bytes = 0, counter_bytes = 0;
  std::int64_t events = 0;
  double wall_s = 0;
  double throttled_share = 0;             ///< scored windows that ran under the power cap
  double token_reuse = 0;                 ///< mean times a trace token was used in scored windows
  std::vector<Ps> window_ps;              ///< each scored window
  std::vector<double> chiplet_load;       ///< [chiplet] mean compute busy share of MoE time
  std::vector<double> link_util;          ///< [link] mean utilisation of MoE time
  std::vector<double> bank_util;          ///< [bank set]
  std::map<std::string, int> bottleneck;  ///< resource that bound a layer -> number of layer executions
};

struct SummaryRow {
  std::string mode, policy, against, origin;  ///< origin: "recorded" or "all"
  double geomean_reduction = 0;               ///< 1 - geomean(latency policy / latency against)
  std::map<std::string, double> per_model;
};

struct CompareResult {
  std::vector<RunResult> runs;
  std::vector<SummaryRow> summary;
  std::string manifest_json;  ///< version, seed, hashes, parameters, assumptions
  Package package;            ///< for pictures
  bool interrupted = false;   ///< stopped by the user: only finished runs are here
};

}  // namespace sojourn
