// The queue of events of the popnet model: a binary heap on time alone, which therefore has an order of its own for
// events of the same time. popnet's runs depend on that order (a credit that arrives with a pipeline step may be seen
// by it or not), so the heap is spelled out here and does not vary with the standard library.
//
//   put: rise from the last place while the parent is later. take: the hole sinks to a leaf, each time along the
//   earlier child, the right one if equal; then the last event rises from there.
//
// Assumption: popnet built with GNU's library, whose std::priority_queue behaves like this. Source: Williams, Floyd
// 1964.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sojourn::popnet {

enum class EventKind : std::uint8_t { ready, step, flit, credit };

struct Event {
  double time = 0;
  std::int64_t flit = 0;  ///< index in its packet; step: index of the period
  std::uint32_t packet = 0;
  std::int32_t router = 0;
  std::int16_t port = 0;  ///< of at most kMostRouters in a graph
  std::uint8_t vc = 0;
  EventKind kind = EventKind::ready;
};

class EventHeap {
 public:
  [[nodiscard]] bool empty() const { return heap_.empty(); }
  [[nodiscard]] std::size_t size() const { return heap_.size(); }
  [[nodiscard]] const Event& top() const { return heap_.front(); }
  /// Of the event after the top one.
  [[nodiscard]] double second_time() const {
    return heap_.size() > 2 ? std::min(heap_[1].time, heap_[2].time) : heap_.back().time;
  }
  void put(const Event& e) {
    heap_.push_back(e);
    rise(heap_.size() - 1, 0, e);
  }
  Event take() {
    const Event first = heap_.front(), last = heap_.back();
    heap_.pop_back();
    const std::size_t n = heap_.size();
    if (n == 0) return first;
    std::size_t hole = 0;
    while (2 * hole + 2 < n) {
      std::size_t child = 2 * hole + 2;
      if (heap_[child].time > heap_[child - 1].time) --child;
      heap_[hole] = heap_[child];
      hole = child;
    }
    if (2 * hole + 1 < n) {  // an only child
      heap_[hole] = heap_[2 * hole + 1];
      hole = 2 * hole + 1;
    }
    rise(hole, 0, last);
    return first;
  }

 private:
  void rise(std::size_t hole, std::size_t top, const Event& e) {
    while (hole > top) {
      const std::size_t parent = (hole - 1) / 2;
      if (!(heap_[parent].time > e.time)) break;
      heap_[hole] = heap_[parent];
      hole = parent;
    }
    heap_[hole] = e;
  }
  std::vector<Event> heap_;
};

}  // namespace sojourn::popnet
