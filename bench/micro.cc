// Rates of the simulator's inner loops: event queue, packet network, layer executor, on a DeepSeek-V3-like layer (256
// experts, 2048 tokens x 8, 16 chiplets of hcrmap-table1). What policies cost is in decide.cc.
//   cmake -S . -B build/bench -G Ninja -DCMAKE_BUILD_TYPE=Release -DSOJOURN_BENCH=ON && ninja -C build/bench
//   sojourn_bench build/bench/sojourn_bench
#include <benchmark/benchmark.h>

#include "desk.h"
#include "moe/executor.h"
#include "network/packet.h"

namespace {

using namespace sojourn;
using bench::groups;
using bench::model;
using bench::package;

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

}  // namespace

BENCHMARK_MAIN();
