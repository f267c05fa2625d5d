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
// ones. Cost: O(groups) for forced groups, O(blocks * replicas * hops) at most for the others; scratch is kept between
// calls.
//
// Speed, without another bit in the result (tests/unit/fast_map_test.cc has the plain form beside it): routes and the
// few different link rates are laid out flat once a call; and since a cost grows with its path term, which lies between
// 0 and the package's fullest link with this block on it, most blocks are decided by the other terms and walk no route.
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
    int replica = 0, chiplet = 0, set = 0;
    bool woken = false;
    double step_s = 0;  ///< of one tile
    double queue = 0, path = 0, bank = 0, stream = 0;
    double least = 0;  ///< cost with no path term
  };
  void load(const DirectoryView& directory, int layer, int expert, Entry& entry);
  void lay_out(const CostModel& cost);
  void settle(const CostModel& cost, const DirectoryView& directory);
  void map_expert(const CostModel& cost, const DirectoryView& directory, const LayerTask& task, int expert,
                  std::vector<Assignment>& out);
  void set_tokens(double bytes);
  [[nodiscard]] size_t choose(const CostModel& cost, int source, int tokens);
  [[nodiscard]] size_t pick();
  [[nodiscard]] double path_s(const CostModel& cost, const Candidate& c, int source) const;
  [[nodiscard]] double total(const Candidate& c, double path) const {
    return w_.queue * c.queue + w_.path * path + w_.bank * c.bank + w_.stream * c.stream;
  }
  void add_links(std::span<const int> route, const std::vector<double>& seconds);
  /// Links of dispatch and gather between chiplets s and c.
  [[nodiscard]] std::span<const int> both_ways(int s, int c) const {
    const size_t i = static_cast<size_t>(s) * chiplets_ + static_cast<size_t>(c);
    return {way_.data() + way_first_[i], way_.data() + way_first_[i + 1]};
  }

  MapWeights w_;
  std::uint32_t epoch_ = 0;
  std::vector<Entry> entries_;
  std::vector<int> next_, seen_, several_;
  std::vector<std::int64_t> flow_;  ///< [source][chiplet] tokens of forced groups
  std::vector<double> chiplet_s_, bank_s_, link_s_;
  std::vector<Candidate> candidates_;
  size_t chiplets_ = 0, slowest_ = 0;        ///< slowest_: index into rate_
  double fullest_ = 0;                       ///< largest of link_s_
  std::vector<int> way_, way_first_;         ///< see both_ways()
  std::vector<double> rate_;                 ///< the different link rates
  std::vector<int> rate_of_;                 ///< [link] index into rate_
  std::vector<double> tokens_s_, stream_s_;  ///< [rate] seconds of the present block's tokens, of a weight stream
};

}  // namespace sojourn
