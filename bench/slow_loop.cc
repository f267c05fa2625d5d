// Time of one slow-loop decision of hcrmap for all of DeepSeek-V3: 58 layers x 256 experts in one package (of 16 times
// the capacity of hcrmap-table1, or they would not fit), 1.2 copies, demand that moves from window to window.
//   sojourn_bench --benchmark_filter='slow decision'
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>

#include "base/rng.h"
#include "moe/model_load.h"
#include "package/load.h"
#include "policy/dqn.h"
#include "policy/dqn_checkpoint.h"
#include "residency/residency.h"

namespace {

using namespace sojourn;

struct Whole {
  static constexpr int kLayers = 58, kExperts = 256;
  Package package;
  ModelShape model;
  Profile profile;
  ResidencyLimits limits;
  Pressure pressure;
  std::unique_ptr<Residency> residency;
  std::vector<std::vector<double>> demand;  ///< of 64 windows in turn
  std::vector<double> sigma;
  PolicyView view;

  Whole() {
    const std::string root = SOJOURN_SOURCE_DIR;
    auto p = load_package("hcrmap-table1", {root + "/packages"});
    auto m = load_model("deepseek-v3", {root + "/models"}, {}, "");
    if (!p || !m) std::abort();
    package = *p;
    model = *m;
    for (Bank& b : package.banks) b.capacity *= 16;
    for (BankSet& s : package.bank_sets) s.usable *= 16;
    residency = std::make_unique<Residency>(package, kLayers, kExperts, model.expert_bytes(),
                                            std::vector<Bytes>(package.bank_sets.size()));
    const auto put = [&](int l, int e, int c) {
      for (Tier t : {Tier::hbm, Tier::dram})
        for (int s : package.visible(t, c))
          if (residency->place(l, e, {t, c, s})) return;
    };
    Rng rng(1, "bench.slow");
    for (int l = 0; l < kLayers; ++l)
      for (int e = 0; e < kExperts; ++e) {
        put(l, e, (e + l) % 16);
        if (rng.uniform() < 0.2) put(l, e, (e + l + 5) % 16);
      }
    const std::size_t n = static_cast<std::size_t>(kLayers) * kExperts;
    std::vector<double> base(n);
    for (double& d : base) d = 64 * std::exp(0.6 * rng.normal());
    demand.assign(64, base);
    for (auto& window : demand)
      for (double& d : window) d *= std::exp(0.2 * rng.normal());
    sigma.assign(n, 5);
    profile.layers = kLayers;
    profile.experts = kExperts;
    profile.chiplets = 16;
    profile.windows = 8;
    profile.demand = base;
    limits.budget = static_cast<Bytes>(1.3 * static_cast<double>(n)) * model.expert_bytes();
    pressure.link_util.assign(package.links.size(), 0.2);
    pressure.bank_util.assign(package.bank_sets.size(), 0.5);
    view.package = &package;
    view.model = &model;
    view.directory = residency.get();
    view.limits = &limits;
    view.pressure = &pressure;
    view.profile = &profile;
    view.window = 100;
    view.window_ps = 20 * kPsPerMs;
    view.tokens = 2048;
    view.layers = kLayers;
    view.experts = kExperts;
    view.chiplets = 16;
    view.sigma = sigma;
  }
};

void decision(benchmark::State& state, bool learned) {
  Whole w;
  const CostModel cost(w.package, w.model);
  SlowSettings settings;
  const auto loaded = load_dqn_checkpoint(kShippedCheckpoint, {});
  if (!loaded) std::abort();
  const auto controller = learned ? make_dqn(settings, loaded->network, loaded->margin) : make_amortised(settings);
  std::vector<Action> out;
  const auto step = [&] {
    out.clear();
    ++w.view.window;
    w.view.ewma = w.view.last = w.demand[static_cast<std::size_t>(w.view.window) % w.demand.size()];
    slow_decide(settings, cost, *controller, w.view, out);
    benchmark::DoNotOptimize(out.data());
  };
  step();  // the first decision looks at every layer
  for (auto _ : state) step();
}
BENCHMARK_CAPTURE(decision, dqn, true)->Unit(benchmark::kMicrosecond)->Name("slow decision, 14848 experts, dqn");
BENCHMARK_CAPTURE(decision, amortised, false)
    ->Unit(benchmark::kMicrosecond)
    ->Name("slow decision, 14848 experts, amortised");

}  // namespace
