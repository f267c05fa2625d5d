// One package of the pipeline in a run: its residency state, policy, executor and running statistics.
#pragma once
#include <array>
#include <map>
#include <memory>
#include <vector>

#include "bound/bound.h"
#include "moe/closed_form.h"
#include "moe/executor.h"
#include "residency/residency.h"
#include "study/simulate.h"

namespace sojourn {

/// Energies summed over windows: 128 bits, since a long run of a large model passes 9.2 kJ, the end of 64-bit
/// femtojoules.
struct EnergySum {
  __int128 compute = 0, noc = 0, d2d = 0, sram = 0, hbm = 0, dram = 0, migration = 0, gate = 0;
  template <class Terms>  // EnergyTerms or EnergySum
  void add(const Terms& e) {
    compute += e.compute;
    noc += e.noc;
    d2d += e.d2d;
    sram += e.sram;
    hbm += e.hbm;
    dram += e.dram;
    migration += e.migration;
    gate += e.gate;
  }
  [[nodiscard]] EnergyTerms mean(std::int64_t n) const {
    const auto of = [n](__int128 sum) { return static_cast<Fj>(n > 0 ? sum / n : 0); };
    return {of(compute), of(noc), of(d2d), of(sram), of(hbm), of(dram), of(migration), of(gate)};
  }
};

/// Sums over scored windows and layers.
struct StageTotals {
  Ps moe = 0, bound = 0;
  std::array<Ps, kStages> stages{};
  EnergySum energy;
  std::array<Bytes, kTraffic> requested{};
  std::int64_t layers = 0;
  double load_ratio = 0;
  std::map<std::string, int> bottleneck;  ///< resource -> layer executions
  std::map<std::string, int> bound_by;    ///< resource that sets the bound -> layer executions
  std::int64_t promote = 0, demote = 0, evict = 0, relocate = 0, deferred = 0, refused = 0;
  double replicas = 0;  ///< live replicas an expert, summed over windows
  int throttled = 0;
  Bytes resident_max = 0, directory_max = 0;
  std::vector<Ps> chiplet_busy, link_busy, bank_busy;
};

class StageRun final : private ExecutorListener {
 public:
  StageRun(const Scenario& scenario, const PipelineStage& stage, std::unique_ptr<Policy> policy, int index);

  /// Initial placement by the policy. Errors: an expert left out, a tier overfilled, budget broken.
  [[nodiscard]] Result<bool> place(const std::string& policy_name);
  /// Serves window w (index into the plan) and returns how long it took on this package.
  Ps serve(int w, bool scored);

  /// After the last window: the bound of the whole run.
  void finish();

  void set_spans(SpanSink* spans) { executor_.set_spans(spans, index_); }
  [[nodiscard]] const StageTotals& totals() const { return totals_; }
  [[nodiscard]] std::int64_t events() const { return executor_.events() + closed_events_; }
  [[nodiscard]] Bytes counter_bytes() const;
  [[nodiscard]] Bytes budget() const { return limits_.budget; }
  [[nodiscard]] const Residency& residency() const { return residency_; }

 private:
  struct Migration {
    int pending = -1, retire = -1, source = -1;
    bool active = false;
  };

  void on_job_done(int replica) override { residency_.release(replica); }
  void on_transfer_done(std::uint32_t tag, Ps at) override;
  void decide(int w, bool scored);
  void start_migration(const Action& action);
  void run_moe_layer(int local_layer, const std::vector<std::uint32_t>& tokens, bool scored, const BlockWork& work);
  void assign(int local_layer);
  /// Does every slice of every group's expert receive each of the group's tokens once?
  [[nodiscard]] bool every_slice_once() const;
  void observe_demand();
  void close_window(Ps duration, bool scored);
  [[nodiscard]] PolicyView view(int w) const;
  [[nodiscard]] BoundRules bound_rules() const;

  const Scenario& scenario_;
  const Package& package_;
  const PipelineStage& stage_;
  Profile profile_;
  std::unique_ptr<Policy> policy_;
  ResidencyLimits limits_;
  Residency residency_;
  std::string policy_name_;
  Executor executor_;
  Router router_;
  int index_;

  int window_ = 0;
  Ps window_ps_ = 0;
  int throttle_ = 1024;
  Pressure pressure_;
  std::vector<double> ewma_, sigma_, last_, source_;
  std::vector<int> window_demand_, window_source_;  ///< this window's counts, folded in at its end
  std::vector<double> migrating_;                   ///< [link] granted utilisation this window
  std::vector<Migration> migrations_;
  MigrationShare closed_share_;
  std::vector<std::uint32_t> closed_pending_;
  std::int64_t closed_events_ = 0;

  std::vector<Job> jobs_;
  std::vector<Piece> pieces_;
  std::vector<Assignment> assignments_;
  std::vector<Action> actions_;
  std::vector<int> job_of_replica_;
  Macs other_macs_ = 0;
  Bytes other_bytes_ = 0;
  std::int64_t gate_groups_ = 0, migrations_started_ = 0;
  Bound bound_;
  StageTotals totals_;
};

}  // namespace sojourn
