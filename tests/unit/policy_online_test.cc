// Online behaviour: every token assigned once, actions legal, bounded and repeatable, ablation switches bite.
#include <rapidcheck.h>

#include "policy/fast_map.h"
#include "policy_fixture.h"

using namespace policy_test;

namespace {

const std::vector<std::string> kAll{"static", "hydra", "moentwine", "pimoe", "hcrmap"};

ModelShape lite() { return shape("deepseek-v2-lite"); }

void check_once(const World& w, int layer, const std::vector<TokenGroup>& groups, const std::vector<Assignment>& x) {
  std::vector<int> tokens(groups.size(), 0);
  for (const Assignment& a : x) {
    REQUIRE(a.tokens > 0);
    const auto& g = groups[static_cast<size_t>(a.group)];
    const auto live = w.directory->replicas(layer, g.expert);
    REQUIRE(std::find(live.begin(), live.end(), a.replica) != live.end());
    tokens[static_cast<size_t>(a.group)] += a.tokens;
  }
  for (size_t g = 0; g < groups.size(); ++g) REQUIRE(tokens[g] == groups[g].tokens);
}

/// Demand of another Zipf order: what the controllers see after the workload moved.
void drift(World& w) {
  Traffic other(w.profile.layers, w.profile.experts, w.traffic.top_k, w.traffic.tokens, w.profile.chiplets, 0.9, 77);
  const Profile moved = profile_of(other, 4);
  w.profile.demand = moved.demand;
  w.profile.source = moved.source;
}

}  // namespace

TEST_CASE("policy assign: every token of every group goes to one live replica, repeatably") {
  for (const std::string& name : kAll)
    for (int tokens : {32, 512, 2048}) {
      World w(table1(), lite(), 2, tokens, 0.9);
      auto policy = make(name), again = make(name);
      w.place(*policy);
      const auto choice = w.traffic.window();
      for (int l = 0; l < 2; ++l) {
        const auto groups = w.traffic.groups(choice[static_cast<size_t>(l)]);
        std::vector<Assignment> x, y;
        policy->assign(w.view(), {l, groups}, x);
        again->assign(w.view(), {l, groups}, y);
        check_once(w, l, groups, x);
        REQUIRE(x.size() == y.size());
        for (size_t i = 0; i < x.size(); ++i) {
          CHECK(x[i].replica == y[i].replica);
          CHECK(x[i].tokens == y[i].tokens);
        }
      }
    }
}

TEST_CASE("policy assign: moentwine's other splits also assign every token once") {
  for (const char* split : {"even", "nearest"}) {
    World w(table1(), lite(), 1, 300, 0.9);
    auto policy = make("moentwine", {{"split", std::string(split)}});
    w.place(*policy);
    const auto groups = w.traffic.groups(w.traffic.window()[0]);
    std::vector<Assignment> x;
    policy->assign(w.view(), {0, groups}, x);
    check_once(w, 0, groups, x);
  }
}

TEST_CASE("policy decide: actions are legal, within the policy's own bound, and repeatable") {
  for (const std::string& name : kAll) {
    World w(table1(), lite(), 4, 512, 0.9);
    auto policy = make(name), again = make(name);
    w.place(*again);  // a policy keeps its seed from place()
    w.place(*policy);
    drift(w);
    for (int window = 10; window < 16; ++window) {
      std::vector<Action> a, b;
      policy->decide(w.view(window), a);
      again->decide(w.view(window), b);
      CHECK(static_cast<int>(a.size()) <= w.task.limits.updates_max);
      REQUIRE(a.size() == b.size());
      int started = 0;
      for (size_t i = 0; i < a.size(); ++i) {
        CHECK(a[i].replica == b[i].replica);
        const Verdict v = legal(a[i], *w.directory, w.task.limits, window, started, {});
        INFO(name, " ", action_name(a[i].kind), ": ", verdict_name(v));
        CHECK(v == Verdict::ok);
        if (v != Verdict::ok || a[i].kind == ActionKind::no_op) continue;
        ++started;
        if (a[i].kind == ActionKind::evict) {
          w.directory->retire(a[i].replica);
        } else {
          w.directory->publish(w.directory->begin(a[i]), a[i].replica, window);
        }
      }
    }
  }
}

TEST_CASE(
    "policy decide: hcrmap's amortised slow loop lowers the layer time after a drift, and only when switched on") {
  World w(table1(), lite(), 2, 2048, 0.6);
  auto policy = make("hcrmap", {{"copies", false}, {"slow", std::string("amortised")}});
  w.place(*policy);
  drift(w);
  const CostModel cost(w.package, w.model);
  const auto time = [&] {
    std::vector<PlacedReplica> now;
    for (int l = 0; l < 2; ++l)
      for (int e = 0; e < w.profile.experts; ++e)
        for (int id : w.directory->replicas(l, e)) now.push_back({l, e, w.directory->replica(id).at});
    return layer_load(cost, w.profile, 0, now).time(cost) + layer_load(cost, w.profile, 1, now).time(cost);
  };
  const double before = time();
  std::vector<Action> none;
  make("hcrmap", {{"slow", std::string("none")}})->decide(w.view(10), none);
  CHECK(none.empty());
  for (int window = 10; window < 40; ++window) {
    std::vector<Action> a;
    policy->decide(w.view(window), a);
    for (const Action& x : a) {
      if (x.kind == ActionKind::evict) {
        w.directory->retire(x.replica);
      } else {
        w.directory->publish(w.directory->begin(x), x.replica, window);
      }
    }
  }
  CHECK(time() < 0.95 * before);
}

TEST_CASE("policy decide: hcrmap's amortised rule defers migrations under link pressure unless told not to see it") {
  World w(table1(), lite(), 2, 2048, 0.6);
  auto policy = make("hcrmap", {{"copies", false}, {"slow", std::string("amortised")}}),
       blind = make("hcrmap", {{"copies", false}, {"slow", std::string("amortised")}, {"migration_aware", false}});
  w.place(*policy);
  drift(w);
  std::vector<Action> calm, busy, careless;
  policy->decide(w.view(10), calm);
  w.pressure.link = 0.99;
  policy->decide(w.view(10), busy);
  blind->decide(w.view(10), careless);
  CHECK(calm.size() == 1);
  CHECK(busy.empty());
  CHECK(careless.size() == 1);
}

TEST_CASE("policy assign: the fast map beats the nearest replica, and blinding it changes its choices") {
  World w(table1(), lite(), 2, 2048, 0.9);
  auto full = make("hcrmap"), near = make("hcrmap", {{"fast_map", false}});
  w.place(*full);
  World v(table1(), lite(), 2, 2048, 0.9);
  v.place(*near);
  CHECK(run(w, *full, 2) < run(v, *near, 2));
  const auto groups = w.traffic.groups(w.traffic.window()[0]);
  std::vector<Assignment> x;
  full->assign(w.view(), {0, groups}, x);
  for (const char* flag : {"load_aware", "bank_aware", "link_aware"}) {
    std::vector<Assignment> y;
    make("hcrmap", {{flag, false}})->assign(w.view(), {0, groups}, y);
    bool differ = x.size() != y.size();
    for (size_t i = 0; !differ && i < x.size(); ++i) differ = x[i].replica != y[i].replica;
    INFO(flag);
    CHECK(differ);
  }
}

TEST_CASE("policy assign: the fast map does not wake a copy for a few tokens") {
  World w(table1(), lite(), 1, 64, 0.3);
  w.task.limits = ResidencyLimits{};
  // One expert in two HBM sets, one token from each chiplet.
  w.directory =
      std::make_unique<Residency>(w.package, 1, w.profile.experts, w.model.expert_bytes(), std::vector<Bytes>{});
  for (int c : {0, 15}) REQUIRE(w.directory->place(0, 0, {Tier::hbm, c, w.package.visible(Tier::hbm, c).front()}));
  std::vector<TokenGroup> groups;
  for (int s = 0; s < 16; ++s) groups.push_back({0, s, 1});
  FastMapper mapper;
  std::vector<Assignment> x;
  const CostModel cost(w.package, w.model);
  mapper.map(cost, *w.directory, {0, groups}, x);
  for (const Assignment& a : x) CHECK(a.replica == x[0].replica);
  // A large demand is spread.
  for (TokenGroup& g : groups) g.tokens = 128;
  x.clear();
  mapper.map(cost, *w.directory, {0, groups}, x);
  CHECK(std::any_of(x.begin(), x.end(), [&](const Assignment& a) { return a.replica != x[0].replica; }));
  CHECK(mapper.chiplet_s()[0] == doctest::Approx(mapper.chiplet_s()[15]).epsilon(0.3));
}
