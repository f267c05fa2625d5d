// The policy interface. Policies decide, the engine executes: a policy reads a view and returns a placement, residency
// actions and an assignment of token groups to replicas. It cannot touch the clock or the resources, so the same
// object runs in the simulator, in a planner or in a test.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sojourn/model.h"
#include "sojourn/package.h"
#include "sojourn/params.h"
#include "sojourn/residency.h"

namespace sojourn {

/// g = (l, e_g, s_g, a_g, N_g); aggregation chiplet a_g equals the source (readings: "sources").
struct TokenGroup {
  int expert = 0;
  int source = 0;
  int tokens = 0;
};

/// Part of a group sent to one replica: x_{g,r} = 1 for a (sub-)group of `tokens`. Every slice of the expert must
/// receive every token of the group exactly once.
struct Assignment {
  int group = 0;    ///< index into the layer's groups
  int replica = 0;  ///< directory id
  int tokens = 0;
};

/// Warm-up statistics every policy starts from. All arrays are row-major.
struct Profile {
  int layers = 0, experts = 0, chiplets = 0;
  int windows = 0;             ///< warm-up windows seen
  std::vector<double> demand;  ///< [layer][expert] mean tokens a window
  std::vector<double> active;  ///< [layer][expert] share of windows in which the expert was used
  std::vector<double> source;  ///< [layer][expert][chiplet] mean tokens a window by source chiplet
  std::vector<double> sample;  ///< [layer][window][expert] tokens of each warm-up window
  std::vector<double> next;    ///< [layer][expert i][expert j] P(j in layer+1 | i in layer); last layer unused
  [[nodiscard]] double d(int l, int e) const { return demand[static_cast<size_t>(l) * experts + e]; }
  [[nodiscard]] double src(int l, int e, int c) const {
    return source[(static_cast<size_t>(l) * experts + e) * chiplets + c];
  }
  /// Demand of one warm-up window; empty when the profile was made without windows.
  [[nodiscard]] std::span<const double> window(int l, int w) const {
    if (sample.empty()) return {};
    return std::span(sample).subspan((static_cast<size_t>(l) * windows + static_cast<size_t>(w)) * experts,
                                     static_cast<size_t>(experts));
  }
  [[nodiscard]] double p_next(int l, int i, int j) const {
    return next[(static_cast<size_t>(l) * experts + i) * experts + j];
  }
};

/// P_w of (19) plus the per-resource counters it is made of, as of the last finished window. Weighted pressure: never
/// used for latency or energy.
struct Pressure {
  double load = 0, link = 0, bank = 0, tier = 0, mig = 0;  ///< P^load, P^link, P^bank, P^tier, P^mig
  std::vector<double> chiplet_load;                        ///< [chiplet] compute service time / Delta_w
  std::vector<double> link_util;                           ///< [link] foreground physical utilisation
  std::vector<double> link_weighted;                       ///< [link] weighted utilisation
  std::vector<double> bank_util;                           ///< [bank set] foreground utilisation
  std::vector<double> tier_used;                           ///< [tier] share of usable bytes in use
};

/// What a policy may read when it decides.
struct PolicyView {
  const Package* package = nullptr;
  const ModelShape* model = nullptr;
  const DirectoryView* directory = nullptr;
  const ResidencyLimits* limits = nullptr;
  const Pressure* pressure = nullptr;
  const Profile* profile = nullptr;
  int window = 0;    ///< w; demand below is of windows before w
  Ps window_ps = 0;  ///< Delta_w: duration of the last window on this package, ps (0 before the first)
  int tokens = 0;    ///< tokens a window
  int layers = 0, experts = 0, chiplets = 0;
  std::span<const double> ewma;    ///< [layer][expert] d-bar
  std::span<const double> sigma;   ///< [layer][expert] recent fluctuation (EWMA of |d - d-bar|)
  std::span<const double> last;    ///< [layer][expert] d of the window before
  std::span<const double> source;  ///< [layer][expert][chiplet] EWMA of tokens by source
  [[nodiscard]] double d(int l, int e) const { return ewma[static_cast<size_t>(l) * experts + e]; }
  [[nodiscard]] double src(int l, int e, int c) const {
    return source[(static_cast<size_t>(l) * experts + e) * chiplets + c];
  }
};

/// One layer's routed groups, ordered by source, then expert.
struct LayerTask {
  int layer = 0;  ///< within the package
  std::span<const TokenGroup> groups;
};

struct PlacedReplica {
  int layer = 0, expert = 0;
  Location at;
  Slice slice{};
};

/// What a policy knows when it lays out the package before the first window.
struct PlacementTask {
  const Package* package = nullptr;
  const ModelShape* model = nullptr;
  const Profile* profile = nullptr;
  ResidencyLimits limits;
  std::vector<Bytes> usable;  ///< [bank set] bytes left for experts after the model's fixed reservation
  Mode mode = Mode::prefill;
  int tokens = 0;  ///< tokens a window
  /// The stages of a layer follow one another (the closed network model) instead of overlapping job by job.
  bool stages_in_turn = false;
  std::uint64_t seed = 0;
};

/// alpha_mig of a policy whose record does not set it. [R]
inline constexpr double kMigrationWeight = 2.0;

class Policy {
 public:
  virtual ~Policy() = default;
  /// Lays out every expert of the package at least once, within capacity and budget. Charged to nobody: every policy
  /// starts from the same warm-up profile.
  virtual void place(const PlacementTask& task, std::vector<PlacedReplica>& out) = 0;
  /// Slow loop: residency actions for window `view.window`; illegal ones are refused and counted.
  virtual void decide(const PolicyView& view, std::vector<Action>& out);
  /// Fast loop: every token of every group to a live replica of its expert (shards: to
  /// replicas that hold every slice once). Default: the oldest that do.
  virtual void assign(const PolicyView& view, const LayerTask& task, std::vector<Assignment>& out);
  /// Limits this policy works under; receives the common ones. Default: unchanged.
  virtual ResidencyLimits limits(ResidencyLimits common) const { return common; }
  /// Copies of the routed footprint this policy may hold (1.0 = single copy).
  [[nodiscard]] virtual double budget_factor(double common) const { return common; }
  /// alpha_mig of (6): weight of migration traffic in this policy's pressures.
  [[nodiscard]] virtual double migration_weight() const { return kMigrationWeight; }
};

using PolicyFactory = std::function<std::unique_ptr<Policy>(const ParamSet&)>;
using PolicyRegistry = Registry<PolicyFactory>;

}  // namespace sojourn
