// Rules that share an expert's tokens among its live replicas, for policies without a mapper of their own.
//
//   nearest       a group to the replica with fewest hops from its source; ties to the chiplet with fewer tokens so far
//   even          every group over all replicas of its expert in equal parts (what EPLB's load model assumes); the odd
//                 tokens go round
//   least-loaded  experts with one replica first, then the others by descending tokens; blocks of one tile of tokens,
//   each
//                 to the replica whose chiplet has fewest tokens so far. Blocks are tiles because a split expert would
//                 else pay for more of them than a whole one
//
// Loads are tokens: no rule here knows banks, tiers or links. Where a rule fixes only how many tokens a replica gets,
// its tokens come from the nearest sources (fill_quotas). Every tie goes to the older replica, then to the lower group.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "policy/cost.h"
#include "sojourn/policy.h"

namespace sojourn {

enum class Dispatch { nearest, even, least_loaded };
[[nodiscard]] Dispatch dispatch_of(const std::string& word);
/// The parameter `dispatch` with this default.
[[nodiscard]] Param dispatch_param(const char* default_word, const char* source);

/// Indices of a layer's groups, expert by expert.
class ExpertGroups {
 public:
  void build(const LayerTask& task, int experts);
  [[nodiscard]] std::span<const int> of(int e) const {
    const auto a = static_cast<size_t>(first_[static_cast<size_t>(e)]);
    return std::span(index_).subspan(a, static_cast<size_t>(first_[static_cast<size_t>(e) + 1]) - a);
  }
  [[nodiscard]] int tokens(int e) const { return tokens_[static_cast<size_t>(e)]; }
  [[nodiscard]] std::span<const int> tokens() const { return tokens_; }

 private:
  std::vector<int> first_, index_, tokens_;
};

/// Sends `mine` (groups of one expert) to `replicas`, quota[i] tokens to the i-th, sources near a replica first. The
/// quotas sum to the groups' tokens.
void fill_quotas(const CostModel& cost, const DirectoryView& directory, std::span<const TokenGroup> groups,
                 std::span<const int> mine, std::span<const int> replicas, std::span<const int> quota,
                 std::vector<Assignment>& out);

class Dispatcher {
 public:
  explicit Dispatcher(Dispatch rule) : rule_(rule) {}
  void assign(const CostModel& cost, const DirectoryView& directory, const LayerTask& task,
              std::vector<Assignment>& out);

 private:
  void nearest(const CostModel& cost, const DirectoryView& directory, const LayerTask& task, int e,
               std::vector<Assignment>& out);
  void even(const DirectoryView& directory, const LayerTask& task, int e, std::vector<Assignment>& out);
  void level(const CostModel& cost, const DirectoryView& directory, int layer);
  Dispatch rule_;
  ExpertGroups groups_;
  static constexpr int kRounds = 4;
  std::vector<int> several_, first_, quota_, dealt_, held_;  ///< held_: [chiplet] tokens
};

}  // namespace sojourn
