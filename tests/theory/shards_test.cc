// Layers of shards worked out by hand, and the stream buffer that counts their slices. As in executor_test.cc: 1 MAC =
// 1000 ps, SRAM serves a byte in 500 ps after 100 ps, links take 1000 ps a byte and 5000 ps, an activation is 10 B, the
// gate 1000 ps, tiles of 4 tokens.
#include "engine/span_sink.h"
#include "kit.h"
#include "moe/closed_form.h"

using namespace kit;

namespace {

Slice cut(int first, int count) { return {static_cast<std::uint8_t>(first), static_cast<std::uint8_t>(count)}; }

/// 16 chiplets with SRAM each (set = chiplet), every two joined.
Package sixteen_chiplets() {
  Builder b(16);
  for (int c = 0; c < 16; ++c)
    for (int d = 0; d < c; ++d) b.both(c, d, kGB, 5'000);
  for (int c = 0; c < 16; ++c) b.banks(Tier::sram, c, 1, 10'000, 2 * kGB, 100);
  return b.build();
}

int shard(Layer& l, int chiplet, Slice slice) {
  const int job = l.job(Tier::sram, chiplet, chiplet);
  l.jobs[job].slice = slice;
  return job;
}

/// One expert of 6 tokens from chiplet 0: in 16 shards over 16 chiplets, or whole on chiplet 1.
Layer spread() {
  Layer l;
  l.work.macs_per_token = 160;
  for (int c = 0; c < 16; ++c) l.piece(shard(l, c, cut(c, 1)), 0, 6);
  return l;
}
Layer whole_on_1() {
  Layer l;
  l.work.macs_per_token = 160;
  l.piece(shard(l, 1, {}), 0, 6);
  return l;
}

LayerOutcome once(const Package& p, Layer& l, Ledger& ledger) {
  Listener listener;
  Executor ex(p, listener);
  const LayerOutcome out = ex.run_layer(l.ready());
  CHECK(sum(out) == out.end - out.start);
  CHECK(listener.done.size() == l.jobs.size());
  ledger = ex.ledger();
  return out;
}

/// When the weight reads of each bank set start.
struct Reads final : SpanSink {
  std::vector<std::vector<Ps>> starts;
  explicit Reads(const Package& p) : starts(p.bank_sets.size()) {}
  void span(int, SpanTrack track, int index, Ps start, Ps, std::string_view) override {
    if (track == SpanTrack::bank) starts[index].push_back(start);
  }
};

/// One chiplet with SRAM (set 0) and HBM of the same speed (set 1). Experts of 400 B, 200 MACs a token, no gate.
struct OneChiplet {
  Package p;
  Layer l;
  explicit OneChiplet(int depth) {
    Builder b(1);
    b.banks(Tier::sram, 0, 1, 10'000, 2 * kGB);
    b.banks(Tier::hbm, 0, 1, 10'000, 2 * kGB);
    b.p.prefetch_depth = depth;
    b.p.weight_tiles = 1;
    p = b.build();
    l.work.macs_per_token = 200;
    l.work.gate = 0;
  }
  void add(int slices, int tokens, int set = 0) {
    const int job = l.job(set == 0 ? Tier::sram : Tier::hbm, 0, set);
    l.jobs[job].slice = cut(0, slices);
    l.piece(job, 0, tokens);
  }
  std::vector<std::vector<Ps>> starts() {
    Reads reads(p);
    Listener listener;
    Executor ex(p, listener);
    ex.set_spans(&reads, 0);
    ex.run_layer(l.ready());
    CHECK(listener.done.size() == l.jobs.size());
    return reads.starts;
  }
};

}  // namespace

TEST_CASE("16 shards on 16 chiplets: each computes all tokens, in whole tiles, at a sixteenth of the expert's MACs") {
  const Package p = sixteen_chiplets();
  Ledger cut_up(p), whole(p);
  Layer shards = spread(), one = whole_on_1();
  const LayerOutcome out = once(p, shards, cut_up);
  CHECK(stage(out, Stage::compute) == 8 * 160 / 16 * 1'000);  // 6 tokens are two tiles of 4
  CHECK(stage(once(p, one, whole), Stage::compute) == 8 * 160 * 1'000);
  for (int c = 0; c < 16; ++c) CHECK(cut_up.core_busy[c] == 80'000);
  CHECK(cut_up.macs == 6 * 160);
  CHECK(whole.macs == cut_up.macs);
}

TEST_CASE("16 shards on 16 chiplets: every bank serves a sixteenth of the expert, together exactly the expert") {
  const Package p = sixteen_chiplets();
  Ledger ledger(p);
  Layer l = spread();
  once(p, l, ledger);
  for (int s = 0; s < 16; ++s) CHECK(ledger.bank_sets[s].foreground == 25);
  l.work.expert_bytes = 1'003;  // no multiple of 16
  once(p, l, ledger);
  Bytes all = 0;
  for (int s = 0; s < 16; ++s) {
    CHECK(ledger.bank_sets[s].foreground >= 62);
    CHECK(ledger.bank_sets[s].foreground <= 63);
    all += ledger.bank_sets[s].foreground;
  }
  CHECK(all == 1'003);
  CHECK(ledger.requested[2] == 1'003);
}

TEST_CASE("16 shards on 16 chiplets: 16 times the activation and output bytes of a whole copy, and 16 times the adds") {
  const Package p = sixteen_chiplets();
  Ledger cut_up(p), whole(p);
  Layer shards = spread(), one = whole_on_1();
  const LayerOutcome out = once(p, shards, cut_up), single = once(p, one, whole);
  for (const int k : {0, 1}) {  // dispatch, gather
    CHECK(whole.requested[k] == 60);
    CHECK(cut_up.requested[k] == 16 * 60);
    CHECK(cut_up.requested_hops[k] == 15 * 60);  // chiplet 0's own do not travel
  }
  CHECK(stage(single, Stage::combine) == 6 * 2 * 1'000);
  CHECK(stage(out, Stage::combine) == 16 * 6 * 2 * 1'000);  // partial sums are added one by one
}

TEST_CASE("16 shards on 16 chiplets, to the picosecond; the closed form says the same when nothing contends") {
  const Package p = sixteen_chiplets();
  Ledger ledger(p);
  Layer l = spread();
  const LayerOutcome out = once(p, l, ledger);
  CHECK(stage(out, Stage::dispatch) == 65'000);  // 60 B, each chiplet over a link of its own
  CHECK(stage(out, Stage::memory) == 0);         // 25 B were there after 12600
  CHECK(stage(out, Stage::queue) == 0);
  CHECK(stage(out, Stage::gather) == 65'000);
  CHECK(out.end == 1'000 + 65'000 + 80'000 + 65'000 + 192'000);
  Ledger closed_ledger(p);
  const LayerOutcome closed = closed_layer(p, l.ready(), {}, 0, closed_ledger);
  CHECK(closed.stages == out.stages);
  CHECK(closed.end == out.end);
  CHECK(closed_ledger.macs == ledger.macs);
  CHECK(closed_ledger.core_busy == ledger.core_busy);
  CHECK(closed_ledger.requested == ledger.requested);
}

TEST_CASE("a shard takes its share of the expert's weight tiles, rounded up") {
  for (const auto& [slices, reads] : {std::pair(16, 8), {8, 4}, {3, 2}, {2, 1}, {1, 1}}) {
    OneChiplet one(2);
    one.p.weight_tiles = 8;
    one.add(slices, 4);
    CHECK(one.starts()[0].size() == static_cast<std::size_t>(reads));
  }
}

TEST_CASE("shards of one expert on one chiplet that make it up take the time and the bytes of the whole copy") {
  const auto end = [](const std::vector<Slice>& slices, Ledger& ledger) {
    OneChiplet one(2);
    one.p.weight_tiles = 4;
    one.l.work.combine_macs_per_token = 0;  // partial sums are added one by one
    for (const Slice& s : slices) one.l.piece(shard(one.l, 0, s), 0, 8);
    return once(one.p, one.l, ledger).end;
  };
  const OneChiplet any(2);
  Ledger whole(any.p), quarters(any.p);
  CHECK(end({Slice{}}, whole) == end({cut(0, 4), cut(4, 4), cut(8, 4), cut(12, 4)}, quarters));
  CHECK(whole.bank_sets[0].foreground == quarters.bank_sets[0].foreground);
  CHECK(whole.core_busy == quarters.core_busy);
  CHECK(whole.macs == quarters.macs);
}

// Stream buffer. A whole expert streams in 200000 ps and computes 200000 ps a token; slices take their share of both.

TEST_CASE("stream buffer: with whole experts, `prefetch_depth` jobs are open") {
  for (const int depth : {1, 2, 3}) {
    OneChiplet one(depth);
    for (int i = 0; i < 4; ++i) one.add(16, 4);  // computed in turn: from 200000, 800000 each
    const std::vector<Ps> starts = one.starts()[0];
    REQUIRE(starts.size() == 4);
    for (int i = 0; i < 4; ++i) {
      // At once while the buffer has room; depth 1 computes and streams in turn, so that nothing overlaps.
      const Ps done = depth == 1 ? i * 1'000'000 : 200'000 + (i + 1 - depth) * 800'000;
      CHECK(starts[i] == (i < depth ? i * 200'000 : done));
    }
  }
}

TEST_CASE("stream buffer: as many shards are open as have the slices of `prefetch_depth` experts") {
  OneChiplet one(1);
  for (int i = 0; i < 6; ++i) one.add(4, 8);  // 50000 to stream, 400000 to compute: from 50000 on
  CHECK(one.starts()[0] == std::vector<Ps>{0, 50'000, 100'000, 150'000, 450'000, 850'000});
}

TEST_CASE("stream buffer: at depth two 32 single slices are open, and the next waits") {
  OneChiplet one(2);
  for (int i = 0; i < 33; ++i) one.add(1, 40);  // 12500 to stream, 40 x 12 MACs to compute
  const std::vector<Ps> starts = one.starts()[0];
  REQUIRE(starts.size() == 33);
  for (int i = 0; i < 32; ++i) CHECK(starts[i] == i * 12'500);
  CHECK(starts[32] == 492'500);  // when the first is done
}

TEST_CASE("stream buffer: a shard does not fit beside a whole expert at depth one, but does at depth two") {
  for (const int depth : {1, 2}) {
    OneChiplet one(depth);
    one.add(16, 4);
    one.add(1, 4);
    CHECK(one.starts()[0] == std::vector<Ps>{0, depth == 1 ? 1'000'000 : 200'000});
  }
}

TEST_CASE("stream buffer: the most work goes first, and a job that fits does not overtake one that does not") {
  OneChiplet one(1);
  one.add(4, 4);   // work 16 (tokens x slices): last, though it would fit beside the first
  one.add(12, 4);  // 48: 150000 to stream, 600000 to compute
  one.add(8, 12);  // 96: 100000 to stream, 1200000 to compute
  CHECK(one.starts()[0] == std::vector<Ps>{0, 1'300'000, 1'450'000});
}

TEST_CASE("stream buffer: each tier of a chiplet has its own") {
  OneChiplet one(1);
  one.add(16, 4, 0);
  one.add(16, 4, 1);
  one.add(16, 4, 1);
  const auto starts = one.starts();
  CHECK(starts[0] == std::vector<Ps>{0});
  CHECK(starts[1].size() == 2);
  CHECK(starts[1][0] == 0);
  // Both compute from 200000, SRAM's first or HBM's first; HBM's second stream opens when HBM's first is done.
  CHECK(starts[1][1] >= 1'000'000);
}
