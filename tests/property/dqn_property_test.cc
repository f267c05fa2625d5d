// The mask of the slow loop: whatever the network says and whatever state the directory is in, an action that legal()
// forbids is never chosen; no-op remains when nothing else is legal.
#include <doctest/doctest.h>

#include "base/rng.h"
#include "moe/model_load.h"
#include "package/load.h"
#include "policy/dqn.h"
#include "residency/residency.h"

namespace {

using namespace sojourn;

/// A small package whose directory, demand, pressures and limits are drawn anew again and again.
struct RandomStates {
  Package package;
  ModelShape model;
  CostModel cost;
  Profile profile;
  Pressure pressure;
  ResidencyLimits limits;
  std::unique_ptr<Residency> residency;
  std::vector<double> ewma, sigma;
  Rng rng{7, "dqn.states"};
  int window = 0;

  RandomStates() {
    const std::string root = SOJOURN_SOURCE_DIR;
    package = *load_package("hcrmap-table1", {root + "/packages"});
    model = *load_model("mixtral-8x7b", {root + "/models"}, {}, "");
    model.layers = 2;
    cost = CostModel(package, model);
    profile.layers = 2;
    profile.experts = model.experts;
    profile.chiplets = package.compute_count;
    profile.windows = 4;
    profile.demand.assign(static_cast<size_t>(2 * model.experts), 0);
    ewma = sigma = profile.demand;
    pressure.link_util.assign(package.links.size(), 0);
    pressure.bank_util.assign(package.bank_sets.size(), 0);
  }

  Location any() {
    for (;;) {
      const Tier t = static_cast<Tier>(rng.below(kTiers));
      const int c = static_cast<int>(rng.below(16));
      const auto sets = package.visible(t, c);
      if (!sets.empty()) return {t, c, sets[rng.below(sets.size())]};
    }
  }

  void draw() {
    residency = std::make_unique<Residency>(package, 2, model.experts, model.expert_bytes(), std::vector<Bytes>{});
    window = static_cast<int>(rng.below(40));
    limits.replicas_max = 1 + static_cast<int>(rng.below(4));
    limits.age_min = static_cast<int>(rng.below(12));
    limits.updates_max = static_cast<int>(rng.below(4)) == 0 ? 0 : 1;
    limits.budget = model.expert_bytes() * static_cast<Bytes>(16 + rng.below(24));
    for (int l = 0; l < 2; ++l)
      for (int e = 0; e < model.experts; ++e) {
        const int copies = 1 + static_cast<int>(rng.below(static_cast<std::uint64_t>(limits.replicas_max)));
        for (int made = 0, tries = 0; made < copies && tries < 50; ++tries) made += residency->place(l, e, any());
        REQUIRE(!residency->replicas(l, e).empty());
      }
    // Some replicas young, some experts with a migration in flight.
    for (int i = 0; i < 4; ++i) {
      Action a{ActionKind::promote, static_cast<int>(rng.below(2)), static_cast<int>(rng.below(8)), -1, any()};
      ResidencyLimits wide = limits;
      wide.updates_max = 9;
      if (legal(a, *residency, wide, window, 0, {}) != Verdict::ok) continue;
      const int pending = residency->begin(a);
      if (rng.below(2) == 0) residency->publish(pending, -1, std::max(0, window - static_cast<int>(rng.below(10))));
    }
    jiggle();
  }

  void jiggle() {
    for (size_t i = 0; i < ewma.size(); ++i) {
      ewma[i] = rng.uniform() < 0.1 ? 0 : 600 * rng.uniform() * rng.uniform();
      sigma[i] = ewma[i] * rng.uniform();
      profile.demand[i] = 300 * rng.uniform();
    }
    for (double& u : pressure.link_util) u = rng.uniform() * rng.uniform();
    for (double& u : pressure.bank_util) u = rng.uniform();
  }

  [[nodiscard]] PolicyView view() const {
    PolicyView v;
    v.package = &package, v.model = &model, v.directory = residency.get(), v.limits = &limits;
    v.pressure = &pressure, v.profile = &profile, v.window = window, v.window_ps = kPsPerMs * 40;
    v.tokens = 2048, v.layers = 2, v.experts = model.experts, v.chiplets = package.compute_count;
    v.ewma = ewma, v.sigma = sigma, v.last = ewma;
    return v;
  }
};

TEST_CASE("an illegal action is never chosen in a million random states") {
  RandomStates s;
  auto network = std::make_shared<Mlp>(kSlowFeatures, 8);
  SlowSettings settings;
  std::int64_t states = 0, chosen = 0, illegal = 0, idle = 0;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  const std::int64_t goal = 50'000;  // the same states, fewer of them, where each costs some ten times as much
#else
  const std::int64_t goal = 1'000'000;
#endif
  std::vector<Action> out;
  while (states < goal) {
    s.draw();
    network->initialise(s.rng);
    auto controller = make_dqn(settings, network, 0);
    for (int k = 0; k < 50; ++k, ++states) {
      if (k > 0) s.jiggle();
      if (k % 10 == 0) network->theta()[network->theta().size() - 1] = static_cast<float>(s.rng.normal());
      out.clear();
      const PolicyView view = s.view();
      slow_decide(settings, s.cost, *controller, view, out);
      idle += out.empty();
      for (const Action& a : out) {
        ++chosen;
        const LinkUse links{view.pressure->link_util, {}, view.window_ps};
        illegal += legal(a, *s.residency, s.limits, s.window, 0, links) != Verdict::ok;
      }
    }
  }
  CHECK(illegal == 0);
  CHECK(chosen > goal / 10);
  CHECK(idle > goal / 10);
}

}  // namespace
