// EPLB's parts by hand: packing, replication, the two policies of balancing, empty slots, refused shapes.
#include "policy/eplb.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "base/rng.h"

using namespace sojourn;

TEST_CASE("eplb packing: heaviest first to the lightest pack with a free slot, ties to the lower index") {
  std::vector<int> pack, position;
  const std::vector<float> weight{4, 9, 4, 1, 2, 4};
  balanced_packing(weight, 3, pack, position);
  // 9 -> 0; 4 -> 1; 4 -> 2; the third 4 -> 1 (4 = 4, lower index); 2 -> 2; 1 -> 0.
  CHECK(pack == std::vector<int>{1, 0, 2, 0, 2, 1});
  CHECK(position == std::vector<int>{0, 0, 0, 1, 1, 1});
  balanced_packing(weight, 6, pack, position);  // one item a pack: not sorted
  CHECK(pack == std::vector<int>{0, 1, 2, 3, 4, 5});
}

TEST_CASE("eplb replication: each copy to the largest load a copy, within the bound") {
  std::vector<int> expert, rank, count;
  const std::vector<float> load{90, 40, 30};
  replicate_experts(load, 6, 0, expert, rank, count);
  CHECK(expert == std::vector<int>{0, 1, 2, 0, 0, 1});  // 90; 45; 40 (30 each of expert 0 by then)
  CHECK(rank == std::vector<int>{0, 0, 0, 1, 2, 1});
  CHECK(count == std::vector<int>{3, 2, 1});
  replicate_experts(load, 6, 2, expert, rank, count);
  CHECK(count == std::vector<int>{2, 2, 2});
  replicate_experts(load, 9, 2, expert, rank, count);  // no more places than the bound allows
  CHECK(expert.size() == 6);
}

TEST_CASE("eplb plan: maps agree with each other, and experts of a node's groups stay on it") {
  Rng rng(3, "eplb");
  for (int round = 0; round < 200; ++round) {
    EplbShape s;
    s.layers = 1 + static_cast<int>(rng.below(3));
    s.nodes = 1 << rng.below(3);
    s.groups = s.nodes * static_cast<int>(1 + rng.below(2));
    s.experts = s.groups * static_cast<int>(1 + rng.below(4));
    s.devices = s.nodes * static_cast<int>(1 + rng.below(4));
    s.replicas = s.nodes * (s.experts / s.nodes + static_cast<int>(rng.below(6)));
    s.copies_max = rng.below(2) == 0 ? 0 : 3;
    std::vector<float> load(static_cast<std::size_t>(s.layers * s.experts));
    for (float& x : load) x = static_cast<float>(rng.below(1000));
    const auto plan = eplb_plan(load, s);
    REQUIRE(plan);
    REQUIRE(plan->hierarchical);
    for (int l = 0; l < s.layers; ++l) {
      std::vector<int> seen(s.experts, 0), node(s.groups, -1);
      for (int slot = 0; slot < plan->slots; ++slot) {
        const int e = plan->expert(l, slot);
        if (e < 0) continue;
        ++seen[e];
        const int here = slot / plan->per_device / (s.devices / s.nodes);
        int& home = node[e / (s.experts / s.groups)];
        CHECK((home == -1 || home == here));
        home = here;
      }
      int total = 0;
      for (int e = 0; e < s.experts; ++e) {
        CHECK(seen[e] == plan->count(l, e));
        CHECK(seen[e] >= 1);
        CHECK((s.copies_max == 0 || seen[e] <= s.copies_max));
        total += seen[e];
        for (int i = 0; i < plan->width; ++i) {
          const int slot = plan->log2phy[(l * s.experts + e) * plan->width + i];
          CHECK((slot >= 0) == (i < seen[e]));
          if (slot >= 0) CHECK(plan->expert(l, slot) == e);
        }
      }
      if (s.copies_max == 0) CHECK(total == s.replicas);
    }
  }
}

TEST_CASE("eplb plan: balances skewed loads, and copies balance them further") {
  std::vector<float> load;
  for (int e = 0; e < 64; ++e) load.push_back(1000.0F / static_cast<float>(e + 1));
  EplbShape s;
  s.experts = 64;
  s.devices = 16;
  double before = 8;  // contiguous: about 7.1
  for (const int replicas : {64, 80, 96}) {
    s.replicas = replicas;
    const auto plan = eplb_plan(load, s);
    REQUIRE(plan);
    const double now = eplb_imbalance(*plan, 0, load, s.devices);
    CHECK(now < before);
    before = now;
  }
  CHECK(before < 1.1);
}

TEST_CASE("eplb plan: replicas that do not fill the devices leave empty slots at the light ones") {
  EplbShape s;
  s.experts = 5;
  s.replicas = 7;
  s.devices = 4;
  const std::vector<float> load{50, 10, 10, 10, 10};
  const auto plan = eplb_plan(load, s);
  REQUIRE(plan);
  CHECK(plan->slots == 8);
  CHECK(std::count(plan->phy2log.begin(), plan->phy2log.end(), -1) == 1);
  CHECK(plan->logcnt == std::vector<int>{3, 1, 1, 1, 1});
}

TEST_CASE("eplb plan: a shape that cannot be planned is refused with its field") {
  const std::vector<float> load(8, 1.0F);
  const auto key = [&](EplbShape s) {
    const auto plan = eplb_plan(load, s);
    return plan ? std::string("planned") : plan.error().diagnostics.items()[0].key;
  };
  EplbShape good;
  good.experts = 8;
  good.replicas = 12;
  good.groups = 4;
  good.nodes = 2;
  good.devices = 4;
  CHECK(key(good) == "planned");
  EplbShape s = good;
  s.replicas = 7;
  CHECK(key(s) == "replicas");
  s = good;
  s.replicas = 13;  // hierarchical: a multiple of the nodes
  CHECK(key(s) == "replicas");
  s = good;
  s.devices = 3;
  CHECK(key(s) == "devices");
  s = good;
  s.nodes = 0;
  CHECK(key(s) == "nodes");
  s = good;
  s.experts = 6;
  CHECK(key(s) == "load");
  s = good;
  s.groups = 3;  // 3 % 2 != 0: global
  CHECK(key(s) == "planned");
}
