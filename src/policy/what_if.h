// What-if arithmetic of one layer for the slow loop, as layer_plan.h but flat and incremental: what a change of one
// expert's replicas does to
//   J = (sum_c q_c^8 + sum_b m_b^8)^(1/8)
// is found from the few queues q and bank services m it touches, in some tens of nanoseconds and without allocation.
// Same assumptions as layer_plan.h: several replicas share an expert's tokens so that their queues level; a replica
// that gets none streams nothing.
#pragma once
#include <array>
#include <span>
#include <vector>

#include "policy/cost.h"

namespace sojourn {

class WhatIf {
 public:
  static constexpr int kReplicas = 8;  ///< most replicas of an expert that are planned; more are left out

  WhatIf(double bank_ratio, double stream_ratio) : bank_ratio_(bank_ratio), stream_ratio_(stream_ratio) {}
  /// Replicas of `layer` as published; demand[expert] mean tokens.
  void build(const CostModel& cost, const DirectoryView& directory, int layer, std::span<const double> demand);
  /// The same with the replicas `other` was built from.
  void build_beside(const WhatIf& other, std::span<const double> demand);
  /// J now; and J less J if expert e had exactly these replicas. `time_gain`: the same of max(q, m).
  [[nodiscard]] double smooth() const { return smooth_; }
  [[nodiscard]] double gain(int e, std::span<const Location> replicas, double* time_gain = nullptr);

  /// gain() of several sets of replicas of one expert: lift(e), lifted_gain() for each, drop(). Between lift and drop
  /// the loads are those without e.
  void lift(int e);
  [[nodiscard]] double lifted_gain(std::span<const Location> replicas, double* time_gain = nullptr);
  void drop();

  /// All planned replicas in order of expert: owner()[k], places()[k], shares()[k] tokens; replica k - first(owner).
  [[nodiscard]] std::span<const int> owner() const { return owner_; }
  [[nodiscard]] std::span<const Location> places() const { return at_; }
  [[nodiscard]] std::span<const double> shares() const { return tokens_; }
  [[nodiscard]] int first(int e) const { return first_[static_cast<size_t>(e)]; }
  [[nodiscard]] int count(int e) const { return count_[static_cast<size_t>(e)]; }

  [[nodiscard]] std::span<const Location> at(int e) const { return view(at_, e); }
  [[nodiscard]] std::span<const double> tokens(int e) const { return view(tokens_, e); }
  [[nodiscard]] double demand(int e) const { return demand_[static_cast<size_t>(e)]; }
  [[nodiscard]] const std::vector<double>& compute() const { return compute_; }
  [[nodiscard]] const std::vector<double>& bank() const { return bank_; }
  [[nodiscard]] double time() const;
  [[nodiscard]] double ideal() const { return ideal_; }

 private:
  template <class T>
  [[nodiscard]] std::span<const T> view(const std::vector<T>& all, int e) const {
    return {all.data() + first_[static_cast<size_t>(e)], static_cast<size_t>(count_[static_cast<size_t>(e)])};
  }
  void put(const Location& at, double tokens, double active, double sign);
  void pour(std::span<const Location> replicas, double tokens, double* out) const;
  void charge(std::span<const Location> replicas, const double* tokens, double active, double sign);
  void fill();
  void touch(std::vector<double>& of, int index);

  double bank_ratio_, stream_ratio_;  ///< omega_b / omega_q, omega_s / omega_q
  const CostModel* cost_ = nullptr;
  std::vector<double> compute_, bank_, demand_, active_, tokens_;
  std::vector<int> owner_;
  std::vector<Location> at_;
  std::vector<int> first_, count_, several_;
  double smooth_ = 0, inverse_ = 1, power_ = 0, ideal_ = 0;
  struct Touched {
    double* value;
    double before;  ///< without any change
    double lifted;  ///< without the lifted expert
  };
  std::array<Touched, 4 * kReplicas> touched_{};
  int touches_ = 0, lifted_ = 0, lifted_expert_ = -1;
  double whole_time_ = 0;  ///< time() of the plan as built
  bool recording_ = false;
};

}  // namespace sojourn
