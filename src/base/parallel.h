// Runs independent jobs on a fixed number of threads. Jobs write to their own slots, so results do not depend on the
// number of threads or on which thread took which job.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

namespace sojourn {

/// Calls job(i) for i in [0, count) in that order of start, at most `threads` at once.
inline void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& job) {
  std::atomic<std::size_t> next{0};
  auto work = [&] {
    for (std::size_t i = next++; i < count; i = next++) job(i);
  };
  std::vector<std::thread> pool;
  const int extra = static_cast<int>(std::min<std::size_t>(count, static_cast<std::size_t>(std::max(1, threads)))) - 1;
  for (int t = 0; t < extra; ++t) pool.emplace_back(work);
  work();
  for (std::thread& t : pool) t.join();
}

}  // namespace sojourn
