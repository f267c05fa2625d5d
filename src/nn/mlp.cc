// Forward and backward pass, loss, clipping and Adam; equations in mlp.h.
#include "nn/mlp.h"

#include <array>
#include <cassert>
#include <cmath>
#include <type_traits>

namespace sojourn {

Mlp::Mlp(int inputs, int hidden) : inputs_(inputs), hidden_(hidden) {
  assert(inputs > 0 && hidden > 0 && hidden <= 256);
  theta_ = Vector::Zero(static_cast<Eigen::Index>(size(inputs, hidden)));
}

void Mlp::initialise(Rng& rng) {
  theta_.setZero();
  const auto fill = [&](Eigen::Index from, Eigen::Index count, int fan_in) {
    const double spread = std::sqrt(2.0 / fan_in);
    for (Eigen::Index i = 0; i < count; ++i) theta_[from + i] = static_cast<float>(spread * rng.normal());
  };
  fill(0, at_b1(), inputs_);
  fill(at_w2(), at_b2() - at_w2(), hidden_);
  fill(at_w3(), hidden_, hidden_);
}

void Mlp::forward(Pass& p) const {
  const float* t = theta_.data();
  const MapC w1(t, hidden_, inputs_), w2(t + at_w2(), hidden_, hidden_);
  const Eigen::Map<const Vector> b1(t + at_b1(), hidden_), b2(t + at_b2(), hidden_), w3(t + at_w3(), hidden_);
  p.a1.noalias() = w1 * p.x;
  p.a1 = (p.a1.colwise() + b1).cwiseMax(0.0F);
  p.a2.noalias() = w2 * p.a1;
  p.a2 = (p.a2.colwise() + b2).cwiseMax(0.0F);
  p.q.noalias() = p.a2.transpose() * w3;
  p.q.array() += t[at_b3()];
}

void Mlp::backward(const Pass& p, const Vector& dq, Vector& gradient) const {
  const float* t = theta_.data();
  const MapC w2(t + at_w2(), hidden_, hidden_);
  const Eigen::Map<const Vector> w3(t + at_w3(), hidden_);
  gradient.resize(theta_.size());
  float* g = gradient.data();
  Eigen::Map<Matrix> g1(g, hidden_, inputs_), g2(g + at_w2(), hidden_, hidden_);
  Eigen::Map<Vector> gb1(g + at_b1(), hidden_), gb2(g + at_b2(), hidden_), g3(g + at_w3(), hidden_);
  g3.noalias() = p.a2 * dq;
  g[at_b3()] = dq.sum();
  Matrix d2 = w3 * dq.transpose();
  d2 = d2.cwiseProduct((p.a2.array() > 0.0F).cast<float>().matrix());
  g2.noalias() = d2 * p.a1.transpose();
  gb2 = d2.rowwise().sum();
  Matrix d1 = w2.transpose() * d2;
  d1 = d1.cwiseProduct((p.a1.array() > 0.0F).cast<float>().matrix());
  g1.noalias() = d1 * p.x.transpose();
  gb1 = d1.rowwise().sum();
}

namespace {

/// out = relu(W in + b). One accumulator an output, inputs in order: vectorising over outputs changes no sum. `h` is a
/// constant where it can be, so that the compiler does vectorise.
template <class Size>
void dense(const float* __restrict w, const float* __restrict bias, const float* __restrict in, std::size_t n, Size h,
           float* __restrict out) {
  for (std::size_t j = 0; j < h; ++j) out[j] = bias[j];
  for (std::size_t i = 0; i < n; ++i) {
    const float v = in[i];
    const float* __restrict row = w + i * h;
    if (v == 0.0F) continue;
    for (std::size_t j = 0; j < h; ++j) out[j] += row[j] * v;
  }
  for (std::size_t j = 0; j < h; ++j) out[j] = out[j] > 0.0F ? out[j] : 0.0F;
}

}  // namespace

float Mlp::score(std::span<const float> x) const {
  assert(static_cast<int>(x.size()) == inputs_);
  std::array<float, 256> a, b;
  const float* t = theta_.data();
  const auto layers = [&](auto h) {
    dense(t, t + at_b1(), x.data(), x.size(), h, a.data());
    dense(t + at_w2(), t + at_b2(), a.data(), h, h, b.data());
  };
  const auto h = static_cast<std::size_t>(hidden_);
  if (h == 64)
    layers(std::integral_constant<std::size_t, 64>{});
  else
    layers(h);
  float q = t[at_b3()];
  for (std::size_t j = 0; j < h; ++j) q += t[at_w3() + static_cast<Eigen::Index>(j)] * b[j];
  return q;
}

float loss_of(Loss kind, const Eigen::VectorXf& q, const Eigen::VectorXf& y, Eigen::VectorXf& dq) {
  const Eigen::Index n = q.size();
  dq.resize(n);
  const float share = 1.0F / static_cast<float>(n);
  float sum = 0;
  for (Eigen::Index i = 0; i < n; ++i) {
    const float d = q[i] - y[i], size = std::abs(d);
    if (kind == Loss::mse) {
      sum += d * d;
      dq[i] = 2.0F * d * share;
    } else {
      sum += size <= 1.0F ? 0.5F * d * d : size - 0.5F;
      dq[i] = (size <= 1.0F ? d : (d > 0 ? 1.0F : -1.0F)) * share;
    }
  }
  return sum * share;
}

float clip_norm(Eigen::VectorXf& gradient, float limit) {
  const float norm = gradient.norm();
  if (norm > limit) gradient *= limit / norm;
  return norm;
}

void Adam::step(Eigen::VectorXf& theta, const Eigen::VectorXf& gradient, float rate) {
  if (m.size() != theta.size()) {
    m = Eigen::VectorXf::Zero(theta.size());
    v = m;
    t = 0;
  }
  ++t;
  constexpr float kBeta1 = 0.9F, kBeta2 = 0.999F, kEpsilon = 1e-8F;
  m = kBeta1 * m + (1 - kBeta1) * gradient;
  v = kBeta2 * v + (1 - kBeta2) * gradient.cwiseProduct(gradient);
  const float c1 = 1 - static_cast<float>(std::pow(static_cast<double>(kBeta1), static_cast<double>(t)));
  const float c2 = 1 - static_cast<float>(std::pow(static_cast<double>(kBeta2), static_cast<double>(t)));
  theta.array() -= rate * (m.array() / c1) / ((v.array() / c2).sqrt() + kEpsilon);
}

}  // namespace sojourn
