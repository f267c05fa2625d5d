// The learned slow loop of HCRMap (6.3, 6.4): candidate actions with their features, and a SlowController that scores
// them with a frozen Q-network. Training: study/train.h.
//
// State (26) and action (27) are one vector a candidate, since the network scores one action at a time: what the action
// gains and costs by the closed form, the expert's demand (smoothed, recent, fluctuation), its replicas, tiers and
// ages, the queues and banks at both ends, and, the same for all actions of a window, pressures P_w, budget left and
// the best gain on offer. dqn_feature_names() lists them. Candidate set H_w (6.3): persistent hot experts (copies and
// moves that relieve the fullest chiplet or bank set), warm experts that overflow a near tier (demotions that make
// room), stale replicas (evictions). `retain` changes nothing and is not told from no-op [R]. Every candidate passes
// legal() before it is scored, (28) to (30) and (40); no-op always is legal and comes first. A window looks at
// `kSearchLayers` layers only: those that promised most when last seen, and one in turn, so that the decision's cost
// does not grow with the number of layers. Demand of an expert is tracked twice: the run's EWMA
// ("recent") and a slow mean that starts at the warm-up profile ("slow", rate max(kSlowRate, 1 / windows seen)); the
// difference tells persistent from bursty. [R]
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "nn/mlp.h"
#include "policy/slow_loop.h"
#include "policy/what_if.h"

namespace sojourn {

[[nodiscard]] const std::vector<std::string>& dqn_feature_names();

/// Candidates of a window; keeps what it learns of layers and demand from call to call (one object a package).
class DqnScan {
 public:
  static constexpr int kSearchLayers = 3;
  static constexpr double kSlowRate = 0.03;

  explicit DqnScan(const SlowSettings& settings)
      : s_(settings),
        slow_plan_(settings.bank_ratio, settings.stream_ratio),
        recent_plan_(settings.bank_ratio, settings.stream_ratio) {}
  /// Legal candidates with features, no-op not among them; state.no_op receives no-op's features.
  void propose(const CostModel& cost, const PolicyView& view, SlowState& state, std::vector<SlowCandidate>& out);

 private:
  struct Target {
    Location at;
    bool room = false;
  };
  struct Held {
    int expert = -1, index = 0;
    double key = 0;
  };
  void observe(const CostModel& cost, const PolicyView& view);
  /// Candidates of one layer; returns the best slow gain among them.
  double layer(int l, std::vector<SlowCandidate>& out);
  void targets();
  void copies(int l, std::vector<SlowCandidate>& out);
  void moves(int l, std::vector<SlowCandidate>& out);
  void make_room(int l, const Location& full, double waiting, std::vector<SlowCandidate>& out);
  void evictions(int l, std::vector<SlowCandidate>& out);
  void busiest(bool by_bank, int where, bool coldest, size_t most, std::vector<Held>& out) const;
  void add(ActionKind kind, int l, int e, int index, const Location& to, std::vector<SlowCandidate>& out);
  void features(SlowCandidate& c, int index, const Location& from, double time_gain, double transfer_s) const;
  void shared_features(std::array<float, kSlowFeatures>& f) const;
  [[nodiscard]] bool room(int set) const;
  [[nodiscard]] std::span<const Location> with(int e, int drop, const Location* extra);

  SlowSettings s_;
  const CostModel* cost_ = nullptr;
  const PolicyView* view_ = nullptr;
  const class Residency* residency_ = nullptr;
  int seen_window_ = -1, observed_ = 0, turn_ = 0;
  std::vector<double> slow_;              ///< [layer][expert] slow mean of demand
  std::vector<double> promise_, smooth_;  ///< [layer] best gain and J when last searched
  std::vector<double> mean_hops_;         ///< [chiplet] from uniform sources
  WhatIf slow_plan_, recent_plan_;
  std::vector<Target> targets_;
  std::vector<Location> list_;
  std::vector<Held> held_;
  double unit_ = 1, blocked_ = 0, best_ = 0;
  std::int64_t budget_left_ = 0;
};

/// Scores with Q(s, a) - Q(s, no-op) - margin: the network tells small gains apart only so well, and an action costs
/// more than it brings when it is chosen by error. The margin is part of a checkpoint, chosen on validation traces. [R]
[[nodiscard]] std::unique_ptr<SlowController> make_dqn(const SlowSettings& settings, std::shared_ptr<const Mlp> network,
                                                       double margin);

}  // namespace sojourn
