// A second thread that does the other half of a piece of work, many times, with little delay.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

namespace sojourn::flit {

class Pair {
 public:
  /// `other_half` is what the second thread does each time. Starts the thread on first use.
  explicit Pair(std::function<void()> other_half = {}) : other_half_(std::move(other_half)) {}
  ~Pair() {
    if (!thread_.joinable()) return;
    stop_ = true;
    asked_.fetch_add(1, std::memory_order_release);
    asked_.notify_one();
    thread_.join();
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  /// Runs `half` here and the other half on the second thread; returns when both are done.
  template <class Half>
  void run(const Half& half) {
    if (!thread_.joinable()) thread_ = std::thread([this] { serve(); });
    const std::uint64_t turn = asked_.fetch_add(1, std::memory_order_release) + 1;
    asked_.notify_one();
    half();
    wait(done_, [turn](std::uint64_t v) { return v == turn; });
  }

 private:
  /// Spins for a while, for turns follow closely; then sleeps, for the machine may have better to do.
  template <class Ready>
  static std::uint64_t wait(std::atomic<std::uint64_t>& value, const Ready& ready) {
    for (int i = 0; i < 4000; ++i)
      if (const std::uint64_t v = value.load(std::memory_order_acquire); ready(v)) return v;
    for (;;) {
      const std::uint64_t v = value.load(std::memory_order_acquire);
      if (ready(v)) return v;
      value.wait(v, std::memory_order_acquire);
    }
  }
  void serve() {
    for (std::uint64_t seen = 0;;) {
      seen = wait(asked_, [seen](std::uint64_t v) { return v != seen; });
      if (stop_) return;
      other_half_();
      done_.store(seen, std::memory_order_release);
      done_.notify_one();
    }
  }
  std::function<void()> other_half_;
  std::atomic<std::uint64_t> asked_{0}, done_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace sojourn::flit
