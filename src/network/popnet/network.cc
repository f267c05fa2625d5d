// Sources, events and the run; the pipeline itself is in router.cc.
//
//   time of the next step when nothing is in the network = step + round((next event - step) / period) * period
//
// Assumption, source: network.h.
#include "network/popnet/network.h"

#include <algorithm>
#include <cmath>
#include <queue>

#include "network/popnet/router.h"

namespace sojourn::popnet {
namespace {

constexpr double kSlack = 1e-8;     // of comparisons with the clock
constexpr std::size_t kFull = 100;  // flits of the emptiest source queue above which a source stops
constexpr double kWorthSkipping =
    1 << 20;  // steps without a change; fewer are gone through, for the order of EventHeap

/// Packets not yet injected: by time, of equal times the one that came last first.
struct Waiting {
  double time;
  std::uint64_t number;  ///< rises
  std::uint32_t packet;
  bool operator<(const Waiting& o) const { return time != o.time ? time > o.time : number < o.number; }
};
using WaitingQueue = std::priority_queue<Waiting>;

class Simulator final : public Surroundings {
 public:
  Simulator(const PopnetConfig& config, const std::vector<Packet>& packets, double limit)
      : config_(config), given_(packets), limit_(limit), draws_(config.seed), fabric_(config, draws_, *this) {
    const auto n = static_cast<std::size_t>(config.routers);
    pending_.resize(n);
    full_.assign(n, 0);
    live_.reserve(packets.size());
    for (const Packet& p : packets) {
      const auto id = static_cast<std::uint32_t>(live_.size());
      live_.push_back({p.ready, p.source, p.destination, p.flits, id, false});
    }
    for (std::uint32_t i = 0; i < packets.size(); ++i) announce(i);
    draws_.skip(static_cast<std::uint64_t>(config.routers) * static_cast<std::uint64_t>(config.flit_words));
    for (const double p : config.period)
      if (std::find(periods_.begin(), periods_.end(), p) == periods_.end()) periods_.push_back(p);
    std::sort(periods_.begin(), periods_.end());
  }

  Run run() {
    if (announced_.empty()) return std::move(run_);
    events_.put({announced_.top().time, 0, 0, 0, 0, 0, EventKind::ready});
    for (std::size_t p = 0; p < periods_.size(); ++p) put_step(0, p);
    while (!events_.empty() && now_ <= limit_) {
      const Event e = events_.take();
      now_ = e.time;
      if (e.kind == EventKind::step)
        step(e);
      else if (e.kind == EventKind::flit)
        fabric_.arrive(e.router, e.port, e.vc, {e.packet, e.flit});
      else if (e.kind == EventKind::credit)
        fabric_.credit(e.router, e.port, e.vc);
      else
        ready();
      if (finished_ == begun_ && !leap()) break;
      if (blocked_) break;
    }
    run_.flit_hops = fabric_.hops();
    if (run_.arrivals.size() < expected_) run_.ending = blocked_ ? Ending::blocked : Ending::limit;
    return std::move(run_);
  }

  // What the routers ask for.
  [[nodiscard]] int destination(std::uint32_t packet) const override { return live_[packet].destination; }
  [[nodiscard]] bool last(Flit f) const override { return f.index + 1 == live_[f.packet].flits; }
  void send(int router, int port, int vc, double delay, Flit f) override {
    events_.put({now_ + delay, f.index, f.packet, router, static_cast<std::int16_t>(port),
                 static_cast<std::uint8_t>(vc), EventKind::flit});
  }
  void send_credit(int router, int port, int vc) override {
    events_.put(
        {now_ + 1.0, 0, 0, router, static_cast<std::int16_t>(port), static_cast<std::uint8_t>(vc), EventKind::credit});
  }
  void left_source(int router, int vc) override {
    if (full_[static_cast<std::size_t>(router)] == 0 || fabric_.queued(router, 0, vc) >= kFull) return;
    full_[static_cast<std::size_t>(router)] = 0;
    inject(router);
  }
  void handed_over(Flit f) override {
    if (!last(f)) return;
    const Live p = live_[f.packet];
    run_.arrivals.push_back({p.origin, p.reply, p.ready, now_});
    ++finished_;
    const double from = given_[p.origin].reply_from;
    if (p.reply || from < 0) return;
    const auto id = static_cast<std::uint32_t>(live_.size());
    live_.push_back({std::max(now_, from), p.destination, p.source, 1, p.origin, true});
    announce(id);
    advance_ready(live_[id].ready);
  }

 private:
  struct Live {
    double ready;
    int source, destination;
    std::int64_t flits;
    std::uint32_t origin;
    bool reply;
  };

  void announce(std::uint32_t id) {
    const Live& p = live_[id];
    const Waiting w{p.ready, expected_++, id};
    announced_.push(w);
    pending_[static_cast<std::size_t>(p.source)].push(w);
  }
  void put_step(double time, std::size_t period) {
    events_.put({time, static_cast<std::int64_t>(period), 0, 0, 0, 0, EventKind::step});
  }

  void step(const Event& e) {
    const auto p = static_cast<std::size_t>(e.flit);
    ++run_.steps;
    put_step(e.time + periods_[p], p);
    const bool changed = fabric_.step(periods_[p]);
    if (changed || finished_ == begun_ || periods_.size() != 1) return;
    if (events_.size() == 1) {  // nothing on the way, nothing to come, nothing moved
      blocked_ = !resume();
      return;
    }
    // Waiting for a distant event: the steps until it change nothing.
    if (events_.top().kind != EventKind::step) return;
    const double next = events_.second_time();
    if (next - events_.top().time <= kWorthSkipping * periods_[p]) return;
    Event later = events_.take();
    later.time += std::floor((next - later.time) / periods_[p] - 1) * periods_[p];
    events_.put(later);
  }

  /// A packet is announced: its source takes what is ready.
  void ready() {
    inject(live_[announced_.top().packet].source);
    announced_.pop();
    if (!announced_.empty()) events_.put({announced_.top().time, 0, 0, 0, 0, 0, EventKind::ready});
    ++begun_;
  }

  /// A reply that is ready before the announced packet takes its event.
  void advance_ready(double time) {
    std::vector<Event> all;
    while (!events_.empty()) all.push_back(events_.take());
    bool found = false;
    for (Event& e : all) {
      if (e.kind == EventKind::ready && !found) {
        e.time = std::min(e.time, time);
        found = true;
      }
      events_.put(e);
    }
    if (!found) events_.put({time, 0, 0, 0, 0, 0, EventKind::ready});
  }

  void inject(int router) {
    WaitingQueue& queue = pending_[static_cast<std::size_t>(router)];
    while (full_[static_cast<std::size_t>(router)] == 0 && !queue.empty() && queue.top().time <= now_ + kSlack) {
      const std::uint32_t id = queue.top().packet;
      queue.pop();
      int vc = 0;
      for (int v = 1; v < config_.vcs; ++v)
        if (fabric_.queued(router, 0, v) < fabric_.queued(router, 0, vc)) vc = v;
      if (fabric_.queued(router, 0, vc) > kFull) full_[static_cast<std::size_t>(router)] = 1;
      fabric_.inject(router, vc, id, live_[id].flits);
      draws_.skip(static_cast<std::uint64_t>(live_[id].flits) * static_cast<std::uint64_t>(config_.flit_words));
    }
  }

  /// Sources that stopped and emptied their queues into their own router go on. popnet would leave them there for ever.
  bool resume() {
    bool any = false;
    for (int r = 0; r < config_.routers; ++r) {
      std::size_t least = fabric_.queued(r, 0, 0);
      for (int v = 1; v < config_.vcs; ++v) least = std::min(least, fabric_.queued(r, 0, v));
      if (full_[static_cast<std::size_t>(r)] == 0 || least >= kFull) continue;
      full_[static_cast<std::size_t>(r)] = 0;
      any = any || !pending_[static_cast<std::size_t>(r)].empty();
      inject(r);
    }
    return any;
  }

  /// Nothing is in the network: on to the next event. False: there is none.
  bool leap() {
    std::vector<Event> steps, others;
    while (!events_.empty()) {
      const Event e = events_.take();
      (e.kind == EventKind::step ? steps : others).push_back(e);
    }
    if (others.empty()) return false;
    for (const Event& e : others) events_.put(e);
    const double first = others.front().time;
    const bool ahead = steps.front().time < first;
    for (Event& e : steps) {
      const double period = periods_[static_cast<std::size_t>(e.flit)];
      if (e.time < first) e.time += std::round((first - e.time) / period) * period;
      events_.put(e);
    }
    if (ahead) now_ = steps.front().time;
    return true;
  }

  const PopnetConfig& config_;
  const std::vector<Packet>& given_;
  double limit_, now_ = 0;
  Draws draws_;
  Fabric fabric_;
  EventHeap events_;
  WaitingQueue announced_;             // of the whole network, for the clock
  std::vector<WaitingQueue> pending_;  // by source
  std::vector<std::uint8_t> full_;     // sources that stopped
  std::vector<Live> live_;
  std::vector<double> periods_;
  std::uint64_t expected_ = 0, begun_ = 0, finished_ = 0;
  bool blocked_ = false;
  Run run_;
};

}  // namespace

Run simulate(const PopnetConfig& config, const std::vector<Packet>& packets, double limit) {
  return Simulator(config, packets, limit).run();
}

}  // namespace sojourn::popnet
