// Run-time cost of deciding: mapper and slow loop as library calls, without the simulator, on DeepSeek-V3 shapes (256
// experts, top-8, 2048 tokens, 16 chiplets).
//   fast mapper   token-expert pairs a second, one core; layers in turn, so that a call finds another layer's data in
//   cache.
//                 Layouts: hcrmap's and eplb's at 1.3x bytes on the 58 layers of the model;
//                 512 tokens are a decode step, with little more than a token a group
//   makespan      the dispatcher of policy `makespan` on the same layers and layouts
//   assign        the same for whole policies, on 4 layers
//   layout        the placement before the first window
//   slow loop     one decision over 58 x 256 = 14,848 experts, and over the 4 layers a package holds
#include <benchmark/benchmark.h>

#include "desk.h"
#include "policy/fast_map.h"
#include "policy/makespan.h"

namespace {

using namespace sojourn;
using bench::Desk;

constexpr int kLayers = 58;

const Desk& layout(const std::string& name) {
  static const Desk hcrmap("hcrmap", bench::large_package(), kLayers), eplb("eplb", bench::large_package(), kLayers);
  return name == "eplb" ? eplb : hcrmap;
}

/// `map(cost, directory, task, out)` on every layer in turn.
template <class Map>
void dispatch(benchmark::State& state, const char* name, const Map& map) {
  const Desk& desk = layout(name);
  const CostModel cost(*desk.view.package, bench::model());
  std::vector<Assignment> out;
  const auto tokens = static_cast<int>(state.range(0));
  std::vector<std::vector<TokenGroup>> routed;
  for (int l = 0; l < kLayers; ++l) routed.push_back(bench::groups(0.8, static_cast<std::uint64_t>(l), tokens));
  int layer = 0, split = 0;
  for (int l = 0; l < kLayers; ++l)
    for (int e = 0; e < 256; ++e) split += desk.residency->replicas(l, e).size() > 1;
  for (auto _ : state) {
    out.clear();
    map(cost, *desk.residency, LayerTask{layer, routed[static_cast<std::size_t>(layer)]}, out);
    benchmark::DoNotOptimize(out.data());
    layer = (layer + 1) % kLayers;
  }
  state.SetItemsProcessed(state.iterations() * tokens * 8);
  state.counters["split_experts/layer"] = static_cast<double>(split) / kLayers;
}

void fast_mapper(benchmark::State& state, const char* name) {
  FastMapper mapper;
  dispatch(state, name, [&](auto&&... args) { mapper.map(args...); });
}
void makespan(benchmark::State& state, const char* name) {
  MakespanDispatcher dispatcher;
  dispatch(state, name, [&](auto&&... args) { dispatcher.assign(args...); });
}
BENCHMARK_CAPTURE(fast_mapper, hcrmap, "hcrmap")
    ->Arg(2048)
    ->Arg(512)
    ->Unit(benchmark::kMicrosecond)
    ->Name("fast mapper, token-expert pairs, hcrmap's layout, tokens");
BENCHMARK_CAPTURE(fast_mapper, eplb, "eplb")
    ->Arg(2048)
    ->Arg(512)
    ->Unit(benchmark::kMicrosecond)
    ->Name("fast mapper, token-expert pairs, eplb's layout, tokens");
BENCHMARK_CAPTURE(makespan, hcrmap, "hcrmap")
    ->Arg(2048)
    ->Arg(512)
    ->Unit(benchmark::kMicrosecond)
    ->Name("makespan dispatcher, token-expert pairs, hcrmap's layout, tokens");
BENCHMARK_CAPTURE(makespan, eplb, "eplb")
    ->Arg(2048)
    ->Arg(512)
    ->Unit(benchmark::kMicrosecond)
    ->Name("makespan dispatcher, token-expert pairs, eplb's layout, tokens");

void assign(benchmark::State& state, const char* name) {
  Desk desk(name, bench::package(), 4);
  std::vector<Assignment> out;
  int layer = 0;
  for (auto _ : state) {
    out.clear();
    desk.policy->assign(desk.view, {layer, desk.routed[static_cast<std::size_t>(layer)]}, out);
    benchmark::DoNotOptimize(out.data());
    layer = (layer + 1) % desk.layers;
  }
  state.SetItemsProcessed(state.iterations() * 2048 * 8);
}
#define SOJOURN_ASSIGN(name) \
  BENCHMARK_CAPTURE(assign, name, #name)->Unit(benchmark::kMicrosecond)->Name("assign, token-expert pairs, " #name)
SOJOURN_ASSIGN(static);
SOJOURN_ASSIGN(moentwine);
SOJOURN_ASSIGN(hcrmap);
SOJOURN_ASSIGN(eplb);
SOJOURN_ASSIGN(llep);
SOJOURN_ASSIGN(lplb);
SOJOURN_ASSIGN(makespan);
SOJOURN_ASSIGN(sojourn);

/// A whole layout before the first window; sojourn and makespan rehearse candidates in it.
void layout(benchmark::State& state, const char* name) {
  Desk desk(name, bench::package(), 4);
  std::vector<PlacedReplica> out;
  for (auto _ : state) {
    out.clear();
    make_policy(name, {})->place(desk.task, out);
    benchmark::DoNotOptimize(out.data());
  }
}
#define SOJOURN_LAYOUT(name) \
  BENCHMARK_CAPTURE(layout, name, #name)->Unit(benchmark::kMillisecond)->Name("layout, 4 layers of 256 experts, " #name)
SOJOURN_LAYOUT(eplb);
SOJOURN_LAYOUT(hcrmap);
SOJOURN_LAYOUT(makespan);
SOJOURN_LAYOUT(sojourn);

void decide(benchmark::State& state, const char* name, const Desk::Options& options = {}) {
  const auto layers = static_cast<int>(state.range(0));
  Desk desk(name, layers > 4 ? bench::large_package() : bench::package(), layers, options);
  std::vector<Action> out;
  for (auto _ : state) {
    out.clear();
    ++desk.view.window;
    desk.policy->decide(desk.view, out);
    benchmark::DoNotOptimize(out.data());
  }
}
BENCHMARK_CAPTURE(decide, amortised, "hcrmap", {{"slow", "amortised"}})
    ->Arg(4)
    ->Arg(kLayers)
    ->Unit(benchmark::kMicrosecond)
    ->Name("slow loop, one decision, layers of 256 experts, hcrmap, amortised");
#define SOJOURN_DECIDE(name)             \
  BENCHMARK_CAPTURE(decide, name, #name) \
      ->Arg(4)                           \
      ->Arg(kLayers)                     \
      ->Unit(benchmark::kMicrosecond)    \
      ->Name("slow loop, one decision, layers of 256 experts, " #name)
SOJOURN_DECIDE(hcrmap);
SOJOURN_DECIDE(eplb);
SOJOURN_DECIDE(llep);

}  // namespace
