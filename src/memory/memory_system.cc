// Routes requests to channels and joins their pieces.
//
// Equations: a request is done when the data of its last piece has arrived.
// Assumptions and source: traffic.h.
#include "memory/memory_system.h"

#include <algorithm>
#include <limits>

namespace sojourn::dram {

MemorySystem::MemorySystem(const DramRecord& r)
    : map_(r), pieces_(std::max(1, kRequest / r.transaction_bytes)), piece_bytes_(r.transaction_bytes) {
  for (int c = 0; c < r.channels; ++c) channels_.push_back(make_channel(r));
  next_.assign(channels_.size(), 0);
}

Sending MemorySystem::request(std::int64_t address) const {
  Sending s;
  for (int i = 0; i < pieces_; ++i) s.places[i] = map_.place(address + static_cast<std::int64_t>(i) * piece_bytes_);
  return s;
}

void MemorySystem::begin(Sending& s, Cycle since) {
  s.id = first_ + static_cast<std::int64_t>(open_.size());
  open_.push_back({since, 0, pieces_});
}

bool MemorySystem::push(Sending& s, Cycle now) {
  for (; s.piece < pieces_; ++s.piece) {
    const Place& p = s.places[s.piece];
    Channel& c = *channels_[p.channel];
    if (!c.room()) return false;
    if (s.id < 0) begin(s, now);
    c.push(now, s.id, p);
    next_[p.channel] = now;
  }
  return true;
}

Cycle MemorySystem::step(Cycle now) {
  Cycle next = std::numeric_limits<Cycle>::max();
  done_.clear();
  freed_ = false;
  for (std::size_t c = 0; c < channels_.size(); ++c) {
    if (next_[c] <= now) {
      const bool full = !channels_[c]->room();
      next_[c] = channels_[c]->step(now, done_);
      freed_ = freed_ || (full && channels_[c]->room());
    }
    next = std::min(next, next_[c]);
  }
  for (const Done& d : done_) {
    Open& o = open_[static_cast<std::size_t>(d.id - first_)];
    o.end = std::max(o.end, d.data_end);
    if (--o.left > 0) continue;
    ++finished_;
    latency_ += static_cast<double>(o.end - o.since);
    last_ = std::max(last_, o.end);
  }
  while (!open_.empty() && open_.front().left == 0) {
    open_.pop_front();
    ++first_;
  }
  return next;
}

ChannelCounts MemorySystem::counts() const {
  ChannelCounts sum;
  for (const auto& c : channels_) {
    const ChannelCounts one = c->counts(last_);
    sum.activates += one.activates;
    sum.reads += one.reads;
    sum.precharges += one.precharges;
    sum.refreshes += one.refreshes;
    sum.active_cycles += one.active_cycles;
  }
  return sum;
}

}  // namespace sojourn::dram
