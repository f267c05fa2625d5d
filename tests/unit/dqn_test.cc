// The learned slow loop: what-if arithmetic, candidates and their legality, reward, checkpoints.
#include "policy/dqn.h"

#include <fstream>

#include "policy/dqn_checkpoint.h"
#include "policy_fixture.h"
#include "study/train.h"
#include "study/train_state.h"
#include "trace/synth.h"

namespace {

using namespace sojourn;
using policy_test::shape;
using policy_test::table1;

std::shared_ptr<const Scenario> scenario(const Package& package, const ModelShape& model, Mode mode = Mode::prefill) {
  ParamSet p;
  for (const Param& param : synth_params()) p.set(param.name, param.default_value);
  p.set("layers", std::int64_t{4});
  p.set("experts", static_cast<std::int64_t>(model.experts));
  p.set("top_k", static_cast<std::int64_t>(model.top_k));
  p.set("tokens", std::int64_t{8000});
  auto data = synthesise(p, 77);
  REQUIRE(data);
  WindowOptions w;
  w.mode = mode;
  w.size = 512;
  w.warmup = 4;
  w.scored = 24;
  auto s = make_scenario(model, package, make_trace(std::move(*data)), w, Scenario{});
  REQUIRE(s);
  return *s;
}

ModelShape small_model() {
  ModelShape m = shape("deepseek-v2-lite");
  m.layers = 5;
  return m;
}

PolicyRegistry registry() {
  PolicyRegistry r("policy");
  register_all_policies(r);
  return r;
}

TEST_CASE("what-if gains are differences of J built anew") {
  const Package package = table1();
  const ModelShape model = small_model();
  TrainWorld world(scenario(package, model), 0, registry(), 0);
  Rng rng(1, "dqn.test");
  REQUIRE(world.start(20, rng));
  const PolicyView view = world.view();
  const CostModel& cost = world.cost();
  WhatIf plan(0, 0);
  int seen = 0;
  for (int l = 0; l < view.layers; ++l) {
    plan.build(cost, *view.directory, l, view.ewma.subspan(static_cast<size_t>(l * view.experts), view.experts));
    LayerPlan slow(cost, view.experts);
    for (int e = 0; e < view.experts; ++e) {
      slow.demand[e] = demand_of(view, l, e);
      for (int id : view.directory->replicas(l, e)) slow.at[e].push_back(view.directory->replica(id).at);
    }
    slow.rebuild();
    CHECK(plan.smooth() == doctest::Approx(slow.smooth()).epsilon(1e-9));
    for (int e = 0; e < view.experts; e += 3) {
      std::vector<Location> with(plan.at(e).begin(), plan.at(e).end());
      const int c = static_cast<int>(rng.below(16));
      with.push_back({Tier::hbm, c, view.package->visible(Tier::hbm, c).front()});
      CHECK(plan.gain(e, with) == doctest::Approx(slow.smooth() - slow.smooth_if(e, with)).epsilon(1e-6));
      ++seen;
    }
  }
  CHECK(seen > 50);
}

TEST_CASE("no-op's reward is exactly 0, and an action's is what both layouts differ by") {
  const Package package = table1();
  const ModelShape model = small_model();
  TrainWorld world(scenario(package, model), 0, registry(), 0);
  Rng rng(2, "dqn.test");
  REQUIRE(world.start(0, rng));
  RewardTerms terms;
  for (int i = 0; i < 3; ++i) CHECK(world.step(nullptr, terms) == 0.0);
  SlowCandidate idle;
  CHECK(world.step(&idle, terms) == 0.0);

  REQUIRE(world.start(40, rng));
  DqnScan scan{SlowSettings{}};
  int acted = 0;
  double gained = 0;
  while (world.left(terms.credit) > 0) {
    SlowState state;
    std::vector<SlowCandidate> candidates;
    const PolicyView view = world.view();
    scan.propose(world.cost(), view, state, candidates);
    const SlowCandidate* best = nullptr;
    for (const SlowCandidate& c : candidates)
      if (best == nullptr || c.gain_s > best->gain_s) best = &c;
    const double reward = world.step(best, terms);
    acted += best != nullptr;
    gained += reward;
    CHECK(std::abs(reward) < 10);
  }
  CHECK(acted > 0);
  CHECK(gained > 0);  // the best candidates mend a stirred layout
}

TEST_CASE("candidates are legal, features finite and bounded, and the same every time") {
  const Package package = table1();
  const ModelShape model = small_model();
  CHECK(dqn_feature_names().size() == static_cast<size_t>(kSlowFeatures));
  for (const Mode mode : {Mode::prefill, Mode::decode}) {
    TrainWorld world(scenario(package, model, mode), 0, registry(), 0);
    std::vector<float> before;
    for (int round = 0; round < 2; ++round) {
      Rng rng(3, "dqn.test");
      REQUIRE(world.start(10, rng));
      DqnScan scan{SlowSettings{}};
      std::vector<float> all;
      for (int w = 0; w < 8; ++w) {
        SlowState state;
        std::vector<SlowCandidate> candidates;
        const PolicyView view = world.view();
        scan.propose(world.cost(), view, state, candidates);
        const auto& residency = dynamic_cast<const Residency&>(*view.directory);
        for (const SlowCandidate& c : candidates) {
          const LinkUse links{view.pressure->link_util, {}, view.window_ps};
          CHECK(legal(c.action, residency, *view.limits, view.window, 0, links) == Verdict::ok);
          for (float f : c.features) CHECK((f >= -4 && f <= 4));
          all.insert(all.end(), c.features.begin(), c.features.end());
        }
        (void)world.step(candidates.empty() ? nullptr : &candidates[rng.below(candidates.size())], RewardTerms{});
      }
      if (round == 1) CHECK(all == before);
      before = all;
    }
  }
}

DqnCheckpoint fresh_checkpoint() {
  auto net = std::make_shared<Mlp>(kSlowFeatures, 64);
  Rng rng(5, "dqn.checkpoint");
  net->initialise(rng);
  return {net, 0.05, "", "{\"seed\":5}"};
}

TEST_CASE("a checkpoint reads back bit by bit and a changed one is refused") {
  const DqnCheckpoint c = fresh_checkpoint();
  const std::string text = dqn_checkpoint_text(c);
  auto back = parse_dqn_checkpoint(text, "test");
  REQUIRE(back);
  CHECK(back->network->theta() == c.network->theta());
  CHECK(dqn_checkpoint_text({back->network, back->margin, "", back->training}) == text);

  std::string edited = text;
  const size_t at = edited.find("\"weights\": [");
  edited[edited.find_first_of("123456789", at + 14)] =
      edited[edited.find_first_of("123456789", at + 14)] == '1' ? '2' : '1';
  CHECK(!parse_dqn_checkpoint(edited, "test"));
  CHECK(!parse_dqn_checkpoint(text.substr(0, text.size() / 2), "test"));
  CHECK(!parse_dqn_checkpoint("{}", "test"));
  std::string other = text;
  other.replace(other.find("gain_slow"), 9, "gain_fast");
  auto refused = parse_dqn_checkpoint(other, "mine.json");
  REQUIRE(!refused);
  CHECK(refused.error().diagnostics.text().find("mine.json") != std::string::npos);
  CHECK(refused.error().exit_code == 2);
  CHECK(!load_dqn_checkpoint("no-such-checkpoint", {"."}));
}

TEST_CASE("the shipped checkpoint is whole and has the hash its manifest names") {
  auto shipped = load_dqn_checkpoint(kShippedCheckpoint, {});
  REQUIRE(shipped);
  std::ifstream in(std::string(SOJOURN_SOURCE_DIR) + "/checkpoints/hcrmap-dqn.manifest.json");
  const std::string manifest((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  CHECK(manifest.find(shipped->weights_sha256) != std::string::npos);
}

TEST_CASE("a training state of other options or with a flipped byte is refused") {
  TrainState a, b;
  Rng rng(1, "dqn.state");
  a.dqn = DoubleDqn(kSlowFeatures, 8, rng);
  a.replay = Replay(4, kSlowFeatures, 3);
  a.steps = 17;
  a.curve.resize(2);
  b.dqn = DoubleDqn(kSlowFeatures, 8, rng);
  b.replay = Replay(4, kSlowFeatures, 3);
  const std::string hash(64, 'a'), path = "/tmp/sojourn-state-test." + std::to_string(::getpid());
  std::string bytes = train_state_bytes(a, hash);
  REQUIRE(write_durably(path, bytes));
  REQUIRE(read_train_state(path, hash, b));
  CHECK(b.steps == 17);
  CHECK(b.curve.size() == 2);
  CHECK(b.dqn.online().theta() == a.dqn.online().theta());
  CHECK(!read_train_state(path, std::string(64, 'b'), b));
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  REQUIRE(write_durably(path, bytes));
  CHECK(!read_train_state(path, hash, b));
  std::remove(path.c_str());
}

TEST_CASE("hcrmap's alpha_mig weights its pressures; policies without the parameter have its default") {
  CHECK(make_policy("hcrmap", {{"alpha_mig", 5.0}, {"slow", std::string("none")}})->migration_weight() == 5.0);
  CHECK(make_policy("hcrmap", {{"slow", std::string("none")}})->migration_weight() == kMigrationWeight);
  CHECK(make_policy("static", {})->migration_weight() == kMigrationWeight);
}

}  // namespace
