// Small packages built in code with round numbers, for scenarios worked out by hand and for random ones.
// 1 GB/s is 1000 ps a byte and a chiplet of `kit.cores` cores computes that many MACs a nanosecond.
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "moe/executor.h"
#include "sojourn/policy.h"
#include "sojourn/trace.h"
#include "study/simulate.h"

namespace kit {

using namespace sojourn;

inline constexpr std::uint64_t kGB = 1'000'000'000;  // bytes a second: 1000 ps a byte

/// A package whose nodes are its chiplets: compute chiplets first, then IO chiplets; shortest routes by hops.
struct Builder {
  Package p;
  explicit Builder(int compute, int io = 0, int cores = 1) {
    p.name = "kit";
    p.topology = "custom";
    p.routing = "table";
    p.nodes = compute + io;
    p.compute_count = compute;
    p.groups = 1;
    p.width = compute;
    p.height = 1;
    p.clock_hz = 1e9;
    p.macs_per_cycle = 1;
    p.tile_tokens = 4;
    p.chunk_bytes = 64;
    p.flit.bytes = 1;
    p.flit.packet = 8;
    p.flit.vcs = 1;
    p.weight_tiles = 4;
    p.prefetch_depth = 2;
    p.handover = Rate(kGB);
    for (int c = 0; c < compute + io; ++c)
      p.chiplets.push_back({"c", c < compute, c, 0, c, 0, c < compute ? cores : 0});
  }
  int link(int from, int to, std::uint64_t bandwidth, Ps latency, Fj energy = 0, LinkClass cls = LinkClass::d2d) {
    Link l;
    l.name = "c" + std::to_string(from) + "->c" + std::to_string(to);
    l.from = from;
    l.to = to;
    l.cls = cls;
    l.bandwidth = Rate(bandwidth);
    l.energy_per_byte = energy;
    l.latency = l.overhead = latency;
    p.links.push_back(l);
    return static_cast<int>(p.links.size()) - 1;
  }
  void both(int a, int b, std::uint64_t bandwidth, Ps latency, Fj energy = 0) {
    link(a, b, bandwidth, latency, energy);
    link(b, a, bandwidth, latency, energy);
  }
  /// `bandwidth` and `capacity` are of one bank. Returns the bank set.
  int banks(Tier tier, int owner, int count, Bytes capacity, std::uint64_t bandwidth, Ps latency = 0, Fj energy = 0) {
    BankSet set{tier, owner, static_cast<int>(p.banks.size()), count, capacity * count, bandwidth * count};
    for (int b = 0; b < count; ++b) {
      Bank bank;
      bank.tier = tier;
      bank.owner = owner;
      bank.index = b;
      bank.capacity = capacity;
      bank.bandwidth = Rate(bandwidth);
      bank.latency = latency;
      bank.energy_per_byte = energy;
      p.banks.push_back(bank);
    }
    p.bank_sets.push_back(set);
    return static_cast<int>(p.bank_sets.size()) - 1;
  }
  Package build() {
    const auto n = static_cast<std::size_t>(p.nodes);
    p.route_first.assign(1, 0);
    p.route_links.clear();
    for (int a = 0; a < p.nodes; ++a) {
      std::vector<int> by(n, -1), queue{a};  // the link that reached a node
      for (std::size_t i = 0; i < queue.size(); ++i)
        for (std::size_t u = 0; u < p.links.size(); ++u)
          if (const int to = p.links[u].to; p.links[u].from == queue[i] && to != a && by[to] < 0) {
            by[to] = static_cast<int>(u);
            queue.push_back(to);
          }
      for (int b = 0; b < p.nodes; ++b) {
        std::vector<int> path;
        for (int at = b; at != a && by[at] >= 0; at = p.links[by[at]].from) path.push_back(by[at]);
        p.route_links.insert(p.route_links.end(), path.rbegin(), path.rend());
        p.route_first.push_back(p.route_links.size());
      }
    }
    for (int t = 0; t < kTiers; ++t) {
      p.visible_sets[t].assign(p.compute_count, {});
      for (int c = 0; c < p.compute_count; ++c)
        for (std::size_t s = 0; s < p.bank_sets.size(); ++s) {
          const BankSet& set = p.bank_sets[s];
          if (static_cast<int>(set.tier) == t && (set.owner == c || !p.chiplets[set.owner].compute))
            p.visible_sets[t][c].push_back(static_cast<int>(s));
        }
    }
    return p;
  }
};

struct Listener final : ExecutorListener {
  std::vector<int> done;
  std::vector<std::pair<std::uint32_t, Ps>> transfers;
  std::function<void(int)> job;
  void on_job_done(int replica) override {
    done.push_back(replica);
    if (job) job(replica);
  }
  void on_transfer_done(std::uint32_t tag, Ps at) override { transfers.emplace_back(tag, at); }
};

/// One layer's work with its own storage. Tokens of a job are the sum over its pieces.
struct Layer {
  std::vector<Job> jobs;
  std::vector<Piece> pieces;
  LayerWork work;
  Layer() {
    work.expert_bytes = 400;
    work.token_bytes = 10;
    work.macs_per_token = 10;
    work.combine_macs_per_token = 2;
    work.gate = 1000;
  }
  int job(Tier tier, int chiplet, int set) {
    jobs.push_back({static_cast<int>(jobs.size()), {tier, chiplet, set}, 0});
    return static_cast<int>(jobs.size()) - 1;
  }
  void piece(int job, int source, int tokens) {
    pieces.push_back({job, source, tokens});
    jobs[job].tokens += tokens;
  }
  const LayerWork& ready() {
    work.jobs = &jobs;
    work.pieces = &pieces;
    return work;
  }
};

inline Ps sum(const LayerOutcome& out) { return std::accumulate(out.stages.begin(), out.stages.end(), Ps{0}); }
inline Ps stage(const LayerOutcome& out, Stage s) { return out.stages[static_cast<std::size_t>(s)]; }

/// A policy made of three functions; unset ones do nothing (place: everything must be placed by the test).
struct Scripted final : Policy {
  std::function<void(const PlacementTask&, std::vector<PlacedReplica>&)> on_place;
  std::function<void(const PolicyView&, std::vector<Action>&)> on_decide;
  std::function<void(const PolicyView&, const LayerTask&, std::vector<Assignment>&)> on_assign;
  void place(const PlacementTask& task, std::vector<PlacedReplica>& out) override {
    if (on_place) on_place(task, out);
  }
  void decide(const PolicyView& view, std::vector<Action>& out) override {
    if (on_decide) on_decide(view, out);
  }
  void assign(const PolicyView& view, const LayerTask& task, std::vector<Assignment>& out) override {
    if (on_assign) return on_assign(view, task, out);
    Policy::assign(view, task, out);
  }
};

/// A model without attention or vocabulary, so that a window is its experts, gates and gate weights alone:
/// an expert is 2 x hidden x ff bytes and as many MACs a token, an activation 2 x hidden bytes.
inline ModelShape tiny_model(int layers, int experts, int top_k, int hidden, int ff) {
  ModelShape m;
  m.name = "tiny";
  m.layers = layers;
  m.hidden = hidden;
  m.moe_ff = ff;
  m.experts = experts;
  m.top_k = top_k;
  m.matrices = 2;
  return m;
}

/// A trace of `sequences` requests of `length` tokens; expert(layer, token, choice) routes.
inline std::unique_ptr<Trace> tiny_trace(const ModelShape& m, int sequences, int length,
                                         const std::function<int(int, int, int)>& expert) {
  TraceData d;
  d.meta.name = "tiny";
  d.meta.model = m.name;
  d.meta.layers = m.moe_layers();
  d.meta.experts = m.experts;
  d.meta.top_k = m.top_k;
  d.meta.tokens = static_cast<std::int64_t>(sequences) * length;
  d.ids.resize(d.meta.layers);
  for (int l = 0; l < d.meta.layers; ++l)
    for (int t = 0; t < sequences * length; ++t)
      for (int j = 0; j < m.top_k; ++j) d.ids[l].push_back(static_cast<std::uint16_t>(expert(l, t, j)));
  for (int s = 0; s < sequences; ++s)
    for (int i = 0; i < length; ++i) {
      d.sequence_id.push_back(s);
      d.position.push_back(i);
    }
  return make_trace(std::move(d));
}

inline std::shared_ptr<const Scenario> scenario(const ModelShape& m, const Package& p,
                                                std::shared_ptr<const Trace> trace, const WindowOptions& windows,
                                                Scenario settings) {
  auto s = make_scenario(m, p, std::move(trace), windows, std::move(settings));
  if (!s) FAIL(s.error().diagnostics.text());
  return *s;
}

inline RunResult run(const Scenario& s, const std::function<std::unique_ptr<Policy>()>& policy) {
  auto r = simulate(s, policy, "scripted", nullptr, 0, [] { return false; });
  if (!r) FAIL(r.error().diagnostics.text());
  return *r;
}

}  // namespace kit
