// Stronger rivals and sanity ends as policies: lawful answers, bytes, and the property each is known for.
#include "policy/dispatch.h"
#include "policy/eplb.h"
#include "policy_fixture.h"

using namespace policy_test;

namespace {

const std::vector<std::string> kRivals{"eplb", "llep", "lplb", "makespan", "duplicate-all-hot", "random"};

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

/// Tokens of the fullest chiplet over the mean.
double imbalance(const World& w, const std::vector<Assignment>& x) {
  std::vector<double> load(w.package.compute_count, 0.0);
  double sum = 0;
  for (const Assignment& a : x) {
    load[w.directory->replica(a.replica).at.chiplet] += a.tokens;
    sum += a.tokens;
  }
  return *std::max_element(load.begin(), load.end()) * w.package.compute_count / sum;
}

double imbalance(World& w, Policy& policy, int windows) {
  double sum = 0;
  std::vector<Assignment> x;
  for (int i = 0; i < windows; ++i) {
    const auto choice = w.traffic.window();
    for (int l = 0; l < w.profile.layers; ++l) {
      x.clear();
      policy.assign(w.view(i + 1), {l, w.traffic.groups(choice[static_cast<size_t>(l)])}, x);
      sum += imbalance(w, x);
    }
  }
  return sum / (windows * w.profile.layers);
}

void drift(World& w) {
  Traffic other(w.profile.layers, w.profile.experts, w.traffic.top_k, w.traffic.tokens, w.profile.chiplets, 0.9, 77);
  const Profile moved = profile_of(other, 4);
  w.profile.demand = moved.demand;
  w.profile.source = moved.source;
}

int apply(World& w, Policy& policy, int window) {
  std::vector<Action> actions;
  policy.decide(w.view(window), actions);
  int started = 0;
  for (const Action& a : actions) {
    const Verdict v = legal(a, *w.directory, w.task.limits, window, started, LinkUse{});
    INFO(action_name(a.kind), " ", verdict_name(v));
    CHECK(v == Verdict::ok);
    if (v != Verdict::ok) continue;
    ++started;
    if (a.kind == ActionKind::evict) {
      w.directory->retire(a.replica);
    } else {
      w.directory->publish(w.directory->begin(a), a.replica, window);
    }
  }
  return started;
}

}  // namespace

TEST_CASE("rivals assign every token once, repeatably, and hold no more bytes than anybody") {
  for (const std::string& name : kRivals)
    for (const char* model : {"deepseek-v2-lite", "mixtral-8x7b"})
      for (const int tokens : {32, 2048}) {
        CAPTURE(name);
        World w(table1(), shape(model), 2, tokens, 0.9);
        auto policy = make(name), again = make(name);
        w.place(*policy);
        CHECK(placement_problem(w.task, w.placed).empty());
        CHECK(static_cast<Bytes>(w.placed.size()) * w.model.expert_bytes() <= w.task.limits.budget);
        std::vector<PlacedReplica> twice;
        again->place(w.task, twice);
        REQUIRE(twice.size() == w.placed.size());
        for (size_t i = 0; i < twice.size(); ++i) CHECK(twice[i].at == w.placed[i].at);
        const auto choice = w.traffic.window();
        for (int l = 0; l < 2; ++l) {
          const auto groups = w.traffic.groups(choice[static_cast<size_t>(l)]);
          std::vector<Assignment> x, y;
          policy->assign(w.view(), {l, groups}, x);
          again->assign(w.view(), {l, groups}, y);
          check_once(w, l, groups, x);
          REQUIRE(x.size() == y.size());
          for (size_t i = 0; i < x.size(); ++i) CHECK((x[i].replica == y[i].replica && x[i].tokens == y[i].tokens));
        }
      }
}

TEST_CASE("eplb's layout is EPLB's plan") {
  World w(table1(), lite(), 3, 2048, 0.9);
  auto policy = make("eplb");
  w.place(*policy);
  for (int l = 0; l < 3; ++l) {
    std::vector<float> load;
    for (int e = 0; e < 64; ++e) load.push_back(static_cast<float>(w.profile.d(l, e)));
    EplbShape s;
    s.experts = 64;
    s.replicas = 64 + 19;  // 1.3 x 3 x 64 experts: 57 copies for three layers
    s.devices = 16;
    s.copies_max = 4;
    const auto plan = eplb_plan(load, s);
    REQUIRE(plan);
    for (int e = 0; e < 64; ++e) {
      std::vector<int> mine, theirs;
      for (const int id : w.directory->replicas(l, e)) mine.push_back(w.directory->replica(id).at.chiplet);
      for (int i = 0; i < plan->count(0, e); ++i)
        theirs.push_back(plan->log2phy[e * plan->width + i] / plan->per_device);
      std::sort(mine.begin(), mine.end());
      std::sort(theirs.begin(), theirs.end());
      theirs.erase(std::unique(theirs.begin(), theirs.end()), theirs.end());  // twice on a device: stored once
      CHECK(mine == theirs);
    }
  }
}

TEST_CASE("eplb levels loads better than one copy; even and least-loaded dispatch better than nearest") {
  double by_rule[3];
  const char* rules[] = {"nearest", "even", "least-loaded"};
  for (int i = 0; i < 3; ++i) {
    World w(table1(), lite(), 2, 2048, 0.9);
    auto policy = make("eplb", {{"dispatch", std::string(rules[i])}});
    w.place(*policy);
    by_rule[i] = imbalance(w, *policy, 3);
  }
  World v(table1(), lite(), 2, 2048, 0.9);
  auto fixed = make("static");
  v.place(*fixed);
  CHECK(by_rule[0] < imbalance(v, *fixed, 3));
  CHECK(by_rule[1] < by_rule[0]);
  CHECK(by_rule[2] <= by_rule[1]);
}

TEST_CASE("eplb follows its new plan after a drift with legal actions, then rests") {
  World w(table1(), lite(), 2, 2048, 0.6);
  auto policy = make("eplb");
  w.place(*policy);
  drift(w);
  w.traffic = Traffic(2, 64, w.traffic.top_k, 2048, 16, 0.9, 77);
  const double before = imbalance(w, *policy, 3);
  int late = 0;
  for (int window = 8; window < 80; ++window) {
    const int n = apply(w, *policy, window);
    if (window >= 64) late += n;
  }
  CHECK(imbalance(w, *policy, 3) < 0.8 * before);
  CHECK(late == 0);
  for (int e = 0; e < 64; ++e) CHECK(w.directory->replicas(0, e).size() <= 4);
}

TEST_CASE("llep renews its spares after a drift with legal actions") {
  World w(table1(), lite(), 2, 2048, 0.6);
  auto policy = make("llep");
  w.place(*policy);
  drift(w);
  w.traffic = Traffic(2, 64, w.traffic.top_k, 2048, 16, 0.9, 77);
  const double before = imbalance(w, *policy, 3);
  int actions = 0;
  for (int window = 8; window < 60; ++window) actions += apply(w, *policy, window);
  CHECK(actions > 0);
  CHECK(imbalance(w, *policy, 3) < before);
}

TEST_CASE("duplicate-all-hot puts the hottest experts on every chiplet and sends no token of theirs over a link") {
  World w(table1(), lite(), 2, 2048, 0.9);
  auto policy = make("duplicate-all-hot");
  w.place(*policy, 1.5);
  const auto groups = w.traffic.groups(w.traffic.window()[0]);
  std::vector<Assignment> x;
  policy->assign(w.view(), {0, groups}, x);
  const int hottest = static_cast<int>(std::max_element(w.profile.demand.begin(), w.profile.demand.begin() + 64) -
                                       w.profile.demand.begin());
  CHECK(w.directory->replicas(0, hottest).size() == 16);
  for (const Assignment& a : x) {
    const TokenGroup& g = groups[static_cast<size_t>(a.group)];
    if (g.expert == hottest) CHECK(w.directory->replica(a.replica).at.chiplet == g.source);
  }
}

TEST_CASE("random differs by seed and is worse than eplb") {
  World w(table1(), lite(), 2, 2048, 0.9, 1), v(table1(), lite(), 2, 2048, 0.9, 1),
      u(table1(), lite(), 2, 2048, 0.9, 1);
  auto a = make("random"), b = make("random"), c = make("eplb");
  v.task.seed = 2;
  w.place(*a);
  v.place(*b);
  u.place(*c);
  bool differ = w.placed.size() != v.placed.size();
  for (size_t i = 0; !differ && i < w.placed.size(); ++i) differ = !(w.placed[i].at == v.placed[i].at);
  CHECK(differ);
  CHECK(run(u, *c, 2) < run(w, *a, 2));
}
