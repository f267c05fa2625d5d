// The simulator side of training the slow loop: one package serving windows, stepped action by action, in the closed
// form. It differs from StageRun (study/stage_run.h) in what a learner needs: a decision's reward is known at once, and
// a window costs about a millisecond.
//
// Reward (31)-(33), in units that do not shrink with the number of layers [R]:
//   R = [ mean_k (T_cf(w+k) - T_act(w+k)) - mu_1 T_mig ] / (T_MoE / L) - mu_2 C_churn,    k = 1 .. credit
// T_cf and T_act are of the same routed groups, under the directory before and after the action, both with the fast
// mapper; only the action's layer differs, so only it is evaluated. T_MoE / L is the mean layer time of window w. An
// action is published at the end of window w, so it is judged on the windows after it; the paper's single window is
// credit = 1. Several actions of a state can be judged: each on a copy of the directory, of which one is taken. T_mig
// is the transfer time times the foreground utilisation of its path and banks; C_churn is 1 for every action but no-op,
// whose reward is exactly 0. Layer time: gate + dispatch + max(queue + compute, memory) + gather + combine of
// moe/closed_form.h: weights stream behind the whole queue, as in the event model.
// Assumption: replicas are whole experts, as hcrmap places and copies them; a shard is refused by an assertion.
#pragma once
#include <memory>
#include <vector>

#include "engine/ledger.h"
#include "moe/closed_form.h"
#include "policy/dqn.h"
#include "residency/residency.h"
#include "study/simulate.h"

namespace sojourn {

struct RewardTerms {
  double mu_1 = 0.1, mu_2 = 0.001;
  int credit = 8;  ///< windows an action is judged on
};

class TrainWorld {
 public:
  /// One package of the scenario's pipeline. `sampled`: layers evaluated a window for pressures and T_MoE; 0: all.
  TrainWorld(std::shared_ptr<const Scenario> scenario, std::size_t stage, const PolicyRegistry& registry, int sampled);

  /// Back to the initial placement and the first scored window. `stir`: so many experts exchange their places first, so
  /// that the learner meets layouts worth mending. False if the placement fails.
  [[nodiscard]] bool start(int stir, Rng& rng);
  /// Windows left in which an action can be judged on `credit` windows.
  [[nodiscard]] int left(int credit) const;
  [[nodiscard]] PolicyView view() const;
  [[nodiscard]] const CostModel& cost() const { return cost_; }
  [[nodiscard]] int layers() const { return stage_->moe_count; }

  /// What an action would do: the directory after it, and its reward once step() has served the window.
  struct Branch {
    std::unique_ptr<Residency> after;
    double gain_s = 0, exposed_s = 0, reward = 0;
    bool acts = false;
  };
  /// Judges legal actions (null: no-op) of the current window, each alone. The scan of a branch's next state goes
  /// through view_of(*after).
  void judge(const std::vector<const SlowCandidate*>& actions, const RewardTerms& terms, std::vector<Branch>& out);
  [[nodiscard]] PolicyView view_of(const Residency& residency) const;
  /// Serves the current window with this action (legal, or null for no-op), moves to the next, and settles the rewards
  /// of the branches judged before.
  void step(const SlowCandidate* action, const RewardTerms& terms, std::span<Branch> branches);
  /// The same for one action: judged, taken, its reward returned.
  double step(const SlowCandidate* action, const RewardTerms& terms);
  /// T_MoE of the window served last, seconds, over the layers evaluated.
  [[nodiscard]] double window_s() const { return window_s_; }
  /// Mean layer time of window w under the current directory, all layers, seconds.
  [[nodiscard]] double evaluate(int w);

 private:
  [[nodiscard]] Ps layer_time(const Residency& residency, int local_layer, int w, const MigrationShare& share,
                              Ledger& ledger);
  void serve(const MigrationShare& share);
  void observe();

  std::shared_ptr<const Scenario> scenario_;
  const Package& package_;
  const PipelineStage* stage_;
  Profile profile_;
  std::unique_ptr<Policy> policy_;
  CostModel cost_;
  ResidencyLimits limits_;
  std::unique_ptr<Residency> residency_;
  Router router_;
  Ledger ledger_, scratch_;
  int sampled_, window_ = 0;
  Ps window_ps_ = 0;
  double window_s_ = 0, layer_s_ = 0;
  Pressure pressure_;
  std::vector<double> ewma_, sigma_, last_, source_;
  std::vector<Job> jobs_;
  std::vector<Piece> pieces_;
  std::vector<Assignment> assignments_;
  std::vector<int> job_of_replica_;
  std::vector<double> before_;  ///< [layer] T_cf of the credit windows; negative: not known yet
};

}  // namespace sojourn
