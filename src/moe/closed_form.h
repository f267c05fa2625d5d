// The closed-form model: equations (5)-(15) of HCRMap as printed, store and forward, for one layer and window.
//
//   (7)  T_h^route = sum_{u in P_h} (lambda_u + D_h / B_u)
//   (8)  T^net  = max( max_u L_u / B_u, max_h T_h^route )
//   (10) T^bank = [Q > 0] Lat + Q / BW      (12) T^mem = max( T^bank, max_u L_{u,mem} / B_u, max_h in mem T_h^route )
//   (13) T_r^comp = Ops_r / (k Pi eta_r)    (15) T = gate + disp + queue + max(comp, mem) + gath + combine
//
// Readings: T^disp and T^gath are (8) restricted to their class; replicas of a chiplet take turns on all its cores
// (k = N_c^core), so T^queue is the fullest chiplet's sum of T_r^comp less the longest single one; a striped replica
// loads its banks evenly, so a bank set of n banks serves like one bank of their summed bandwidth.
#pragma once
#include <algorithm>
#include <span>
#include <vector>

#include "moe/executor.h"

namespace sojourn {

/// (8) for one traffic class alone: what its requests load each link with, and its longest route (7).
class ClassLoad {
 public:
  explicit ClassLoad(const Package& package) : package_(package), link_(package.links.size()) {}
  void request(std::span<const int> path, Bytes bytes);
  [[nodiscard]] Bytes on(std::size_t link) const { return link_[link]; }
  [[nodiscard]] Ps longest_route() const { return longest_route_; }
  [[nodiscard]] Ps service() const;  ///< max_u L_u / B_u
  [[nodiscard]] Ps time() const { return std::max(service(), longest_route_); }

 private:
  const Package& package_;
  std::vector<Bytes> link_;
  Ps longest_route_ = 0;
};

struct ClosedTerms {
  Ps net = 0, bank = 0, mem = 0, comp = 0, queue = 0, disp = 0, gath = 0, combine = 0;
};

/// Migration bytes charged to this layer (an even share of the window's).
struct MigrationShare {
  std::vector<Bytes> link, bank_set;
};

/// Evaluates one layer starting at `now` and books its traffic in the ledger. stages[memory] is what memory adds
/// beyond compute, so that the stages sum to the latency.
[[nodiscard]] LayerOutcome closed_layer(const Package& package, const LayerWork& work, const MigrationShare& migration,
                                        Ps now, Ledger& ledger, ClosedTerms* terms = nullptr);

}  // namespace sojourn
