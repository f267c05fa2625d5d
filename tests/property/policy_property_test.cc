// Every registered policy through whole small runs: each token assigned once to every slice of its expert, lawful
// placements, stages that sum up, a bound that holds, results that repeat.
#include <array>
#include <map>

#include "policy/policies.h"
#include "random_package.h"

using namespace kit;

namespace {

/// Watches a policy's answers.
struct Watched final : Policy {
  std::unique_ptr<Policy> inner;
  const Package* package = nullptr;
  explicit Watched(std::unique_ptr<Policy> p) : inner(std::move(p)) {}
  void place(const PlacementTask& task, std::vector<PlacedReplica>& out) override {
    inner->place(task, out);
    std::map<std::pair<int, int>, std::vector<PlacedReplica>> placed;
    Bytes bytes = 0;
    for (const PlacedReplica& r : out) {
      for (const PlacedReplica& other : placed[{r.layer, r.expert}])
        RC_ASSERT(!(other.at == r.at && other.slice.overlaps(r.slice)));
      placed[{r.layer, r.expert}].push_back(r);
      bytes += r.slice.of(task.model->expert_bytes());
    }
    RC_ASSERT(static_cast<int>(placed.size()) == task.profile->layers * task.profile->experts);
    for (const auto& [key, replicas] : placed)
      for (int i = 0; i < kSlices; ++i) {
        const Slice one{static_cast<std::uint8_t>(i), 1};
        const auto copies = std::count_if(replicas.begin(), replicas.end(),
                                          [&](const PlacedReplica& r) { return r.slice.overlaps(one); });
        RC_ASSERT(copies >= 1);
        RC_ASSERT(copies <= std::max(1, task.limits.replicas_max));
      }
    RC_ASSERT(bytes <= task.limits.budget);
  }
  void decide(const PolicyView& view, std::vector<Action>& out) override { inner->decide(view, out); }
  void assign(const PolicyView& view, const LayerTask& task, std::vector<Assignment>& out) override {
    inner->assign(view, task, out);
    std::vector<std::array<int, kSlices>> left;
    for (const TokenGroup& g : task.groups) left.emplace_back().fill(g.tokens);
    for (const Assignment& a : out) {
      RC_ASSERT(a.group >= 0);
      RC_ASSERT(a.group < static_cast<int>(left.size()));
      RC_ASSERT(a.tokens > 0);
      const auto live = view.directory->replicas(task.layer, task.groups[a.group].expert);
      RC_ASSERT(std::find(live.begin(), live.end(), a.replica) != live.end());
      const Replica& r = view.directory->replica(a.replica);
      RC_ASSERT(r.state == ReplicaState::live);
      for (int i = r.slice.first; i < r.slice.end(); ++i) left[a.group][i] -= a.tokens;
    }
    for (const auto& group : left)
      for (const int n : group) RC_ASSERT(n == 0);
  }
  ResidencyLimits limits(ResidencyLimits common) const override { return inner->limits(common); }
  [[nodiscard]] double budget_factor(double common) const override { return inner->budget_factor(common); }
};

void same(const RunResult& a, const RunResult& b) {
  RC_ASSERT(a.window_ps == b.window_ps);
  RC_ASSERT(a.stages_ps == b.stages_ps);
  RC_ASSERT(a.lower_bound_ps == b.lower_bound_ps);
  RC_ASSERT(a.energy.total() == b.energy.total());
  RC_ASSERT(a.edp_js == b.edp_js);
  RC_ASSERT(a.events == b.events);
  RC_ASSERT(a.bytes_migration == b.bytes_migration);
  RC_ASSERT(a.replicas_mean == b.replicas_mean);
  RC_ASSERT(a.promote + a.demote + a.evict + a.relocate == b.promote + b.demote + b.evict + b.relocate);
  RC_ASSERT(a.deferred == b.deferred);
  RC_ASSERT(a.refused == b.refused);
  RC_ASSERT(a.link_util == b.link_util);
  RC_ASSERT(a.bank_util == b.bank_util);
  RC_ASSERT(a.chiplet_load == b.chiplet_load);
  RC_ASSERT(a.bottleneck == b.bottleneck);
}

}  // namespace

TEST_CASE("every policy serves random models on random packages lawfully") {
  PolicyRegistry policies("policy");
  register_all_policies(policies);
  REQUIRE(policies.find("static") != nullptr);
  for (const std::string& name : policies.names()) {
    const auto* entry = policies.find(name);
    CAPTURE(name);
    std::int64_t runs = 0, actions = 0;
    CHECK(rc::check(name, [&] {
      const ModelShape m = tiny_model(pick(1, 3), pick(2, 8), pick(1, 2), pick(1, 6), pick(1, 8));
      const Package p = random_package(m.routed_bytes() * 2 + 4000);
      const auto seed = static_cast<std::uint64_t>(pick(0, 1 << 20));
      Rng rng(seed, "routes");
      std::shared_ptr<const Trace> trace = tiny_trace(m, pick(1, 8), pick(1, 30), [&](int, int, int j) {
        const auto a = rng.below(m.experts), b = rng.below(a + 1);  // skewed; the k choices of a token differ
        return static_cast<int>(
            m.top_k == 1 ? b
                         : (j == 0 ? b / 2 * 2 % m.experts : std::min<std::uint64_t>(b / 2 * 2 + 1, m.experts - 1)));
      });
      WindowOptions o;
      o.mode = pick(0, 1) ? Mode::decode : Mode::prefill;
      o.size = pick(1, 40);
      o.warmup = pick(1, 3);
      o.scored = pick(1, 6);
      o.seed = seed;
      Scenario settings;
      settings.network = pick(0, 3) == 0 ? NetworkKind::closed : NetworkKind::packet;
      settings.copies = 1.0 + 0.1 * pick(0, 10);
      settings.limits.age_min = pick(0, 3);
      settings.limits.updates_max = pick(0, 4);
      settings.limits.replicas_max = pick(1, 4);
      const auto s = make_scenario(m, p, trace, o, settings);
      RC_PRE(static_cast<bool>(s));
      const auto resolved = resolve(entry->info.params, {}, {}, name);
      RC_ASSERT(static_cast<bool>(resolved));
      const auto fresh = [&]() -> std::unique_ptr<Policy> {
        return std::make_unique<Watched>(entry->factory(*resolved));
      };
      const auto once = simulate(**s, fresh, name, nullptr, 0, [] { return false; });
      if (!once) RC_FAIL(once.error().diagnostics.text());
      const RunResult& r = *once;
      RC_ASSERT(r.windows == o.scored);
      Ps stages = 0;
      for (const Ps t : r.stages_ps) stages += t;
      // Means are rounded down: a layer's by less than a picosecond a stage.
      RC_ASSERT(std::abs(stages * r.moe_layers - r.moe_latency_ps) <= (kStages + 1) * r.moe_layers);
      RC_ASSERT(r.lower_bound_ps <= r.moe_latency_ps);
      RC_ASSERT(r.moe_latency_ps <= r.latency_ps);
      RC_ASSERT(r.replicas_mean >= 1);
      RC_ASSERT(r.energy.compute > 0);
      for (const double x : r.link_util) RC_ASSERT(x >= 0);
      for (const double x : r.chiplet_load) RC_ASSERT(x <= 1.0 + 1e-9);
      ++runs;
      actions += r.promote + r.demote + r.evict + r.relocate;
      same(r, *simulate(**s, fresh, name, nullptr, 0, [] { return false; }));
    }));
    MESSAGE(name << ": " << runs << " runs, " << actions << " residency actions");
  }
}
