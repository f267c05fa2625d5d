// Replay buffer and the learning step of double_dqn.h.
#include "nn/double_dqn.h"

#include <algorithm>
#include <cassert>

namespace sojourn {

Replay::Replay(int capacity, int features, int actions_max)
    : capacity_(capacity), features_(features), actions_max_(actions_max) {
  const auto n = static_cast<std::size_t>(capacity), f = static_cast<std::size_t>(features);
  reward_.assign(n, 0);
  count_.assign(n, 0);
  chosen_.assign(n * f, 0);
  next_.assign(n * f * static_cast<std::size_t>(actions_max), 0);
}

void Replay::push(std::span<const float> chosen, float reward, std::span<const float> next) {
  const auto f = static_cast<std::size_t>(features_), i = static_cast<std::size_t>(at_);
  assert(chosen.size() == f && next.size() % f == 0 && !next.empty());
  const std::size_t kept = std::min(next.size(), f * static_cast<std::size_t>(actions_max_));
  std::copy(chosen.begin(), chosen.end(), chosen_.begin() + static_cast<std::ptrdiff_t>(i * f));
  std::copy_n(next.begin(), kept,
              next_.begin() + static_cast<std::ptrdiff_t>(i * f * static_cast<std::size_t>(actions_max_)));
  reward_[i] = reward;
  count_[i] = static_cast<int>(kept / f);
  at_ = (at_ + 1) % capacity_;
  size_ = std::min(size_ + 1, capacity_);
}

std::span<const float> Replay::chosen(int i) const {
  const auto f = static_cast<std::size_t>(features_);
  return std::span(chosen_).subspan(static_cast<std::size_t>(i) * f, f);
}

std::span<const float> Replay::next(int i) const {
  const auto f = static_cast<std::size_t>(features_);
  return std::span(next_).subspan(static_cast<std::size_t>(i) * f * static_cast<std::size_t>(actions_max_),
                                  f * static_cast<std::size_t>(count_[static_cast<std::size_t>(i)]));
}

DoubleDqn::DoubleDqn(int features, int hidden, Rng& rng) : online_(features, hidden) {
  online_.initialise(rng);
  target_ = online_;
}

void DoubleDqn::targets(const Replay& replay, const std::vector<int>& sample, float gamma, Eigen::VectorXf& y) {
  const Eigen::Index f = online_.inputs();
  Eigen::Index columns = 0;
  for (int i : sample) columns += replay.actions(i);
  next_online_.x.resize(f, columns);
  Eigen::Index at = 0;
  for (int i : sample) {
    const std::span<const float> next = replay.next(i);
    std::copy(next.begin(), next.end(), next_online_.x.data() + at * f);
    at += replay.actions(i);
  }
  online_.forward(next_online_);
  const auto n = static_cast<Eigen::Index>(sample.size());
  next_target_.x.resize(f, n);
  at = 0;
  for (Eigen::Index k = 0; k < n; ++k) {
    const int count = replay.actions(sample[static_cast<std::size_t>(k)]);
    Eigen::Index best = at;
    for (Eigen::Index a = at; a < at + count; ++a)
      if (next_online_.q[a] > next_online_.q[best]) best = a;
    next_target_.x.col(k) = next_online_.x.col(best);
    at += count;
  }
  target_.forward(next_target_);
  y.resize(n);
  for (Eigen::Index k = 0; k < n; ++k)
    y[k] = replay.reward(sample[static_cast<std::size_t>(k)]) + gamma * next_target_.q[k];
}

float DoubleDqn::learn(const Replay& replay, const std::vector<int>& sample, const DqnStep& step) {
  targets(replay, sample, step.gamma, y_);
  const Eigen::Index f = online_.inputs();
  now_.x.resize(f, static_cast<Eigen::Index>(sample.size()));
  for (std::size_t k = 0; k < sample.size(); ++k) {
    const std::span<const float> chosen = replay.chosen(sample[k]);
    std::copy(chosen.begin(), chosen.end(), now_.x.data() + static_cast<Eigen::Index>(k) * f);
  }
  online_.forward(now_);
  const float loss = loss_of(step.loss, now_.q, y_, dq_);
  online_.backward(now_, dq_, gradient_);
  clip_norm(gradient_, step.clip);
  adam_.step(online_.theta(), gradient_, step.rate);
  return loss;
}

}  // namespace sojourn
