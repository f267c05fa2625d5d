// Random layers on random packages: the bound holds, stages telescope, traffic is conserved, nothing is random twice.
#include "bound/bound.h"
#include "moe/closed_form.h"
#include "random_package.h"

using namespace kit;

namespace {

struct RandomLayer {
  Layer layer;
  std::vector<int> demand;
  int copies = 0;  ///< of whole experts, however they are cut
};

/// Experts with one to three copies anywhere, each whole, cut into single slices or cut at random, tokens from any
/// source.
RandomLayer random_layer(const Package& p, Rng& rng) {
  RandomLayer out;
  Layer& l = out.layer;
  l.work.expert_bytes = static_cast<Bytes>(1 + rng.below(2000));
  l.work.token_bytes = static_cast<Bytes>(1 + rng.below(40));
  l.work.macs_per_token = static_cast<Macs>(rng.below(200));
  l.work.combine_macs_per_token = static_cast<Macs>(rng.below(20));
  l.work.gate = static_cast<Ps>(rng.below(20'000));
  l.work.throttle = rng.below(4) == 0 ? static_cast<int>(100 + rng.below(900)) : 1024;
  const int experts = 1 + static_cast<int>(rng.below(12));
  for (int e = 0; e < experts; ++e) {
    int tokens = 0;
    const int replicas = rng.below(4) == 0 ? 0 : 1 + static_cast<int>(rng.below(3));
    for (int r = 0; r < replicas; ++r) {
      std::vector<std::pair<int, int>> pieces;  // source, tokens
      for (int c = 0; c < p.compute_count; ++c) {
        if (c > 0 && rng.below(2)) continue;
        pieces.emplace_back(c, 1 + static_cast<int>(rng.below(40)));
        tokens += pieces.back().second;
      }
      ++out.copies;
      const bool single = rng.below(6) == 0;
      for (int first = 0; first < kSlices;) {
        const int count = single         ? 1
                          : rng.below(2) ? kSlices - first
                                         : 1 + static_cast<int>(rng.below(kSlices - first));
        const Location at = usable_location(p, rng);
        const int job = l.job(at.tier, at.chiplet, at.bank_set);
        l.jobs[job].slice = {static_cast<std::uint8_t>(first), static_cast<std::uint8_t>(count)};
        for (const auto& [source, n] : pieces) l.piece(job, source, n);
        first += count;
      }
    }
    out.demand.push_back(tokens);
  }
  return out;
}

/// What a layer must carry and compute however its experts are cut: from the demand alone.
void check_conserved(const RandomLayer& r, const Ledger& ledger) {
  const LayerWork& w = r.layer.work;
  Macs macs = 0;
  for (const int tokens : r.demand) macs += tokens * w.macs_per_token;
  RC_ASSERT(ledger.macs == macs);
  Bytes foreground = 0, vectors = 0;
  for (const BankLoad& b : ledger.bank_sets) foreground += b.foreground;
  RC_ASSERT(foreground == r.copies * w.expert_bytes);
  RC_ASSERT(ledger.requested[static_cast<std::size_t>(Traffic::memory)] == foreground);
  for (const Piece& piece : r.layer.pieces) vectors += piece.tokens * w.token_bytes;
  RC_ASSERT(ledger.requested[static_cast<std::size_t>(Traffic::dispatch)] == vectors);
  RC_ASSERT(ledger.requested[static_cast<std::size_t>(Traffic::gather)] == vectors);
}

Ps lower_bound(const Package& p, const TierRates& rates, const RandomLayer& r, bool events) {
  const LayerWork& w = r.layer.work;
  BoundRules rules;
  rules.expert_bytes = w.expert_bytes;
  rules.token_bytes = w.token_bytes;
  rules.macs_per_token = w.macs_per_token;
  rules.combine_macs_per_token = w.combine_macs_per_token;
  rules.replicas_max = 3;
  rules.events = events;
  rules.set_bytes.assign(p.bank_sets.size(), 1LL << 40);
  BoundDemand d;
  d.demand = &r.demand;
  d.aggregated.assign(p.compute_count, 0);
  for (const Piece& piece : r.layer.pieces) d.aggregated[piece.source] += piece.tokens;
  d.gate = w.gate;
  Bound bound(p, rates, rules);
  bound.add(d);
  return bound.window().latency;
}

}  // namespace

TEST_CASE(
    "layers: bound <= latency, stages sum to it, bytes are conserved, resources are never over-booked, runs repeat") {
  CHECK(rc::check("random layers", [] {
    const Package p = random_package(1 << 20);
    const TierRates rates = tier_rates(p);
    Rng rng(static_cast<std::uint64_t>(pick(0, 1 << 20)), "layers");
    std::vector<LayerOutcome> first;
    std::vector<RandomLayer> layers;
    for (int i = 0; i < 30; ++i) layers.push_back(random_layer(p, rng));
    for (const bool again : {false, true}) {
      Listener listener;
      Executor ex(p, listener);
      for (std::size_t i = 0; i < layers.size(); ++i) {
        RandomLayer& r = layers[i];
        ex.ledger().clear();
        listener.done.clear();
        const LayerOutcome out = ex.run_layer(r.layer.ready());
        if (again) {
          RC_ASSERT(out.start == first[i].start);
          RC_ASSERT(out.end == first[i].end);
          RC_ASSERT(out.stages == first[i].stages);
          continue;
        }
        first.push_back(out);
        const Ps took = out.end - out.start;
        RC_ASSERT(sum(out) == took);
        for (const Ps s : out.stages) RC_ASSERT(s >= 0);
        RC_ASSERT(lower_bound(p, rates, r, true) <= took);
        Ledger closed_ledger(p);
        const LayerOutcome closed = closed_layer(p, r.layer.work, {}, 0, closed_ledger);
        RC_ASSERT(sum(closed) == closed.end);
        RC_ASSERT(lower_bound(p, rates, r, false) <= closed.end);
        std::sort(listener.done.begin(), listener.done.end());
        RC_ASSERT(listener.done.size() == r.layer.jobs.size());
        RC_ASSERT(std::adjacent_find(listener.done.begin(), listener.done.end()) == listener.done.end());
        const Ledger& ledger = ex.ledger();
        check_conserved(r, ledger);
        check_conserved(r, closed_ledger);
        for (int k = 0; k < kTraffic; ++k) {
          Bytes on_links = 0;
          for (const LinkLoad& u : ledger.links) on_links += u.bytes[k];
          RC_ASSERT(on_links == ledger.requested_hops[k]);
          RC_ASSERT(ledger.requested[k] == closed_ledger.requested[k]);
          RC_ASSERT(ledger.requested_hops[k] == closed_ledger.requested_hops[k]);
        }
        RC_ASSERT(ledger.macs == closed_ledger.macs);
        for (std::size_t u = 0; u < ledger.links.size(); ++u) {
          RC_ASSERT(ledger.links[u].bytes == closed_ledger.links[u].bytes);
          RC_ASSERT(ledger.links[u].busy <= took);
        }
        for (std::size_t s = 0; s < ledger.bank_sets.size(); ++s) {
          RC_ASSERT(ledger.bank_sets[s].foreground == closed_ledger.bank_sets[s].foreground);
          RC_ASSERT(ledger.bank_sets[s].busy <= took);
        }
        RC_ASSERT(ledger.core_busy == closed_ledger.core_busy);
        for (const Ps busy : ledger.core_busy) RC_ASSERT(busy <= took);
      }
    }
  }));
}

TEST_CASE("layers: one local replica never beats the closed form, and exceeds it by no more than a tile each way") {
  CHECK(rc::check("local replica", [] {
    const Package p = random_package(1 << 20);
    Rng rng(static_cast<std::uint64_t>(pick(0, 1 << 20)), "local");
    for (int i = 0; i < 20; ++i) {
      Location at = usable_location(p, rng);
      if (p.bank_sets[at.bank_set].owner != at.chiplet) continue;
      Layer l;
      l.work.expert_bytes = static_cast<Bytes>(1 + rng.below(5000));
      l.work.macs_per_token = static_cast<Macs>(rng.below(500));
      l.piece(l.job(at.tier, at.chiplet, at.bank_set), at.chiplet, 1 + static_cast<int>(rng.below(100)));
      Ledger ledger(p);
      ClosedTerms t;
      const LayerOutcome closed = closed_layer(p, l.ready(), {}, 0, ledger, &t);
      Listener listener;
      Executor ex(p, listener);
      const Ps event = ex.run_layer(l.work).end;
      RC_ASSERT(event >= closed.end);
      const Ps latency = p.banks[p.bank_sets[at.bank_set].first_bank].latency;
      const Ps tile = std::max(t.comp, t.mem - latency) / p.weight_tiles;
      RC_ASSERT(event <= closed.end + latency + 2 * tile + 2 * p.weight_tiles + 4 + std::max(t.comp, t.mem) / 16);
    }
  }));
}

TEST_CASE("background transfers end, write every byte once and never change what a layer carries") {
  CHECK(rc::check("transfers", [] {
    const Package p = random_package(1 << 20);
    Rng rng(static_cast<std::uint64_t>(pick(0, 1 << 20)), "transfers");
    Listener listener;
    Executor ex(p, listener);
    Bytes moved = 0;
    const int count = 1 + static_cast<int>(rng.below(5));
    for (int i = 0; i < count; ++i) {
      const int from = static_cast<int>(rng.below(p.bank_sets.size())),
                to = static_cast<int>(rng.below(p.bank_sets.size()));
      const Bytes bytes = static_cast<Bytes>(1 + rng.below(5000));
      ex.start_transfer({static_cast<std::uint32_t>(i), from, to,
                         p.route_chiplets(p.bank_sets[from].owner, p.bank_sets[to].owner), bytes,
                         static_cast<Ps>(rng.below(100'000))});
      moved += bytes;
    }
    RandomLayer r = random_layer(p, rng);
    const LayerOutcome out = ex.run_layer(r.layer.ready());
    RC_ASSERT(sum(out) == out.end - out.start);
    ex.advance(1'000'000'000);
    RC_ASSERT(static_cast<int>(listener.transfers.size()) == count);
    Bytes banks = 0;
    for (const BankLoad& b : ex.ledger().bank_sets) banks += b.migration;
    RC_ASSERT(banks == 2 * moved);
    RC_ASSERT(ex.ledger().requested[3] == moved);
    Bytes links = 0;
    for (const LinkLoad& u : ex.ledger().links) links += u.bytes[3];
    RC_ASSERT(links == ex.ledger().requested_hops[3]);
  }));
}
