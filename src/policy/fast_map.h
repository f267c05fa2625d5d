// Fast token-to-replica mapping: (37)-(39) and Algorithm 2 of HCRMap.
//
//   C_tok(g, r) = w_q C_queue + w_p C_path + w_b C_bank + w_s C_stream
//   C_queue   service queued at the replica's chiplet after this block, whole tiles of tokens
//   C_path    fullest link of the dispatch, gather and (for a replica not yet woken) weight routes after this block
//   C_bank    service of the backing bank set, with the stream of a replica not yet woken
//   C_stream  stream time S / BW of a replica not yet woken, else 0: a copy is not woken for one token
// Normalisation [R] (the paper says only "normalized"): `time` divides all four by one reference time, so it ranks by
// weighted seconds; `minmax` scales each term to 0..1 over the legal replicas of the group.
// Order [R]: experts with one live replica first (their choice is forced, so their load is known), then the others by
// descending tokens; tokens move in blocks of at most `block`, and every counter is updated after each block. A block
// that leaves a tile partly filled is followed by one that fills it: split experts waste no more of a tile than whole
// ones. Cost: O(groups) for forced groups, O(blocks * replicas * hops) for the others; scratch is kept between calls.
#pragma once
#include <cstdint>
#include <vector>

#include "policy/cost.h"

namespace sojourn {

struct MapWeights {
  double queue = 0.4, path = 0.2, bank = 0.2, stream = 0.2;
  int block = 64;
  bool minmax = false;
};

class FastMapper {
 public:
  explicit FastMapper(MapWeights weights = {}) : w_(weights) {}
  void map(const CostModel& cost, const DirectoryView& directory, const LayerTask& task, std::vector<Assignment>& out);
  /// Counters of the last layer, for tests and the explain view.
  [[nodiscard]] const std::vector<double>& chiplet_s() const { return chiplet_s_; }
  [[nodiscard]] const std::vector<double>& bank_s() const { return bank_s_; }
  [[nodiscard]] const std::vector<double>& link_s() const { return link_s_; }

 private:
  struct Entry {
    std::uint32_t epoch = 0;
    int replica = -1;  ///< the only replica; -1: several
    int chiplet = 0;
    int tokens = 0;
    int first = -1, last = -1;  ///< chain of deferred groups
  };
  struct Candidate {
    int replica = 0, chiplet = 0, set = 0, tokens = 0;
    bool woken = false;
    double queue = 0, path = 0, bank = 0, stream = 0;
  };
  void load(const DirectoryView& directory, int layer, int expert, Entry& entry);
  void settle(const CostModel& cost, const DirectoryView& directory);
  void map_expert(const CostModel& cost, const DirectoryView& directory, const LayerTask& task, int expert,
                  std::vector<Assignment>& out);
  void score(const CostModel& cost, Candidate& c, int source, int tokens) const;
  [[nodiscard]] size_t pick();
  void add_links(const CostModel& cost, std::span<const int> route, double bytes);

  MapWeights w_;
  std::uint32_t epoch_ = 0;
  std::vector<Entry> entries_;
  std::vector<int> next_, seen_, several_;
  std::vector<std::int64_t> flow_;  ///< [source][chiplet] tokens of forced groups
  std::vector<double> chiplet_s_, bank_s_, link_s_;
  std::vector<Candidate> candidates_;
};

}  // namespace sojourn
