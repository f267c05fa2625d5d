// The channels of one memory and the requests inside them.
#pragma once
#include <deque>
#include <memory>
#include <vector>

#include "memory/channel.h"

namespace sojourn::dram {

/// One 64-byte request on its way into the queues, piece by piece.
struct Sending {
  std::int64_t id = -1;  ///< -1: nothing was accepted yet
  int piece = 0;
  Place places[2];
};

class MemorySystem {
 public:
  static constexpr int kRequest = 64;

  explicit MemorySystem(const DramRecord& record);
  [[nodiscard]] const AddressMap& map() const { return map_; }
  [[nodiscard]] bool room(int channel) const { return channels_[channel]->room(); }
  [[nodiscard]] Sending request(std::int64_t address) const;
  /// Gives the request its identity: latency counts from `since`.
  void begin(Sending& s, Cycle since);
  /// Sends what the channels take, in order; true when all of it was accepted. A request without identity begins when
  /// its first piece is accepted.
  bool push(Sending& s, Cycle now);
  /// Runs the channels at `now`; returns the next cycle in which one of them can do something.
  Cycle step(Cycle now);
  /// A place in some queue came free in the last step.
  [[nodiscard]] bool freed() const { return freed_; }
  [[nodiscard]] std::int64_t finished() const { return finished_; }
  [[nodiscard]] Cycle last_data() const { return last_; }
  [[nodiscard]] double latency_sum() const { return latency_; }
  [[nodiscard]] ChannelCounts counts() const;

 private:
  struct Open {
    Cycle since = 0, end = 0;
    int left = 0;
  };
  AddressMap map_;
  int pieces_, piece_bytes_;
  std::vector<std::unique_ptr<Channel>> channels_;
  std::vector<Cycle> next_;
  std::vector<Done> done_;
  std::deque<Open> open_;
  std::int64_t first_ = 0, finished_ = 0;
  bool freed_ = true;
  Cycle last_ = 0;
  double latency_ = 0;
};

}  // namespace sojourn::dram
