// The controller with a frozen Q-network; see dqn.h.
#include "policy/dqn.h"

#include <cassert>

namespace sojourn {
namespace {

class Dqn final : public SlowController {
 public:
  Dqn(const SlowSettings& settings, std::shared_ptr<const Mlp> network, double margin)
      : scan_(settings), network_(std::move(network)), margin_(margin) {
    assert(network_ != nullptr && network_->inputs() == kSlowFeatures);
  }
  void propose(const SlowSettings&, const CostModel& cost, const PolicyView& view, SlowState& state,
               std::vector<SlowCandidate>& out) override {
    scan_.propose(cost, view, state, out);
  }
  void score(const SlowState& state, std::vector<SlowCandidate>& candidates) override {
    const float idle = network_->score(state.no_op);
    for (SlowCandidate& c : candidates) c.score = static_cast<double>(network_->score(c.features) - idle) - margin_;
  }

 private:
  DqnScan scan_;
  std::shared_ptr<const Mlp> network_;
  double margin_;
};

}  // namespace

std::unique_ptr<SlowController> make_dqn(const SlowSettings& settings, std::shared_ptr<const Mlp> network,
                                         double margin) {
  return std::make_unique<Dqn>(settings, std::move(network), margin);
}

}  // namespace sojourn
