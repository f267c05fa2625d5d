// Masked Double DQN (HCRMap 6.4, van Hasselt 2016): replay, target network and one gradient step.
//   y = R + gamma Q_target(s', argmax_{a' legal} Q_online(s', a'))          (34)
//   L = (Q_online(s, a) - y)^2, or Huber's
// A state is the list of its legal actions' features, no-op first; only legal actions are ever stored, so the maximum
// of (34) runs over the mask by construction. The last transition of an episode bootstraps too: serving does not end
// there.
#pragma once
#include <span>
#include <vector>

#include "nn/mlp.h"

namespace sojourn {

/// A ring of transitions (features of the chosen action, reward, features of the next state's legal actions).
class Replay {
 public:
  Replay() = default;
  Replay(int capacity, int features, int actions_max);
  /// `next`: n x features; actions beyond `actions_max` are dropped from the end.
  void push(std::span<const float> chosen, float reward, std::span<const float> next);
  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] int capacity() const { return capacity_; }
  [[nodiscard]] int actions_max() const { return actions_max_; }
  [[nodiscard]] std::span<const float> chosen(int i) const;
  [[nodiscard]] float reward(int i) const { return reward_[static_cast<std::size_t>(i)]; }
  [[nodiscard]] int actions(int i) const { return count_[static_cast<std::size_t>(i)]; }
  [[nodiscard]] std::span<const float> next(int i) const;

  /// Visits everything there is to save, as (pointer, bytes); sizes are settled by the constructor.
  template <class Visit>
  void save(const Visit& visit) {
    visit(&size_, sizeof size_);
    visit(&at_, sizeof at_);
    visit(reward_.data(), reward_.size() * sizeof(float));
    visit(count_.data(), count_.size() * sizeof(int));
    visit(chosen_.data(), chosen_.size() * sizeof(float));
    visit(next_.data(), next_.size() * sizeof(float));
  }

 private:
  int capacity_ = 0, features_ = 0, actions_max_ = 0, size_ = 0, at_ = 0;
  std::vector<float> reward_, chosen_, next_;
  std::vector<int> count_;
};

struct DqnStep {
  float gamma = 0.9F, rate = 1e-3F, clip = 10.0F;
  Loss loss = Loss::huber;
};

class DoubleDqn {
 public:
  DoubleDqn() = default;
  DoubleDqn(int features, int hidden, Rng& rng);

  [[nodiscard]] Mlp& online() { return online_; }
  [[nodiscard]] const Mlp& online() const { return online_; }
  [[nodiscard]] Mlp& target() { return target_; }
  [[nodiscard]] Adam& adam() { return adam_; }
  void sync() { target_ = online_; }

  /// y of (34) for each sampled transition.
  void targets(const Replay& replay, const std::vector<int>& sample, float gamma, Eigen::VectorXf& y);
  /// One step on these transitions; returns the loss before it.
  float learn(const Replay& replay, const std::vector<int>& sample, const DqnStep& step);

 private:
  Mlp online_, target_;
  Adam adam_;
  Mlp::Pass now_, next_online_, next_target_;
  Eigen::VectorXf y_, dq_, gradient_;
};

}  // namespace sojourn
