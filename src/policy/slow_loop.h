// HCRMap's slow loop (6.3-6.6) with the decision rule behind an interface: candidates are generated and made legal
// here, a SlowController scores them, and at most U^max with a score above no-op's 0 are issued.
//
// Candidate set H_w, as in Algorithm 1: persistent hot experts (copies that relieve the fullest chiplet or bank set,
// and moves to a nearer tier), warm experts that overflow a near tier (swap: demote a colder one first), stale replicas
// (evict). The amortised controller is the rule of 6.6 in closed form:
//   score = phi H (J - J') - alpha_mig T_exposed,   phi = clamp(1 - sigma / d-bar, 0, 1)
// with J the smooth layer time (layer_plan.h), H the horizon in windows (at least A^min), T_exposed the transfer time
// of S times the foreground utilisation of its path and banks [R]. The paper learns this value with a masked Double
// DQN: dqn.h, which also makes its own candidates.
#pragma once
#include <array>
#include <memory>
#include <vector>

#include "policy/layer_plan.h"
#include "sojourn/policy.h"

namespace sojourn {

inline constexpr int kSlowFeatures = 36;  ///< inputs of the Q-network; see dqn_feature_names()

struct SlowCandidate {
  Action action;
  double gain_s = 0;                            ///< J - J' of the layer a window, at the smoothed demand
  double exposed_s = 0;                         ///< foreground time its migration may expose
  double persistence = 1;                       ///< phi
  double layer_s = 0;                           ///< J of its layer
  std::array<float, kSlowFeatures> features{};  ///< for the learned controller
  double score = 0;                             ///< set by the controller; no-op scores 0
};

struct SlowState {
  const PolicyView* view = nullptr;
  double layers_s = 0;                       ///< sum of J over the package's layers (amortised)
  std::array<float, kSlowFeatures> no_op{};  ///< no-op's features (learned controller)
};

struct SlowSettings {
  double horizon = 32;       ///< H, windows
  double hysteresis = 0.01;  ///< least gain as a share of the layer's J
  double alpha_mig = 2;
  double defer_link = 0.85, defer_mig = 0.5;  ///< no new migration above these pressures
  int layers = 4;                             ///< layers with the largest J - ideal that are searched a window
  int experts = 6, targets = 6;
  double bank_ratio = 0.125, stream_ratio = 0.05;  ///< omega_b / omega_q and omega_s / omega_q of the fast mapper (39)
  bool migration_aware = true, link_aware = true, hbm = true;
};

/// Makes and scores legal candidates. Deterministic; keeps no reference after the call.
class SlowController {
 public:
  virtual ~SlowController() = default;
  /// Default: slow_candidates().
  virtual void propose(const SlowSettings& settings, const CostModel& cost, const PolicyView& view, SlowState& state,
                       std::vector<SlowCandidate>& out);
  virtual void score(const SlowState& state, std::vector<SlowCandidate>& candidates) = 0;
};

[[nodiscard]] std::unique_ptr<SlowController> make_amortised(const SlowSettings& settings);

/// Candidates of this window, legal by count, budget, capacity, age, pending state and (40).
void slow_candidates(const SlowSettings& settings, const CostModel& cost, const PolicyView& view, SlowState& state,
                     std::vector<SlowCandidate>& out);

/// The loop: candidates, scores, the best at most `updates_max` (one an expert) with a positive score.
void slow_decide(const SlowSettings& settings, const CostModel& cost, SlowController& controller,
                 const PolicyView& view, std::vector<Action>& out);

}  // namespace sojourn
