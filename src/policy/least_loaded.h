// Least-loaded assignment of LLEP (arXiv 2601.17111, Algorithms 2 and 3) over the replicas there are.
//
//   trigger   native loads (every expert on its first replica) are kept while max / mean <= lambda
//   cap       m_alpha = ceil(alpha total / P) tokens a device
//   native    experts by descending tokens; each takes on its native device what the cap leaves
//   spill     the rest to its least loaded other device (assigned + native load not handled yet), as much as the cap
//             leaves there; a piece below `chunk` that is not the whole rest is skipped; if no device has room, the
//             rest is forced on the least loaded one
//
// In LLEP any device may take any expert: the weights are moved on the fly, within the layer. Here tokens go to live
// replicas only, so spare copies take the spill [R], with two consequences:
//   * an expert with one replica cannot spill: its load counts as assigned before the others start;
//   * the greedy spill can end above the cap though the replicas would allow it. The excess is then pushed on along
//   chains
//     of shared experts (device a has tokens of e, device b another replica of e, ...) to devices below the cap, which
//     is max-flow by shortest augmenting paths: with chunk 1 no device ends above the cap unless every assignment to
//     these replicas has one that does. A replica without tokens is started by a push of at least `chunk` only.
// Ties: lower expert, older replica, lower device.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace sojourn {

struct LeastLoadedRule {
  double alpha = 1.0;   ///< capacity factor
  double lambda = 1.3;  ///< trigger
  int chunk = 16;       ///< m: least tokens worth a spill
};

/// Which devices hold which expert, native first: replicas first[e] to first[e + 1] - 1.
struct ReplicaTable {
  std::vector<int> first{0}, device;
  void add_expert(std::span<const int> devices) {
    device.insert(device.end(), devices.begin(), devices.end());
    first.push_back(static_cast<int>(device.size()));
  }
  void clear() {
    first.assign(1, 0);
    device.clear();
  }
  [[nodiscard]] int experts() const { return static_cast<int>(first.size()) - 1; }
};

class LeastLoaded {
 public:
  /// quota[i]: tokens of replica i of the table. Every expert has a replica; tokens are by expert.
  void solve(const LeastLoadedRule& rule, int devices, const ReplicaTable& table, std::span<const int> tokens,
             std::vector<int>& quota);
  [[nodiscard]] std::span<const std::int64_t> load() const { return load_; }  ///< [device] after solve()
  [[nodiscard]] std::int64_t cap() const { return cap_; }
  [[nodiscard]] bool triggered() const { return triggered_; }

 private:
  void spill(const LeastLoadedRule& rule, const ReplicaTable& table, int e, int rest, std::vector<int>& quota);
  [[nodiscard]] bool push(int chunk, const ReplicaTable& table, int from, std::vector<int>& quota);
  [[nodiscard]] std::int64_t& load_of(const ReplicaTable& t, int replica) {
    return load_[static_cast<std::size_t>(t.device[static_cast<std::size_t>(replica)])];
  }
  std::int64_t cap_ = 0;
  bool triggered_ = false;
  std::vector<std::int64_t> load_;   ///< assigned + native load of experts not handled yet
  std::vector<std::int64_t> fixed_;  ///< assigned alone
  struct Held {
    int expert, replica;
  };
  std::vector<std::vector<Held>> held_;  ///< [device] its replicas of experts that may spill, in the order of order_
  std::vector<int> order_, queue_, via_from_, via_to_;
  std::vector<std::uint8_t> used_;
};

}  // namespace sojourn
