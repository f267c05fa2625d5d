// makespan: the strongest dispatcher we can write over the best known layout, as an upper rival (in the spirit of
// TEMPO, arXiv 2608.13057; dispatch: policy/makespan.h). All [R].
//
// Dispatch is exact-load and knows tiers, banks and links; the layout is somebody else's:
//   layout = eplb, llep, hcrmap   as that policy places it, within the same bytes and copies, and kept up by that
//                                 policy's own slow loop (hcrmap: the amortised rule), at most `updates` a window
//   layout = auto                 the one that serves `rehearsals` warm-up layers soonest on the event engine
//                                 (rehearsal.h) under this dispatch; ties to the earlier in the order above
// TEMPO keeps its replicas fixed within a step and leaves their placement to the serving system, so nothing of its
// result is lost by taking the best layout there is.
#include "policy/makespan.h"

#include <algorithm>

#include "policy/policies.h"
#include "policy/rehearsal.h"

namespace sojourn {
namespace {

struct Settings {
  std::string layout;
  int updates, rehearsals;
  MakespanSettings dispatch;
};

class MakespanPolicy final : public Policy {
 public:
  explicit MakespanPolicy(const Settings& s) : s_(s), dispatcher_(s.dispatch) {}

  void place(const PlacementTask& task, std::vector<PlacedReplica>& out) override {
    const std::vector<std::string> names =
        s_.layout == "auto" ? std::vector<std::string>{"eplb", "llep", "hcrmap"} : std::vector<std::string>{s_.layout};
    double least = 0;
    for (const std::string& name : names) {
      std::unique_ptr<Policy> layout = layout_of(name);
      std::vector<PlacedReplica> placed;
      layout->place(task, placed);
      const double time = names.size() > 1 ? rehearse(task, placed) : 0.0;
      if (layout_ != nullptr && time >= least) continue;
      least = time;
      layout_ = std::move(layout);
      out = std::move(placed);
    }
  }

  void decide(const PolicyView& view, std::vector<Action>& out) override {
    if (layout_ != nullptr && s_.updates > 0) layout_->decide(view, out);
  }

  void assign(const PolicyView& view, const LayerTask& task, std::vector<Assignment>& out) override {
    if (!cost_.made_for(view.package, view.model)) cost_ = CostModel(*view.package, *view.model);
    dispatcher_.assign(cost_, *view.directory, task, out);
  }

  [[nodiscard]] ResidencyLimits limits(ResidencyLimits common) const override {
    common.updates_max = s_.updates;
    return common;
  }

 private:
  [[nodiscard]] std::unique_ptr<Policy> layout_of(const std::string& name) const {
    if (name == "hcrmap") return make_policy(name, {{"slow", std::string("amortised")}});
    return make_policy(name, {{"updates", std::int64_t{s_.updates}}});
  }

  /// Seconds of some layers in some warm-up windows.
  [[nodiscard]] double rehearse(const PlacementTask& task, const std::vector<PlacedReplica>& placed) const {
    const Profile& p = *task.profile;
    const CostModel cost(*task.package, *task.model);
    MakespanDispatcher dispatcher(s_.dispatch);
    const Rehearsal rehearsal(*task.package, *task.model, task.stages_in_turn);
    const auto mapper = [&](const DirectoryView& directory, const LayerTask& layer, std::vector<Assignment>& out) {
      dispatcher.assign(cost, directory, layer, out);
    };
    std::vector<PlacedReplica> mine;
    double sum = 0;
    for (int i = 0; i < s_.rehearsals; ++i) {
      const int l = static_cast<int>((2 * static_cast<std::int64_t>(i) + 1) * p.layers / (2 * s_.rehearsals));
      mine.clear();
      for (const PlacedReplica& r : placed)
        if (r.layer == l) mine.push_back({0, r.expert, r.at, r.slice});
      const auto at = static_cast<size_t>(l) * static_cast<size_t>(p.experts);
      const auto tokens = p.sample.empty() || p.windows == 0
                              ? std::span(p.demand).subspan(at, static_cast<size_t>(p.experts))
                              : p.window(l, i % p.windows);
      sum += rehearsal.time(mine, tokens, mapper);
    }
    return sum;
  }

  Settings s_;
  CostModel cost_;
  MakespanDispatcher dispatcher_;
  std::unique_ptr<Policy> layout_;
};

}  // namespace

void register_policies_makespan(PolicyRegistry& registry) {
  using I = std::int64_t;
  const MakespanSettings d;
  constexpr int kMostWork = 1'000'000;  // seconds a window of the largest presets; a call cannot be interrupted
  registry.add(
      {"makespan",
       "exact loads shared so that the fullest chiplet, bank set or link is done soonest (fixed-charge makespan)",
       {{"layout",
         Unit::none,
         std::string("auto"),
         -1e300,
         1e300,
         {"auto", "eplb", "llep", "hcrmap"},
         "whose layout and slow loop; auto: the best in rehearsal",
         "[R]"},
        {"updates", Unit::none, I{8}, 0, 4096, {}, "most updates a window (its own U^max)", "[R], as eplb and llep"},
        {"rehearsals", Unit::none, I{8}, 1, 1024, {}, "warm-up layers run for every layout", "[R]"},
        {"evaluations", Unit::none, I{d.evaluations}, 0, kMostWork, {}, "moves tried a layer", "[R]"},
        {"nodes", Unit::none, I{d.nodes}, 0, kMostWork, {}, "branch-and-bound nodes a layer", "[R]"}}},
      [](const ParamSet& p) -> std::unique_ptr<Policy> {
        MakespanSettings dispatch;
        dispatch.evaluations = static_cast<int>(p.integer("evaluations"));
        dispatch.nodes = static_cast<int>(p.integer("nodes"));
        return std::make_unique<MakespanPolicy>(Settings{p.word("layout"), static_cast<int>(p.integer("updates")),
                                                         static_cast<int>(p.integer("rehearsals")), dispatch});
      });
}

}  // namespace sojourn
