// The Q-network: gradients against finite differences and against libtorch (through Python, skipped where it is not
// there), the plain scoring loops against Eigen's, Adam, clipping, the replay ring and the target of (34).
#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "nn/double_dqn.h"

namespace {

using namespace sojourn;

Mlp network(std::uint64_t seed, int inputs = 7, int hidden = 12) {
  Mlp net(inputs, hidden);
  Rng rng(seed, "nn.test");
  net.initialise(rng);
  for (Eigen::Index i = 0; i < net.theta().size(); ++i) net.theta()[i] += 0.05F * static_cast<float>(rng.normal());
  return net;
}

Mlp::Matrix batch(std::uint64_t seed, int inputs, int n) {
  Rng rng(seed, "nn.batch");
  Mlp::Matrix x(inputs, n);
  for (Eigen::Index i = 0; i < x.size(); ++i) x.data()[i] = static_cast<float>(rng.normal());
  return x;
}

TEST_CASE("gradients agree with central differences") {
  for (const Loss kind : {Loss::mse, Loss::huber}) {
    Mlp net = network(3);
    Mlp::Pass pass;
    pass.x = batch(5, net.inputs(), 9);
    Eigen::VectorXf y(9), dq, gradient;
    Rng rng(9, "nn.y");
    for (Eigen::Index i = 0; i < 9; ++i) y[i] = static_cast<float>(2 * rng.normal());
    net.forward(pass);
    (void)loss_of(kind, pass.q, y, dq);
    net.backward(pass, dq, gradient);
    int wrong = 0;
    for (Eigen::Index i = 0; i < net.theta().size(); ++i) {
      const float keep = net.theta()[i], h = 2e-3F;
      double side[2];
      for (int s = 0; s < 2; ++s) {
        net.theta()[i] = keep + (s == 0 ? h : -h);
        net.forward(pass);
        Eigen::VectorXf unused;
        side[s] = loss_of(kind, pass.q, y, unused);
      }
      net.theta()[i] = keep;
      const double numeric = (side[0] - side[1]) / (2.0 * h);
      wrong += std::abs(numeric - gradient[i]) > 2e-2 * (1 + std::abs(numeric));
    }
    CHECK(wrong <= 2);  // a ReLU's kink may lie inside a difference
  }
}

TEST_CASE("scoring one action gives what the batch gives") {
  const Mlp net = network(4, 36, 64);
  Mlp::Pass pass;
  pass.x = batch(6, 36, 50);
  net.forward(pass);
  for (Eigen::Index i = 0; i < 50; ++i)
    CHECK(net.score({pass.x.col(i).data(), 36}) == doctest::Approx(pass.q[i]).epsilon(1e-4));
}

TEST_CASE("clipping keeps the direction and bounds the length") {
  Eigen::VectorXf g(2);
  g << 3, 4;
  CHECK(clip_norm(g, 10) == doctest::Approx(5));
  CHECK(g[1] == 4);
  CHECK(clip_norm(g, 1) == doctest::Approx(5));
  CHECK(g.norm() == doctest::Approx(1));
  CHECK(g[0] / g[1] == doctest::Approx(0.75));
}

TEST_CASE("the first step of Adam is the rate against the sign") {
  Eigen::VectorXf theta = Eigen::VectorXf::Zero(3), g(3);
  g << 0.5F, -2, 1e-3F;
  Adam adam;
  adam.step(theta, g, 0.01F);
  for (int i = 0; i < 3; ++i) CHECK(theta[i] == doctest::Approx(g[i] > 0 ? -0.01 : 0.01).epsilon(1e-3));
}

TEST_CASE("the replay is a ring and keeps legal actions only as many as it has room for") {
  Replay replay(3, 2, 2);
  for (int i = 0; i < 5; ++i) {
    const std::vector<float> chosen(2, static_cast<float>(i)), next(2 * (1 + i % 3), static_cast<float>(10 + i));
    replay.push(chosen, static_cast<float>(i), next);
  }
  CHECK(replay.size() == 3);
  CHECK(replay.reward(0) == 3);  // 3 took the place of 0, 4 that of 1
  CHECK(replay.reward(1) == 4);
  CHECK(replay.reward(2) == 2);
  CHECK(replay.actions(0) == 1);
  CHECK(replay.actions(2) == 2);  // three were offered
  CHECK(replay.next(1)[0] == 14);
}

TEST_CASE("the target takes the online network's choice and the target network's value") {
  Rng rng(1, "nn.dqn");
  DoubleDqn dqn(3, 8, rng);
  for (int i = 0; i < dqn.target().theta().size(); ++i) dqn.target().theta()[i] *= -0.5F;
  Replay replay(4, 3, 4);
  const Mlp::Matrix actions = batch(2, 3, 4);
  const std::vector<float> next(actions.data(), actions.data() + 12), chosen(3, 0.5F);
  replay.push(chosen, 0.25F, next);
  Eigen::VectorXf y;
  dqn.targets(replay, {0}, 0.9F, y);
  int best = 0;
  for (int a = 1; a < 4; ++a)
    if (dqn.online().score({actions.col(a).data(), 3}) > dqn.online().score({actions.col(best).data(), 3})) best = a;
  CHECK(y[0] == doctest::Approx(0.25 + 0.9 * dqn.target().score({actions.col(best).data(), 3})).epsilon(1e-5));
}

TEST_CASE("learning fits a fixed reward") {
  Rng rng(1, "nn.fit");
  DoubleDqn dqn(3, 16, rng);
  Replay replay(64, 3, 1);
  for (int i = 0; i < 64; ++i) {
    const float x[3] = {static_cast<float>(rng.normal()), static_cast<float>(rng.normal()), 1};
    replay.push(x, 0.5F * x[0] - x[1], x);
  }
  DqnStep step;
  step.gamma = 0;
  step.rate = 3e-3F;
  float first = 0, last = 0;
  for (int n = 0; n < 600; ++n) {
    std::vector<int> sample;
    for (int i = 0; i < 16; ++i) sample.push_back(static_cast<int>(rng.below(64)));
    last = dqn.learn(replay, sample, step);
    if (n == 0) first = last;
  }
  CHECK(last < 0.05F * first);
}

TEST_CASE("loss and gradients agree with libtorch") {
  const std::string python = std::filesystem::exists("/usr/bin/python3") ? "/usr/bin/python3" : "python3";
  if (std::system((python + " -c 'import torch, numpy' >/dev/null 2>&1").c_str()) != 0) {
    MESSAGE("skipped: PyTorch is not installed (python3-torch)");
    return;
  }
  const int inputs = 36, hidden = 64, n = 32;
  Mlp net = network(8, inputs, hidden);
  Mlp::Pass pass;
  pass.x = batch(9, inputs, n);
  Eigen::VectorXf y(n);
  Rng rng(10, "nn.torch");
  for (Eigen::Index i = 0; i < n; ++i) y[i] = static_cast<float>(3 * rng.normal());
  const auto dir = std::filesystem::temp_directory_path() / ("sojourn-nn-" + std::to_string(std::rand()));
  std::filesystem::create_directories(dir);
  const auto write = [&](const char* name, const float* data, Eigen::Index count) {
    std::ofstream(dir / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(count * 4));
  };
  write("theta", net.theta().data(), net.theta().size());
  write("x", pass.x.data(), pass.x.size());
  write("y", y.data(), n);
  std::ofstream(dir / "check.py") << R"(
import numpy as np, torch, sys
torch.set_num_threads(1)
d = sys.argv[1] + '/'
I, H, N = 36, 64, 32
theta = torch.tensor(np.fromfile(d + 'theta', np.float32), requires_grad=True)
x = torch.tensor(np.fromfile(d + 'x', np.float32).reshape(N, I))
y = torch.tensor(np.fromfile(d + 'y', np.float32))
def part(n, at=[0]):
    at[0] += n
    return theta[at[0] - n:at[0]]
w1, b1 = part(H * I).reshape(I, H), part(H)
w2, b2 = part(H * H).reshape(H, H), part(H)
w3, b3 = part(H), part(1)
q = torch.relu(torch.relu(x @ w1 + b1) @ w2 + b2) @ w3 + b3
out = []
for loss in (torch.nn.functional.mse_loss(q, y), torch.nn.functional.smooth_l1_loss(q, y)):
    g, = torch.autograd.grad(loss, theta, retain_graph=True)
    out += [np.float32([loss.item()]), g.numpy()]
np.concatenate(out).astype(np.float32).tofile(d + 'out')
)";
  const std::string command = python + " " + (dir / "check.py").string() + " " + dir.string();
  REQUIRE(std::system(command.c_str()) == 0);
  std::ifstream in(dir / "out", std::ios::binary);
  std::vector<float> torch(2 * (1 + static_cast<size_t>(net.theta().size())));
  in.read(reinterpret_cast<char*>(torch.data()), static_cast<std::streamsize>(torch.size() * 4));
  REQUIRE(in);
  std::filesystem::remove_all(dir);
  const float* at = torch.data();
  for (const Loss kind : {Loss::mse, Loss::huber}) {
    Eigen::VectorXf dq, gradient;
    net.forward(pass);
    const float loss = loss_of(kind, pass.q, y, dq);
    net.backward(pass, dq, gradient);
    CHECK(loss == doctest::Approx(*at++).epsilon(1e-5));
    double worst = 0;
    for (Eigen::Index i = 0; i < gradient.size(); ++i, ++at)
      worst = std::max(worst, static_cast<double>(std::abs(gradient[i] - *at)) / (1e-3 + std::abs(*at)));
    CHECK(worst < 1e-2);
  }
}

}  // namespace
