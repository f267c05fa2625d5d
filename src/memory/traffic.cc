// Sources of read traffic and the loop that runs them against the channels.
//
// Equations, assumptions and source: traffic.h. Time jumps to the next cycle in which a channel or the source can act.
//   [R] The random draws of the reference runs were not recorded with them; xorshift64* (Vigna 2016) seeded with seed *
//   0x9E3779B97F4A7C15 + 12345 reproduces their arrival times and is used here, so that both sides see the same
//   arrivals.
#include "memory/traffic.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <deque>
#include <limits>

#include "memory/memory_system.h"

namespace sojourn::dram {
namespace {

constexpr Cycle kNever = std::numeric_limits<Cycle>::max();
constexpr int kRequest = MemorySystem::kRequest;
constexpr int kRequestsPerChannel = 2;

class Draws {
 public:
  explicit Draws(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ULL + 12345) {}
  std::uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_ * 2685821657736338717ULL;
  }
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(n)); }
  /// A multiple of `step` below `end`.
  std::int64_t address(std::int64_t end, std::int64_t step) { return below(end / step) * step; }
  /// Exponential with mean 1.
  double exponential() { return -std::log(std::max(static_cast<double>(next() >> 11) * 0x1.0p-53, 1e-300)); }

 private:
  std::uint64_t state_;
};

class Source {
 public:
  virtual ~Source() = default;
  /// Sends what can be sent at `now`; returns the next cycle in which it has something new, kNever when it only waits
  /// for the channels.
  virtual Cycle fill(MemorySystem& memory, Cycle now) = 0;
};

class Idle final : public Source {
 public:
  Idle(const DramRecord& r, const Traffic& t) : t_(t), capacity_(r.capacity), draws_(t.seed) {
    if (t.pattern == Pattern::idle_rowhit) row_ = draws_.address(r.capacity, r.page_bytes);
  }
  Cycle fill(MemorySystem& m, Cycle now) override {
    if (m.finished() < sent_) return kNever;
    if (at_ < m.last_data()) at_ = m.last_data() + 20 + draws_.below(201);
    if (now < at_) return at_;
    Sending s = m.request(t_.pattern == Pattern::idle_rowhit ? row_ : draws_.address(capacity_, kRequest));
    m.push(s, now);
    ++sent_;
    return kNever;
  }

 private:
  Traffic t_;
  std::int64_t capacity_, row_ = 0, sent_ = 0;
  Draws draws_;
  Cycle at_ = 0;
};

/// Sequential or chunked readers, a turn each. [R] A cycle sends at most kRequestsPerChannel requests times the
/// channels.
class Streams final : public Source {
 public:
  Streams(const DramRecord& r, const Traffic& t, const AddressMap& map)
      : t_(t), capacity_(r.capacity), channels_(r.channels), draws_(t.seed), readers_(t.streams) {
    // A whole number of row pairs apart: the exclusive-or mapping swaps the rows of a pair.
    const std::int64_t rows = (t.bytes_per_stream / map.row_stride() + 2) / 2 * 2;
    for (int i = 0; i < t.streams; ++i) {
      Reader& reader = readers_[i];
      reader.left = t.bytes_per_stream / kRequest;
      reader.turn = t.turn_bytes / kRequest;
      if (t.pattern == Pattern::random_chunks) continue;
      reader.at = i * rows * map.row_stride();
      if (t.bases == Bases::same_bank_group) reader.at += i % r.banks * map.bank_stride();
      if (t.bases == Bases::diff_bank_group)
        reader.at += i % r.bank_groups * map.group_stride() + i / r.bank_groups % r.banks * map.bank_stride();
      if (t.bases == Bases::spread) reader.at = draws_.address(r.capacity, 4096);
      if (!t.starts.empty()) reader.at = t.starts[i];
    }
  }
  Cycle fill(MemorySystem& m, Cycle now) override {
    int budget = kRequestsPerChannel * channels_;
    for (std::size_t blocked = 0; blocked < readers_.size() && budget > 0;) {
      Reader& reader = readers_[turn_];
      if (reader.left == 0 || !advance(m, now, reader)) {
        if (reader.left > 0 && channels_ == 1) break;
        ++blocked;
        next_turn();
        continue;
      }
      --budget;
      blocked = 0;
      if (reader.turn == 0) {
        reader.turn = t_.turn_bytes / kRequest;
        next_turn();
      }
    }
    return budget == 0 ? now + 1 : kNever;
  }

 private:
  struct Reader {
    std::int64_t at = 0, left = 0;
    int turn = 0, chunk = 0;
    bool sending = false;
    Sending current;
  };
  void next_turn() { turn_ = turn_ + 1 < static_cast<int>(readers_.size()) ? turn_ + 1 : 0; }
  /// Sends the reader's next request; false when it has to wait.
  bool advance(MemorySystem& m, Cycle now, Reader& reader) {
    if (!reader.sending) {
      if (t_.pattern == Pattern::random_chunks && reader.chunk == 0) {
        reader.at = draws_.address(capacity_, t_.chunk_bytes);
        reader.chunk = t_.chunk_bytes / kRequest;
      }
      reader.current = m.request(reader.at);
      reader.sending = true;
    }
    if (!m.push(reader.current, now)) return false;
    reader.sending = false;
    reader.at += kRequest;
    --reader.left;
    --reader.turn;
    --reader.chunk;
    return true;
  }

  Traffic t_;
  std::int64_t capacity_;
  int channels_;
  Draws draws_;
  std::vector<Reader> readers_;
  int turn_ = 0;
};

/// Independent requesters that always have a random read to send, served round robin after the last that was accepted.
class Random64 final : public Source {
 public:
  Random64(const DramRecord& r, const Traffic& t, const MemorySystem& m)
      : capacity_(r.capacity), left_(t.requests), draws_(t.seed), who_(static_cast<std::size_t>(64) * r.channels) {
    waiting_.assign(static_cast<std::size_t>(r.channels), std::vector<std::uint64_t>(r.channels, 0));
    for (std::size_t i = 0; i < who_.size(); ++i) {
      who_[i] = m.request(draws_.address(capacity_, kRequest));
      mark(i);
    }
  }
  Cycle fill(MemorySystem& m, Cycle now) override {
    const std::size_t words = waiting_.size();
    // One round over the requesters whose channel has room, from turn_ on.
    const std::size_t start = turn_;
    for (std::size_t k = 0; k <= words; ++k) {
      const std::size_t w = (start / 64 + k) % words;
      std::uint64_t within = ~std::uint64_t{0};
      if (k == 0) within <<= start % 64;
      if (k == words) within = ~(within << start % 64);
      for (;;) {
        std::uint64_t open = 0;
        for (std::size_t c = 0; c < words; ++c)
          if (m.room(static_cast<int>(c))) open |= waiting_[c][w];
        open &= within;
        if (open == 0) break;
        const int bit = std::countr_zero(open);
        within &= bit == 63 ? 0 : ~std::uint64_t{0} << (bit + 1);
        serve(m, now, w * 64 + static_cast<std::size_t>(bit));
      }
    }
    return kNever;
  }

 private:
  void mark(std::size_t i) {
    waiting_[static_cast<std::size_t>(who_[i].places[who_[i].piece].channel)][i / 64] |= std::uint64_t{1} << i % 64;
  }
  void serve(MemorySystem& m, Cycle now, std::size_t i) {
    Sending& s = who_[i];
    waiting_[static_cast<std::size_t>(s.places[s.piece].channel)][i / 64] &= ~(std::uint64_t{1} << i % 64);
    if (s.id < 0 && left_-- <= 0) return;
    if (!m.push(s, now)) return mark(i);
    s = m.request(draws_.address(capacity_, kRequest));
    turn_ = (i + 1) % who_.size();
    mark(i);
  }

  std::int64_t capacity_, left_;
  Draws draws_;
  std::vector<Sending> who_;
  std::vector<std::vector<std::uint64_t>> waiting_;  ///< by channel: bits of those whose next piece goes there
  std::size_t turn_ = 0;
};

/// Poisson arrivals at an unbounded queue.
class OpenLoop final : public Source {
 public:
  OpenLoop(const DramRecord& r, const Traffic& t)
      : capacity_(r.capacity),
        left_(t.requests),
        random_(t.pattern == Pattern::load_random64),
        draws_(t.seed),
        queues_(static_cast<std::size_t>(r.channels)) {
    gap_ = kRequest / (t.load * r.peak() * 1e-9) / r.tck_ns;
    clock_ = gap_ * draws_.exponential();
  }
  Cycle fill(MemorySystem& m, Cycle now) override {
    while (left_ > 0 && clock_ <= static_cast<double>(now)) {
      Sending s = m.request(random_ ? draws_.address(capacity_, kRequest) : at_);
      at_ = (at_ + kRequest) % capacity_;
      m.begin(s, now);
      queues_[random_ ? static_cast<std::size_t>(s.places[0].channel) : 0].push_back(s);
      clock_ += gap_ * draws_.exponential();
      --left_;
    }
    for (std::deque<Sending>& queue : queues_)
      while (!queue.empty() && m.push(queue.front(), now)) queue.pop_front();
    return left_ > 0 ? static_cast<Cycle>(std::ceil(clock_)) : kNever;
  }

 private:
  std::int64_t capacity_, left_, at_ = 0;
  bool random_;
  Draws draws_;
  double gap_ = 0, clock_ = 0;               ///< cycles
  std::vector<std::deque<Sending>> queues_;  ///< random: one a channel, which only its own requests wait for
};

std::unique_ptr<Source> make_source(const DramRecord& r, const Traffic& t, const MemorySystem& m) {
  switch (t.pattern) {
    case Pattern::idle_random:
    case Pattern::idle_rowhit:
      return std::make_unique<Idle>(r, t);
    case Pattern::stream:
    case Pattern::random_chunks:
      return std::make_unique<Streams>(r, t, m.map());
    case Pattern::random64:
      return std::make_unique<Random64>(r, t, m);
    case Pattern::load_stream:
    case Pattern::load_random64:
      break;
  }
  return std::make_unique<OpenLoop>(r, t);
}

}  // namespace

Outcome run(const DramRecord& r, const Traffic& t) {
  MemorySystem memory(r);
  const std::unique_ptr<Source> source = make_source(r, t, memory);
  std::int64_t wanted = t.requests;
  if (t.pattern == Pattern::stream || t.pattern == Pattern::random_chunks)
    wanted = t.bytes_per_stream / kRequest * t.streams;
  Cycle now = 0, arrival = 0;
  const bool idle = t.pattern == Pattern::idle_random || t.pattern == Pattern::idle_rowhit;
  bool asked = true;
  while (memory.finished() < wanted) {
    if (asked || arrival <= now) arrival = source->fill(memory, now);
    const Cycle next = memory.step(now);
    asked = memory.freed() || idle;
    now = memory.freed() ? now + 1 : std::max(now + 1, std::min(next, arrival));
  }
  Outcome out;
  out.requests = memory.finished();
  out.cycles = memory.last_data();
  const double cycles = static_cast<double>(out.cycles), requests = static_cast<double>(out.requests);
  const double bytes = requests * kRequest;
  out.efficiency = bytes / (cycles * r.tck_ns * 1e-9) / r.peak();
  out.latency_ns = memory.latency_sum() / requests * r.tck_ns;
  const ChannelCounts c = memory.counts();
  const DramEnergy e = energy_of(r);
  const double active = static_cast<double>(c.active_cycles);
  out.act = e.act * static_cast<double>(c.activates) / bytes;
  out.read = e.read * static_cast<double>(c.reads) / bytes;
  out.refresh = e.refresh * static_cast<double>(c.refreshes) / bytes;
  out.background =
      (e.active_cycle * active + e.idle_cycle * (cycles * r.channels * r.pseudo_channels - active)) / bytes;
  return out;
}

}  // namespace sojourn::dram
