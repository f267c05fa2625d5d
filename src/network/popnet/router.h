// The routers of a popnet network and their pipeline; what happens in a step is stated in network.h.
//
//   work of a step = the VCs that hold flits, found by one bit each, in routers that hold flits
//
// Assumption, source: network.h.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "network/popnet/config.h"
#include "network/popnet/draws.h"
#include "network/popnet/event_heap.h"

namespace sojourn::popnet {

struct Flit {
  std::uint32_t packet = 0;
  std::int64_t index = 0;  ///< 0 is the head
};

/// What a router needs of the run around it.
class Surroundings {
 public:
  virtual ~Surroundings() = default;
  [[nodiscard]] virtual int destination(std::uint32_t packet) const = 0;
  [[nodiscard]] virtual bool last(Flit f) const = 0;
  virtual void send(int router, int port, int vc, double delay, Flit f) = 0;
  virtual void send_credit(int router, int port, int vc) = 0;
  virtual void left_source(int router, int vc) = 0;
  virtual void handed_over(Flit f) = 0;
};

/// First in, first out; takes no memory for what has left.
template <class T>
class Fifo {
 public:
  [[nodiscard]] bool empty() const { return first_ == items_.size(); }
  [[nodiscard]] std::size_t size() const { return items_.size() - first_; }
  [[nodiscard]] T& front() { return items_[first_]; }
  [[nodiscard]] const T& front() const { return items_[first_]; }
  [[nodiscard]] T& back() { return items_.back(); }
  void push(const T& x) { items_.push_back(x); }
  void pop() {
    ++first_;
    if (first_ == items_.size()) {
      items_.clear();
      first_ = 0;
    } else if (first_ >= 64 && first_ * 2 > items_.size()) {
      items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
  }

 private:
  std::vector<T> items_;
  std::size_t first_ = 0;
};

class Fabric {
 public:
  Fabric(const PopnetConfig& config, Draws& draws, Surroundings& around);

  void inject(int router, int vc, std::uint32_t packet, std::int64_t flits);
  void arrive(int router, int port, int vc, Flit f);
  void credit(int router, int port, int vc) { ++outputs_[channel(router, port, vc)].credits; }
  /// Flits in an input queue.
  [[nodiscard]] std::size_t queued(int router, int port, int vc) const {
    return static_cast<std::size_t>(inputs_[channel(router, port, vc)].flits);
  }
  /// A pipeline step of every router of this period. False: nothing changed.
  bool step(double period);
  [[nodiscard]] std::int64_t hops() const { return hops_; }

 private:
  enum class State : std::uint8_t { idle, route, wait_vc, wait_switch, cross, home };
  struct Stretch {  ///< flits of one packet
    std::uint32_t packet;
    std::int64_t first, count;
  };
  struct Input {
    Fifo<Stretch> queue;
    std::int64_t flits = 0;
    State state = State::idle;
    int out_port = 0, out_vc = 0;
  };
  struct Output {
    int credits = 0;
    bool taken = false;
  };
  struct Leaving {
    Flit flit;
    int vc;
  };

  [[nodiscard]] std::size_t channel(int router, int port, int vc) const {
    return (static_cast<std::size_t>(config_.first_port[static_cast<std::size_t>(router)] + port)) *
               static_cast<std::size_t>(config_.vcs) +
           static_cast<std::size_t>(vc);
  }
  [[nodiscard]] std::size_t port_at(int router, int port) const {
    return static_cast<std::size_t>(config_.first_port[static_cast<std::size_t>(router)] + port);
  }
  [[nodiscard]] std::size_t out_channel(const Input& in) const {
    return base_ + static_cast<std::size_t>(in.out_port * config_.vcs + in.out_vc);
  }
  [[nodiscard]] Flit front(const Input& in) const { return {in.queue.front().packet, in.queue.front().first}; }
  /// The oldest flit leaves an input queue of the router at work.
  Flit take(int local);
  void occupy(int router, int local);
  void add_work(int router, int flits);
  /// Calls f(local, port, vc) for each VC of the router at work that holds flits, by rising port and VC.
  template <class F>
  void each_occupied(F&& f);

  void send_flits();
  void to_output_buffers();
  void allocate_switch();
  void allocate_vcs();
  void routes_and_ejection();
  void route(Input& in, int destination);

  const PopnetConfig& config_;
  Draws& draws_;
  Surroundings& around_;
  std::vector<Input> inputs_;            // by channel
  std::vector<Output> outputs_;          // by channel
  std::vector<Fifo<Leaving>> leaving_;   // by port
  std::vector<std::int64_t> work_;       // flits in a router
  std::vector<int> buffered_;            // of these in output buffers
  std::vector<std::uint64_t> active_;    // bits: routers with work
  std::vector<std::uint64_t> occupied_;  // bits: input VCs that hold flits; first_word_[r] on
  std::vector<std::size_t> first_word_;
  int here_ = 0;                                // the router at work
  std::size_t base_ = 0, port0_ = 0;            // its first channel and port
  std::vector<std::uint16_t> port_of_, vc_of_;  // of a channel counted from base_
  bool changed_ = false;
  std::int64_t hops_ = 0;
  struct Request {
    int key, local;
  };
  std::vector<Request> requests_;
};

}  // namespace sojourn::popnet
