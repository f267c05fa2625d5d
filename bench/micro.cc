// Rates of the inner loops: event queue, packet network, layer executor, fast mapper and slow loop, on a
// DeepSeek-V3-like layer (256 experts, 2048 tokens x 8, 16 chiplets of hcrmap-table1).
//   cmake -S . -B build/bench -G Ninja -DCMAKE_BUILD_TYPE=Release -DSOJOURN_BENCH=ON && ninja -C build/bench
//   sojourn_bench build/bench/sojourn_bench
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "base/rng.h"
#include "moe/executor.h"
#include "moe/model_load.h"
#include "package/load.h"
#include "policy/policies.h"
#include "residency/residency.h"

namespace {

using namespace sojourn;

const std::string kRoot = SOJOURN_SOURCE_DIR;

template <class T>
const T& need(const Result<T>& r) {
  if (r) return *r;
  std::fprintf(stderr, "%s\n", r.error().diagnostics.text().c_str());
  std::exit(2);
}
const Package& package() {
  static const auto p = load_package("hcrmap-table1", {kRoot + "/packages"});
  return need(p);
}
const ModelShape& model() {
  static const auto m = load_model("deepseek-v3", {kRoot + "/models"});
  return need(m);
}

void event_queue(benchmark::State& state) {
  EventQueue q;
  Rng rng(1, "bench");
  const auto held = static_cast<std::size_t>(state.range(0));
  std::vector<Ps> steps(4096);
  for (Ps& s : steps) s = static_cast<Ps>(rng.below(1'000'000));
  for (std::size_t i = 0; i < held; ++i) q.push(steps[i % steps.size()], 0, 0, 0);
  std::size_t i = 0;
  for (auto _ : state) {
    const Event e = q.pop();
    q.push(e.time + steps[i++ % steps.size()], 0, 0, 0);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(event_queue)->Arg(64)->Arg(1024)->Arg(16384)->Name("event queue, pop + push, N held");

struct Net final : NetworkSink {
  Engine engine;
  Ledger ledger{package()};
  PacketNetwork network{package(), engine, ledger, *this};
  void on_delivered(Traffic, std::uint32_t, Bytes, Ps) override {}
  void on_event(const Event& e) { network.on_event(e); }
  [[nodiscard]] bool finished() const { return false; }
};

void packet_network(benchmark::State& state) {
  const Bytes bytes = state.range(0);
  Net net;
  Rng rng(1, "bench");
  std::int64_t hops = 0;
  const Bytes chunks = (bytes + package().chunk_bytes - 1) / package().chunk_bytes;
  for (auto _ : state) {
    for (int i = 0; i < 256; ++i) {
      const auto path = package().route_chiplets(static_cast<int>(rng.below(16)), static_cast<int>(rng.below(16)));
      net.network.send({path, bytes, Traffic::dispatch, 0, net.engine.now(), net.engine.now(), false});
      hops += static_cast<std::int64_t>(path.size()) * chunks;
    }
    net.engine.run(net);
  }
  state.SetItemsProcessed(hops);
}
BENCHMARK(packet_network)->Arg(16 << 10)->Arg(4 << 20)->Name("packet network, chunk-hops, bytes a message");

/// Zipf demand of 2048 x 8 choices, spread over 16 sources.
std::vector<TokenGroup> groups(double skew, std::uint64_t seed) {
  Rng rng(seed, "groups");
  std::vector<double> share(256);
  double sum = 0;
  for (std::size_t e = 0; e < share.size(); ++e) sum += share[e] = std::pow(static_cast<double>(e + 1), -skew);
  rng.shuffle(share);
  std::vector<double> upto(share.size());
  std::partial_sum(share.begin(), share.end(), upto.begin());
  std::vector<int> count(16 * 256, 0);
  for (int t = 0; t < 2048 * 8; ++t) {
    const double x = rng.uniform() * sum;
    const auto e = std::min<std::size_t>(
        255, static_cast<std::size_t>(std::lower_bound(upto.begin(), upto.end(), x) - upto.begin()));
    ++count[static_cast<std::size_t>(t / 8 % 16) * 256 + e];
  }
  std::vector<TokenGroup> out;
  for (int c = 0; c < 16; ++c)
    for (int e = 0; e < 256; ++e)
      if (const int n = count[static_cast<std::size_t>(c * 256 + e)]; n > 0) out.push_back({e, c, n});
  return out;
}

struct Quiet final : ExecutorListener {
  void on_job_done(int) override {}
  void on_transfer_done(std::uint32_t, Ps) override {}
};

void executor_layer(benchmark::State& state) {
  const Package& p = package();
  const double dram_share = static_cast<double>(state.range(0)) / 100;
  std::vector<Job> jobs;
  std::vector<Piece> pieces;
  for (int e = 0; e < 256; ++e) {
    const int c = e % 16;
    const Tier tier = e / 16 < 16 * dram_share ? Tier::dram : Tier::hbm;
    jobs.push_back({e, {tier, c, p.visible(tier, c)[0]}, 0});
  }
  for (const TokenGroup& g : groups(0.8, 1)) {
    jobs[static_cast<std::size_t>(g.expert)].tokens += g.tokens;
    pieces.push_back({g.expert, g.source, g.tokens});
  }
  std::erase_if(jobs, [](const Job& j) { return j.tokens == 0; });
  if (jobs.size() != 256) state.SkipWithError("an expert without tokens");
  LayerWork w;
  w.jobs = &jobs;
  w.pieces = &pieces;
  w.expert_bytes = model().expert_bytes();
  w.token_bytes = model().activation_bytes_per_token();
  w.macs_per_token = model().expert_macs_per_token();
  w.combine_macs_per_token = model().hidden;
  w.gate = p.gate_overhead;
  Quiet quiet;
  Executor ex(p, quiet);
  Ps simulated = 0;
  for (auto _ : state) {
    const LayerOutcome out = ex.run_layer(w);
    simulated += out.end - out.start;
  }
  state.SetItemsProcessed(ex.events());
  state.counters["events/layer"] = static_cast<double>(ex.events()) / static_cast<double>(state.iterations());
  state.counters["simulated_us/layer"] =
      static_cast<double>(simulated) * 1e-6 / static_cast<double>(state.iterations());
}
BENCHMARK(executor_layer)
    ->Arg(0)
    ->Arg(50)
    ->Unit(benchmark::kMicrosecond)
    ->Name("executor, events, % of experts in DRAM");

/// hcrmap on four layers, as a package of DeepSeek-V3's pipeline holds.
struct Desk {
  static constexpr int kLayers = 4;
  Profile profile;
  ResidencyLimits limits;
  Pressure pressure;
  std::unique_ptr<Policy> policy;
  std::unique_ptr<Residency> residency;
  std::vector<double> sigma;
  PolicyView view;
  std::vector<std::vector<TokenGroup>> routed;

  explicit Desk(const char* name) {
    const Package& p = package();
    PolicyRegistry registry("policy");
    register_all_policies(registry);
    const auto* entry = registry.find(name);
    policy = entry->factory(need(resolve(entry->info.params, {}, {}, name)));
    profile.layers = kLayers;
    profile.experts = 256;
    profile.chiplets = 16;
    profile.windows = 8;
    profile.demand.assign(kLayers * 256, 0);
    profile.active.assign(kLayers * 256, 1);
    profile.source.assign(kLayers * 256 * 16, 0);
    profile.next.assign(kLayers * 256 * 256, 1.0 / 256);
    for (int l = 0; l < kLayers; ++l) {
      routed.push_back(groups(0.8, static_cast<std::uint64_t>(l)));
      for (const TokenGroup& g : routed.back()) {
        const auto i = static_cast<std::size_t>(l * 256 + g.expert);
        profile.demand[i] += g.tokens;
        profile.source[i * 16 + static_cast<std::size_t>(g.source)] += g.tokens;
      }
    }
    sigma.assign(profile.demand.size(), 1.0);
    limits = policy->limits(limits);
    limits.budget = static_cast<Bytes>(kLayers * 256 * policy->budget_factor(1.3)) * model().expert_bytes();
    residency =
        std::make_unique<Residency>(p, kLayers, 256, model().expert_bytes(), std::vector<Bytes>(p.bank_sets.size()));
    PlacementTask task{&p, &model(), &profile, limits, {}, Mode::prefill, 2048, 1};
    for (std::size_t s = 0; s < p.bank_sets.size(); ++s)
      task.usable.push_back(residency->free_bytes(static_cast<int>(s)));
    std::vector<PlacedReplica> placed;
    policy->place(task, placed);
    for (const PlacedReplica& r : placed)
      if (!residency->place(r.layer, r.expert, r.at)) std::abort();
    pressure.load = 0.6;
    pressure.chiplet_load.assign(16, 0.5);
    pressure.link_util.assign(p.links.size(), 0.2);
    pressure.link_weighted.assign(p.links.size(), 0.2);
    pressure.bank_util.assign(p.bank_sets.size(), 0.5);
    pressure.tier_used.assign(kTiers, 0.8);
    view.package = &p;
    view.model = &model();
    view.directory = residency.get();
    view.limits = &limits;
    view.pressure = &pressure;
    view.profile = &profile;
    view.window = 100;
    view.window_ps = 20 * kPsPerMs;
    view.tokens = 2048;
    view.layers = kLayers;
    view.experts = 256;
    view.chiplets = 16;
    view.ewma = profile.demand;
    view.last = profile.demand;
    view.sigma = sigma;
    view.source = profile.source;
  }
};

void assign(benchmark::State& state, const char* name) {
  Desk desk(name);
  std::vector<Assignment> out;
  int layer = 0;
  for (auto _ : state) {
    out.clear();
    desk.policy->assign(desk.view, {layer, desk.routed[static_cast<std::size_t>(layer)]}, out);
    benchmark::DoNotOptimize(out.data());
    layer = (layer + 1) % Desk::kLayers;
  }
  state.SetItemsProcessed(state.iterations() * 2048 * 8);
}
BENCHMARK_CAPTURE(assign, hcrmap, "hcrmap")
    ->Unit(benchmark::kMicrosecond)
    ->Name("fast mapper, token-expert pairs, hcrmap");
BENCHMARK_CAPTURE(assign, static, "static")
    ->Unit(benchmark::kMicrosecond)
    ->Name("fast mapper, token-expert pairs, static");

void decide(benchmark::State& state, const char* name) {
  Desk desk(name);
  std::vector<Action> out;
  for (auto _ : state) {
    out.clear();
    ++desk.view.window;
    desk.policy->decide(desk.view, out);
    benchmark::DoNotOptimize(out.data());
  }
}
BENCHMARK_CAPTURE(decide, hcrmap, "hcrmap")
    ->Unit(benchmark::kMicrosecond)
    ->Name("slow loop, one decision of 4 layers x 256 experts, hcrmap");

}  // namespace

BENCHMARK_MAIN();
