// Event-level layers worked out by hand. Unless said otherwise: 1 MAC = 1000 ps, an expert is 400 B in 4 tiles, SRAM
// serves a byte in 500 ps after 100 ps, links take 1000 ps a byte and 5000 ps, an activation is 10 B, the gate 1000 ps.
#include "bound/bound.h"
#include "kit.h"
#include "moe/closed_form.h"

using namespace kit;

namespace {

/// c0, c1 joined; SRAM on both (sets 0, 1); DRAM on an IO chiplet at c0 (set 2).
Builder pair_of_chiplets(std::uint64_t dram = 4 * kGB) {
  Builder b(2, 1);
  b.both(0, 1, kGB, 5'000);
  b.both(2, 0, kGB, 5'000);
  b.banks(Tier::sram, 0, 1, 10'000, 2 * kGB, 100);
  b.banks(Tier::sram, 1, 1, 10'000, 2 * kGB, 100);
  b.banks(Tier::dram, 2, 1, 10'000, dram, 1'000);
  return b;
}

LayerOutcome once(const Package& p, Layer& l, Ledger* ledger = nullptr) {
  Listener listener;
  Executor ex(p, listener);
  const LayerOutcome out = ex.run_layer(l.ready());
  CHECK(sum(out) == out.end - out.start);
  CHECK(listener.done.size() == l.jobs.size());
  if (ledger) *ledger = ex.ledger();
  return out;
}

}  // namespace

TEST_CASE("one local group, memory bound: the last tile's arrival and its compute decide") {
  const Package p = pair_of_chiplets().build();
  Layer l;
  l.piece(l.job(Tier::sram, 0, 0), 0, 4);
  const LayerOutcome out = once(p, l);
  // tiles arrive every 50000 from 1000 + 50000 + 100; each takes 10 MACs; combine 4 x 2 MACs
  CHECK(out.end == 1'000 + 100 + 200'000 + 10'000 + 8'000);
  CHECK(stage(out, Stage::gate) == 1'000);
  CHECK(stage(out, Stage::dispatch) == 0);
  CHECK(stage(out, Stage::queue) == 0);
  CHECK(stage(out, Stage::memory) == 50'100 + 3 * 40'000);
  CHECK(stage(out, Stage::compute) == 40'000);
  CHECK(stage(out, Stage::gather) == 0);
  CHECK(stage(out, Stage::combine) == 8'000);
  CHECK(out.bottleneck == Bottleneck::sram);
}

TEST_CASE("one local group, compute bound: the first tile gates compute, the rest of the stream is hidden") {
  const Package p = pair_of_chiplets().build();
  Layer l;
  l.work.macs_per_token = 100;
  l.piece(l.job(Tier::sram, 0, 0), 0, 4);
  const LayerOutcome out = once(p, l);
  CHECK(out.end == 1'000 + 50'100 + 400'000 + 8'000);
  CHECK(stage(out, Stage::memory) == 50'100);
  CHECK(stage(out, Stage::compute) == 400'000);
  CHECK(out.bottleneck == Bottleneck::compute);
}

TEST_CASE("(13) eta: five tokens cost two tiles of four, on all cores of the chiplet") {
  for (const int cores : {1, 4}) {
    Builder b = pair_of_chiplets();
    for (int c = 0; c < 2; ++c) b.p.chiplets[c].cores = cores;
    const Package p = b.build();
    Layer l;
    l.work.macs_per_token = 100;
    l.piece(l.job(Tier::sram, 0, 0), 0, 5);
    CHECK(stage(once(p, l), Stage::compute) == 800'000 / cores);
  }
}

TEST_CASE("one remote group: activations travel there, outputs travel back") {
  const Package p = pair_of_chiplets().build();
  Layer l;
  l.piece(l.job(Tier::sram, 0, 0), 1, 4);
  Ledger ledger(p);
  const LayerOutcome out = once(p, l, &ledger);
  CHECK(stage(out, Stage::dispatch) == 45'000);            // 40 B
  CHECK(stage(out, Stage::memory) == 5'100 + 3 * 40'000);  // the first tile was under way meanwhile
  CHECK(stage(out, Stage::gather) == 45'000);
  CHECK(out.end == 211'100 + 45'000 + 8'000);
  CHECK(ledger.links[1].bytes[0] == 40);
  CHECK(ledger.links[0].bytes[1] == 40);
}

TEST_CASE("a long dispatch is chunked and still takes D/B and the latency once") {
  const Package p = pair_of_chiplets().build();
  Layer l;
  l.piece(l.job(Tier::sram, 0, 0), 1, 40);  // 400 B in chunks of 64
  const LayerOutcome out = once(p, l);
  CHECK(stage(out, Stage::dispatch) == 405'000);
  CHECK(stage(out, Stage::memory) == 0);  // all tiles waited for the tokens
  CHECK(stage(out, Stage::gather) == 405'000);
  CHECK(out.end == 1'000 + 405'000 + 400'000 + 405'000 + 80'000);
}

TEST_CASE("two replicas on a chiplet queue: the larger first, the other behind it") {
  const Package p = pair_of_chiplets().build();
  Layer l;
  l.work.macs_per_token = 100;
  const int small = l.job(Tier::sram, 0, 0), large = l.job(Tier::sram, 0, 0);
  l.piece(small, 0, 4);
  l.piece(large, 0, 8);
  const LayerOutcome out = once(p, l);
  // large: 51100 to 851100. small: streams from 201100, first tile 50000 later, then waits.
  CHECK(out.end == 1'251'100 + 24'000);
  CHECK(stage(out, Stage::queue) == 800'100);
  CHECK(stage(out, Stage::memory) == 50'000);
  CHECK(stage(out, Stage::compute) == 400'000);
}

TEST_CASE("prefetch depth one opens the next stream only when the job before is done") {
  Builder b = pair_of_chiplets();
  b.p.prefetch_depth = 1;
  const Package p = b.build();
  Layer l;
  l.work.macs_per_token = 100;
  l.piece(l.job(Tier::sram, 0, 0), 0, 8);
  l.piece(l.job(Tier::sram, 0, 0), 0, 4);
  const LayerOutcome out = once(p, l);
  CHECK(out.end == 851'100 + 50'100 + 400'000 + 24'000);
  CHECK(stage(out, Stage::memory) == 50'100);
}

TEST_CASE("streams of two tiers of a chiplet run side by side") {
  const Package p = pair_of_chiplets().build();
  Layer l;
  l.piece(l.job(Tier::sram, 0, 0), 0, 4);
  l.piece(l.job(Tier::dram, 0, 2), 0, 4);
  CHECK(once(p, l).end == 407'000 + 10'000 + 16'000);  // DRAM alone decides: see the next case
}

TEST_CASE("a DRAM replica streams over links: bank latency, narrowest rate, link latency") {
  Layer l;
  l.piece(l.job(Tier::dram, 0, 2), 0, 4);
  Ledger ledger(pair_of_chiplets().build());
  // gate + 1000 + 400 B at 1 GB/s (the link) + 5000, then the last tile's 10 MACs and combine
  CHECK(once(pair_of_chiplets().build(), l, &ledger).end == 1'000 + 1'000 + 400'000 + 5'000 + 10'000 + 8'000);
  CHECK(ledger.links[2].bytes[2] == 400);
  CHECK(ledger.bank_sets[2].foreground == 400);
  // a bank of 0.5 GB/s is the narrowest
  CHECK(once(pair_of_chiplets(kGB / 2).build(), l).end == 1'000 + 1'000 + 800'000 + 5'000 + 10'000 + 8'000);
}

TEST_CASE("a DRAM replica on the far chiplet crosses both links, latency of each once") {
  const Package p = pair_of_chiplets().build();
  Layer l;
  l.piece(l.job(Tier::dram, 1, 2), 1, 4);
  CHECK(once(p, l).end == 1'000 + 1'000 + 400'000 + 10'000 + 10'000 + 8'000);
}

TEST_CASE("a layer without tokens is its gate") {
  const Package p = pair_of_chiplets().build();
  Layer l;
  const LayerOutcome out = once(p, l);
  CHECK(out.end == 1'000);
  CHECK(stage(out, Stage::gate) == 1'000);
}

TEST_CASE("combine waits for the last of an aggregator's outputs and costs d MACs each") {
  const Package p = pair_of_chiplets().build();
  Layer l;
  l.piece(l.job(Tier::sram, 0, 0), 0, 4);
  l.piece(l.job(Tier::sram, 1, 1), 0, 4);  // its outputs come back over the link
  const LayerOutcome out = once(p, l);
  CHECK(stage(out, Stage::gather) == 45'000);
  CHECK(stage(out, Stage::combine) == 16'000);
  CHECK(out.end == 211'100 + 45'000 + 16'000);
}

TEST_CASE("throttling stretches compute in proportion and nothing else") {
  const Package p = pair_of_chiplets().build();
  Layer l;
  l.work.macs_per_token = 100;
  l.piece(l.job(Tier::sram, 0, 0), 1, 4);
  const LayerOutcome full = once(p, l);
  l.work.throttle = 512;
  const LayerOutcome half = once(p, l);
  CHECK(stage(half, Stage::compute) == 2 * stage(full, Stage::compute));
  CHECK(stage(half, Stage::combine) == 2 * stage(full, Stage::combine));
  CHECK(stage(half, Stage::dispatch) == stage(full, Stage::dispatch));
  CHECK(stage(half, Stage::gather) == stage(full, Stage::gather));
}

TEST_CASE("layers follow each other: the second starts when the first ends and takes as long") {
  const Package p = pair_of_chiplets().build();
  Layer l;
  l.piece(l.job(Tier::sram, 0, 0), 1, 4);
  Listener listener;
  Executor ex(p, listener);
  const LayerOutcome a = ex.run_layer(l.ready());
  ex.advance(12'345);
  const LayerOutcome b = ex.run_layer(l.ready());
  CHECK(b.start == a.end + 12'345);
  CHECK(b.end - b.start == a.end - a.start);
  CHECK(b.stages == a.stages);
}

TEST_CASE("bytes on links are the sum over requests of bytes x hops (5), and busy time is bytes over bandwidth") {
  const Package p = pair_of_chiplets().build();
  Layer l;
  const int a = l.job(Tier::sram, 0, 0), b = l.job(Tier::dram, 1, 2);
  l.piece(a, 0, 7);
  l.piece(a, 1, 9);
  l.piece(b, 0, 3);
  Ledger ledger(p);
  once(p, l, &ledger);
  for (int k = 0; k < kTraffic; ++k) {
    Bytes on_links = 0;
    for (const LinkLoad& u : ledger.links) on_links += u.bytes[k];
    CHECK(on_links == ledger.requested_hops[k]);
  }
  CHECK(ledger.requested[0] == 190);
  CHECK(ledger.requested_hops[0] == 120);
  CHECK(ledger.requested_hops[1] == 120);
  CHECK(ledger.requested[2] == 800);       // a local stream is a request of no hops
  CHECK(ledger.requested_hops[2] == 800);  // 400 B over two links
  for (std::size_t u = 0; u < p.links.size(); ++u) CHECK(ledger.links[u].busy == ledger.links[u].total() * 1000);
}

TEST_CASE("a background transfer is done when its last chunk is written, and loads link and both banks") {
  const Package p = pair_of_chiplets().build();
  Listener listener;
  Executor ex(p, listener);
  ex.start_transfer({7, 0, 1, p.route_chiplets(0, 1), 200, 0});  // chunks 64, 64, 64, 8
  ex.advance(1'000'000);
  REQUIRE(listener.transfers.size() == 1);
  CHECK(listener.transfers[0].first == 7);
  // head at 100 (bank latency); 200 B on the link; the third chunk arrives at 197100 and takes 32000 to write, then the
  // fourth 4000, then the bank's 100
  CHECK(listener.transfers[0].second == 197'100 + 32'000 + 4'000 + 100);
  CHECK(ex.ledger().links[0].bytes[3] == 200);
  CHECK(ex.ledger().links[1].bytes[3] == 0);
  CHECK(ex.ledger().bank_sets[0].migration == 200);
  CHECK(ex.ledger().bank_sets[1].migration == 200);
}

TEST_CASE("pacing: chunks of a transfer start at least a gap apart") {
  const Package p = pair_of_chiplets().build();
  Listener listener;
  Executor ex(p, listener);
  ex.start_transfer({0, 0, 1, p.route_chiplets(0, 1), 200, 500'000});
  ex.advance(10'000'000);
  REQUIRE(listener.transfers.size() == 1);
  // the fourth chunk (8 B) is read at 1500000: head +100, link 8000 + 5000, write 4000 + 100
  CHECK(listener.transfers[0].second == 1'500'000 + 100 + 8'000 + 5'000 + 4'000 + 100);
}

TEST_CASE("a transfer inside a chiplet, from tier to tier, uses no link") {
  Builder b(1);
  b.banks(Tier::sram, 0, 1, 1'000, 2 * kGB, 100);
  b.banks(Tier::dram, 0, 1, 1'000, kGB, 300);
  const Package p = b.build();
  Listener listener;
  Executor ex(p, listener);
  ex.start_transfer({0, 1, 0, {}, 64, 0});
  ex.advance(1'000'000);
  REQUIRE(listener.transfers.size() == 1);
  CHECK(listener.transfers[0].second == 64'000 + 300 + 32'000 + 100);
}

namespace {

WindowBound bound_of(const Package& p, const Layer& l, const std::vector<int>& demand) {
  BoundRules r;
  r.expert_bytes = l.work.expert_bytes;
  r.token_bytes = l.work.token_bytes;
  r.macs_per_token = l.work.macs_per_token;
  r.combine_macs_per_token = l.work.combine_macs_per_token;
  for (const BankSet& s : p.bank_sets) r.set_bytes.push_back(s.usable);
  BoundDemand d;
  d.demand = &demand;
  d.aggregated.assign(p.compute_count, 0);
  for (const Piece& piece : l.pieces) d.aggregated[piece.source] += piece.tokens;
  d.gate = l.work.gate;
  return layer_bound(p, r, d);
}

}  // namespace

TEST_CASE("the lower bound is met, but for its rounding allowance, by a compute-bound layer without memory time") {
  Builder b(1);
  b.banks(Tier::sram, 0, 1, 1'000, 1'000'000 * kGB, 0);  // 400 B in less than a picosecond
  const Package p = b.build();
  Layer l;
  l.piece(l.job(Tier::sram, 0, 0), 0, 6);
  const LayerOutcome out = once(p, l);
  const WindowBound bound = bound_of(p, l, {0, 6, 0});
  CHECK(out.end == 1'000 + 80'000 + 12'000);
  CHECK(bound.latency <= out.end);
  CHECK(bound.latency >= out.end - 12);  // half a picosecond a slice of an active expert, and a few
  CHECK(bound.resources.front() == BoundResource::compute);
}

TEST_CASE("the lower bound is met by a memory-bound layer without compute, filling tiers by bandwidth") {
  Builder b(1);
  b.banks(Tier::sram, 0, 1, 400, 3 * kGB, 0);
  b.banks(Tier::dram, 0, 1, 4'000, 1 * kGB, 0);
  const Package p = b.build();
  Layer l;
  l.work.macs_per_token = 0;
  l.piece(l.job(Tier::sram, 0, 0), 0, 4);
  l.piece(l.job(Tier::dram, 0, 1), 0, 4);
  const LayerOutcome out = once(p, l);
  CHECK(out.end == 1'000 + 400'000 + 16'000);
  // 800 B: SRAM runs dry (400 B) after 133.3 ns, DRAM delivers the other 400 in 400 ns
  const WindowBound bound = bound_of(p, l, {4, 4});
  CHECK(bound.latency <= out.end);
  CHECK(bound.latency >= out.end - 25);
  CHECK(bound.resources.front() == BoundResource::sram_capacity);
}

TEST_CASE("the closed form and the executor agree on a local compute-bound replica but for the first tile's overlap") {
  const Package p = pair_of_chiplets().build();
  Layer l;
  l.work.macs_per_token = 100;
  l.piece(l.job(Tier::sram, 0, 0), 1, 4);
  Ledger ledger(p);
  const LayerOutcome closed = closed_layer(p, l.ready(), {}, 0, ledger);
  const LayerOutcome event = once(p, l);
  CHECK(event.end - closed.end == 5'100);  // what of the first tile's 50100 the dispatch of 45000 does not hide
}
