// The event queue: a total order on (time, sequence), so that a run never depends on anything but its inputs.
// A 4-ary implicit heap on plain 24-byte events: fewer cache lines a step than a binary heap.
//
// Lanes. A first-come-first-served resource schedules its events in time order, so all but its next one can wait in a
// plain queue: the heap then holds one event a resource instead of every chunk under way. The order of events is that
// of (time, sequence) whichever lane they use; an event earlier than its lane's last goes to the heap directly.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "sojourn/units.h"

namespace sojourn {

struct Event {
  Ps time = 0;
  std::uint32_t sequence = 0;  ///< order of scheduling; breaks ties
  std::uint16_t kind = 0;
  std::uint16_t small = 0;  ///< handler's use
  std::uint32_t index = 0;  ///< handler's use
  std::uint32_t lane = 0xFFFFFFFF;
};

class EventQueue {
 public:
  static constexpr std::uint32_t kNoLane = 0xFFFFFFFF;

  void push(Ps time, std::uint16_t kind, std::uint16_t small, std::uint32_t index) {
    insert({time, sequence_++, kind, small, index, kNoLane});
  }
  void push_lane(std::uint32_t lane, Ps time, std::uint16_t kind, std::uint16_t small, std::uint32_t index) {
    if (lane >= lanes_.size()) lanes_.resize(lane + 1);
    Lane& l = lanes_[lane];
    const Event event{time, sequence_++, kind, small, index, lane};
    if (!l.in_heap) {
      l.in_heap = true;
      l.last = time;
      insert(event);
    } else if (time >= l.last) {
      l.last = time;
      l.append(event);
      ++waiting_;
    } else {
      insert({time, event.sequence, kind, small, index, kNoLane});
    }
  }
  Event pop() {
    const Event top = heap_[0];
    if (top.lane != kNoLane) {
      Lane& l = lanes_[top.lane];
      if (l.count > 0) {
        --waiting_;
        sift_down(l.take());
        return top;
      }
      l.in_heap = false;
    }
    const Event last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sift_down(last);
    return top;
  }
  [[nodiscard]] bool empty() const { return heap_.empty(); }
  [[nodiscard]] const Event& top() const { return heap_[0]; }
  [[nodiscard]] std::size_t size() const { return heap_.size() + waiting_; }

 private:
  struct Lane {
    std::vector<Event> ring;  ///< size a power of two
    std::size_t head = 0, count = 0;
    Ps last = 0;
    bool in_heap = false;
    void append(const Event& e) {
      if (count == ring.size()) grow();
      ring[(head + count++) & (ring.size() - 1)] = e;
    }
    Event take() {
      const Event e = ring[head];
      head = (head + 1) & (ring.size() - 1);
      --count;
      return e;
    }
    void grow() {
      std::vector<Event> larger(ring.empty() ? 8 : 2 * ring.size());
      for (std::size_t i = 0; i < count; ++i) larger[i] = ring[(head + i) & (ring.size() - 1)];
      ring = std::move(larger);
      head = 0;
    }
  };
  void insert(const Event& event) {
    std::size_t hole = heap_.size();
    heap_.push_back({});
    while (hole > 0) {
      const std::size_t parent = (hole - 1) / 4;
      if (!before(event, heap_[parent])) break;
      heap_[hole] = heap_[parent];
      hole = parent;
    }
    heap_[hole] = event;
  }
  /// Puts `event` in the place of the root.
  void sift_down(const Event& event) {
    const std::size_t n = heap_.size();
    std::size_t hole = 0;
    for (;;) {
      const std::size_t first = 4 * hole + 1;
      if (first >= n) break;
      std::size_t best = first;
      const std::size_t end = first + 4 < n ? first + 4 : n;
      for (std::size_t child = first + 1; child < end; ++child)
        if (before(heap_[child], heap_[best])) best = child;
      if (!before(heap_[best], event)) break;
      heap_[hole] = heap_[best];
      hole = best;
    }
    heap_[hole] = event;
  }
  // Sequence numbers wrap after 2^32 events; the signed difference keeps the order of events that coexist.
  static bool before(const Event& a, const Event& b) {
    if (a.time != b.time) return a.time < b.time;
    return static_cast<std::int32_t>(a.sequence - b.sequence) < 0;
  }
  std::vector<Event> heap_;
  std::vector<Lane> lanes_;
  std::size_t waiting_ = 0;  ///< events in lanes, the heap's apart
  std::uint32_t sequence_ = 0;
};

}  // namespace sojourn
