// The Q-network of HCRMap's slow loop (6.3): a multilayer perceptron that scores ONE action's features,
//   Q_theta(x) = w3 . relu(W2 relu(W1 x + b1) + b2) + b3,
// with the same weights for every action of a state, so that the number of actions may vary and one network serves any
// model and package. fp32. The paper gives no architecture [R]: two hidden layers of 64.
//
// Training uses Eigen on batches (forward, backward). score() is for decisions: plain loops in one fixed order, every
// accumulator on its own, so that its bits do not depend on the compiler, the vector width or Eigen.
#pragma once
#include <Eigen/Core>
#include <cstdint>
#include <span>
#include <vector>

#include "base/rng.h"

namespace sojourn {

class Mlp {
 public:
  using Matrix = Eigen::MatrixXf;
  using Vector = Eigen::VectorXf;

  Mlp() = default;
  Mlp(int inputs, int hidden);
  /// He initialisation: normal with variance 2 / fan-in; biases zero.
  void initialise(Rng& rng);

  [[nodiscard]] int inputs() const { return inputs_; }
  [[nodiscard]] int hidden() const { return hidden_; }
  /// theta, flat: W1 (column-major hidden x inputs), b1, W2 (hidden x hidden), b2, w3, b3.
  [[nodiscard]] Vector& theta() { return theta_; }
  [[nodiscard]] const Vector& theta() const { return theta_; }
  [[nodiscard]] static std::size_t size(int inputs, int hidden) {
    const auto i = static_cast<std::size_t>(inputs), h = static_cast<std::size_t>(hidden);
    return h * i + h + h * h + h + h + 1;
  }

  /// Activations of a batch, kept for backward().
  struct Pass {
    Matrix x, a1, a2;  ///< [inputs | hidden | hidden] x batch
    Vector q;
  };
  /// Q of every column of pass.x.
  void forward(Pass& pass) const;
  /// dL/dtheta for dL/dq of the last forward().
  void backward(const Pass& pass, const Vector& dq, Vector& gradient) const;

  /// Q of one action.
  [[nodiscard]] float score(std::span<const float> x) const;

 private:
  using MapC = Eigen::Map<const Matrix>;
  [[nodiscard]] Eigen::Index at_b1() const { return Eigen::Index{hidden_} * inputs_; }
  [[nodiscard]] Eigen::Index at_w2() const { return at_b1() + hidden_; }
  [[nodiscard]] Eigen::Index at_b2() const { return at_w2() + Eigen::Index{hidden_} * hidden_; }
  [[nodiscard]] Eigen::Index at_w3() const { return at_b2() + hidden_; }
  [[nodiscard]] Eigen::Index at_b3() const { return at_w3() + hidden_; }

  int inputs_ = 0, hidden_ = 0;
  Vector theta_;
};

/// L = mean_i l(q_i - y_i): l(d) = d^2 as in 6.4, or Huber's (delta 1): d^2 / 2 near zero, |d| - 1/2 beyond.
enum class Loss { mse, huber };
/// The loss and dL/dq.
[[nodiscard]] float loss_of(Loss kind, const Eigen::VectorXf& q, const Eigen::VectorXf& y, Eigen::VectorXf& dq);

/// Scales the gradient down to at most this Euclidean norm; returns the norm before.
float clip_norm(Eigen::VectorXf& gradient, float limit);

/// Adam (Kingma and Ba, 2015), betas 0.9 and 0.999, epsilon 1e-8, with bias correction.
struct Adam {
  Eigen::VectorXf m, v;
  std::int64_t t = 0;
  void step(Eigen::VectorXf& theta, const Eigen::VectorXf& gradient, float rate);
};

}  // namespace sojourn
