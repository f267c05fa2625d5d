// THE event loop. Everything that happens in a simulation is an event popped here, in (time, sequence) order; handlers
// schedule further events and never look at a clock of their own.
#pragma once
#include <cassert>
#include <cstdint>
#include <limits>

#include "engine/event_queue.h"

namespace sojourn {

inline constexpr Ps kPsNever = std::numeric_limits<Ps>::max();

class Engine {
 public:
  [[nodiscard]] Ps now() const { return now_; }
  [[nodiscard]] std::int64_t events() const { return events_; }
  /// Time of the next event, or just past the end of run_until: a handler may run ahead on its own until then.
  [[nodiscard]] Ps next_time() const {
    return queue_.empty() || queue_.top().time > horizon_ ? horizon_ : queue_.top().time;
  }
  void schedule(Ps time, std::uint16_t kind, std::uint32_t index, std::uint16_t small = 0) {
    assert(time >= now_);
    queue_.push(time, kind, small, index);
  }
  /// The same, for a resource whose events are scheduled in time order (see event_queue.h); a lane is any small number
  /// that only this resource and kind of event uses.
  void schedule_in_lane(std::uint32_t lane, Ps time, std::uint16_t kind, std::uint32_t index) {
    assert(time >= now_);
    queue_.push_lane(lane, time, kind, 0, index);
  }
  /// Runs handler.on_event(event) until handler.finished() or no event is left.
  template <class Handler>
  void run(Handler& handler) {
    while (!handler.finished() && !queue_.empty()) step(handler);
  }
  /// Runs every event up to and including time `until`, then stands at `until`.
  template <class Handler>
  void run_until(Handler& handler, Ps until) {
    horizon_ = until + 1;
    while (!queue_.empty() && queue_.top().time <= until) step(handler);
    horizon_ = kPsNever;
    now_ = until;
  }

 private:
  template <class Handler>
  void step(Handler& handler) {
    const Event event = queue_.pop();
    now_ = event.time;
    ++events_;
    handler.on_event(event);
  }
  EventQueue queue_;
  Ps now_ = 0, horizon_ = kPsNever;
  std::int64_t events_ = 0;
};

/// A work-conserving first-come-first-served server, kept as the time at which it is next free. Because requests are
/// made in event order, reserving at the time of the request is exact and costs no event.
struct FifoServer {
  Ps free_at = 0;
  struct Slot {
    Ps start, end;
  };
  Slot reserve(Ps now, Ps duration) {
    const Ps start = now > free_at ? now : free_at;
    free_at = start + duration;
    return {start, free_at};
  }
};

}  // namespace sojourn
