// Makespan dispatch: every slice of every token once, its own count of the objective, never worse than simpler rules,
// and within 1 % of the mixed-integer optimum of tiny cases.
#include "policy/makespan.h"

#include <fmt/format.h>

#include <array>

#include "policy/fast_map.h"
#include "policy_fixture.h"
#include "solver/lp.h"

using namespace policy_test;

namespace {

/// A package of at most four chiplets in one of four shapes, its rates drawn so that any resource may be the
/// bottleneck.
Package tiny_package(Rng& rng) {
  const auto pick = [&](int lo, int hi) { return lo + static_cast<int>(rng.below(hi - lo + 1)); };
  const int shape = pick(0, 3);
  std::string t = "name = \"tiny\"\n[topology]\n";
  if (shape < 2)
    t += fmt::format("kind = \"{}\"\nwidth = 2\nheight = {}\n", shape == 0 ? "mesh" : "torus", pick(1, 2));
  else
    t += fmt::format("kind = \"tree\"\nchiplets = {}\narity = {}\n", pick(2, 4), pick(1, 3));
  t += fmt::format(
      "[chiplet]\ncores = {}\nclock = \"1 GHz\"\nmacs_per_cycle = 256\ntile_tokens = {}\nenergy_per_mac = \"7 fJ\"\n"
      "[noc]\nports = {}\nenergy = \"100 fJ/B\"\n"
      "[d2d]\nbandwidth = \"{} GB/s\"\nenergy = \"300 fJ/B\"\ndistance = \"1 mm\"\noverhead = \"1 ns\"\n",
      pick(1, 16), pick(1, 2) * 8, pick(4, 16), pick(1, 8) * 32);
  const bool io = pick(0, 1) == 1;
  if (io) t += "[[io]]\nname = \"io\"\nattach = [\"c0\"]\n";
  const auto memory = [&](const char* tier, const char* at, int bandwidth) {
    t += fmt::format(
        "[[memory]]\ntier = \"{}\"\nat = \"{}\"\nbanks = 1\ncapacity = \"1 GiB\"\nbandwidth = \"{} GB/s\"\n"
        "latency = \"1 ns\"\nenergy = \"10 fJ/B\"\n",
        tier, at, bandwidth);
  };
  memory("hbm", "compute", pick(2, 20) * 10);
  memory("dram", io ? "io" : "compute", pick(2, 20) * 10);
  const Result<Package> p = parse_package(t, "tiny.toml");
  if (!p) FAIL(p.error().diagnostics.text() << "\n" << t);
  return *p;
}

Location tiny_location(const Package& p, Rng& rng) {
  const Tier tier = rng.below(3) > 0 ? Tier::hbm : Tier::dram;
  const int c = static_cast<int>(rng.below(p.compute_count));
  const auto visible = p.visible(tier, c);
  return {tier, c, visible[rng.below(visible.size())]};
}

struct Tiny {
  Package package;
  ModelShape model = shape("mixtral-8x7b");
  std::unique_ptr<Residency> directory;
  std::vector<TokenGroup> groups;
  bool mixed = false;  ///< some expert has whole copies beside shards

  explicit Tiny(Rng& rng) : package(tiny_package(rng)) {
    model.hidden = 1024;
    model.moe_ff = 256 << rng.below(4);
    model.experts = 2 + static_cast<int>(rng.below(5));
    directory = std::make_unique<Residency>(package, 1, model.experts, model.expert_bytes(), std::vector<Bytes>{});
    const bool shards = rng.below(3) == 0;
    for (int e = 0; e < model.experts; ++e) {
      std::vector<int> cuts{0, kSlices};
      if (shards && rng.below(2) == 0) cuts.insert(cuts.begin() + 1, 1 + static_cast<int>(rng.below(kSlices - 1)));
      for (size_t i = 0; i + 1 < cuts.size(); ++i) copies(rng, e, cuts[i], cuts[i + 1], 1 + rng.below(2));
      if (cuts.size() == 3 && rng.below(4) == 0) {
        copies(rng, e, 0, kSlices, 1);
        mixed = true;
      }
      const int most = 4 << rng.below(4);
      for (int s = 0; s < package.compute_count; ++s)
        if (const int n = static_cast<int>(rng.below(most)); n > 0) groups.push_back({e, s, n});
    }
    std::stable_sort(groups.begin(), groups.end(),
                     [](const TokenGroup& a, const TokenGroup& b) { return a.source < b.source; });
  }
  void copies(Rng& rng, int e, int begin, int end, std::uint64_t n) {
    const Slice slice{static_cast<std::uint8_t>(begin), static_cast<std::uint8_t>(end - begin)};
    std::uint64_t placed = 0;
    for (int tries = 0; placed < n && tries < 200; ++tries)
      placed += directory->place(0, e, tiny_location(package, rng), slice);
  }
};

/// Seconds of the fullest machine, counted anew from the assignment; fails unless every slice gets every token once.
double count(const DirectoryView& directory, const Package& package, const ModelShape& model,
             const std::vector<TokenGroup>& groups, const std::vector<Assignment>& x) {
  const CostModel cost(package, model);
  LayerLoad load(cost);
  std::map<int, int> tokens;
  std::vector<std::array<int, kSlices>> got(groups.size(), std::array<int, kSlices>{});
  for (const Assignment& a : x) {
    REQUIRE(a.tokens > 0);
    const Replica& r = directory.replica(a.replica);
    const TokenGroup& g = groups[static_cast<size_t>(a.group)];
    REQUIRE(r.expert == g.expert);
    for (int i = r.slice.first; i < r.slice.end(); ++i)
      got[static_cast<size_t>(a.group)][static_cast<size_t>(i)] += a.tokens;
    tokens[a.replica] += a.tokens;
    for (const auto route :
         {package.route_chiplets(g.source, r.at.chiplet), package.route_chiplets(r.at.chiplet, g.source)})
      for (int u : route) load.link[static_cast<size_t>(u)] += a.tokens * cost.token_bytes();
  }
  for (size_t g = 0; g < groups.size(); ++g)
    for (int n : got[g]) REQUIRE(n == groups[g].tokens);
  for (const auto& [id, n] : tokens) {
    const Replica& r = directory.replica(id);
    const double share = static_cast<double>(r.slice.count) / kSlices;
    load.compute[static_cast<size_t>(r.at.chiplet)] += share * cost.tiles(n) * cost.tile() * cost.token_s(r.at.chiplet);
    load.bank[static_cast<size_t>(r.at.bank_set)] += share * cost.stream_s(r.at.bank_set);
    for (int u : cost.set_route(r.at.bank_set, r.at.chiplet))
      load.link[static_cast<size_t>(u)] += share * cost.expert_bytes();
  }
  return load.time(cost);
}

/// The same objective as a mixed-integer program: x_{g,r} tokens, y_r tiles, z_r activated; y and z whole. Tokens may
/// be cut, which matters only for links and makes the optimum no worse than the true one. Seconds; -1: not solved.
double optimum(const Tiny& w) {
  const CostModel cost(w.package, w.model);
  const int chiplets = cost.chiplets(), sets = cost.sets(), links = static_cast<int>(w.package.links.size());
  const double unit = 1e-6;
  LinearProgram lp;
  const int t = lp.add_column(1.0);
  std::vector<int> machine;
  for (int m = 0; m < chiplets + sets + links; ++m) {
    machine.push_back(lp.add_row(-kLpInfinity, 0.0));
    lp.add(machine.back(), t, -1.0);
  }
  std::map<int, std::pair<int, int>> rows;  // replica: row of x <= tile y, column z
  std::vector<int> total(static_cast<size_t>(w.model.experts), 0);
  for (const TokenGroup& g : w.groups) total[static_cast<size_t>(g.expert)] += g.tokens;
  for (int e = 0; e < w.model.experts; ++e)
    for (int id : w.directory->replicas(0, e)) {
      const int n = total[static_cast<size_t>(e)];
      if (n == 0) continue;
      const Replica& r = w.directory->replica(id);
      const double share = static_cast<double>(r.slice.count) / kSlices;
      const int y = lp.add_column(0.0, 0.0, cost.tiles(n), true), z = lp.add_column(0.0, 0.0, 1.0, true);
      const int tiles = lp.add_row(-kLpInfinity, 0.0), awake = lp.add_row(-kLpInfinity, 0.0);
      lp.add(tiles, y, -cost.tile());
      lp.add(awake, z, 1.0);
      lp.add(awake, y, -1.0);
      rows[id] = {tiles, z};
      lp.add(machine[static_cast<size_t>(r.at.chiplet)], y, share * cost.tile() * cost.token_s(r.at.chiplet) / unit);
      lp.add(machine[static_cast<size_t>(chiplets + r.at.bank_set)], z, share * cost.stream_s(r.at.bank_set) / unit);
      for (int u : cost.set_route(r.at.bank_set, r.at.chiplet))
        lp.add(machine[static_cast<size_t>(chiplets + sets + u)], z,
               share * cost.expert_bytes() / cost.link_rate(u) / unit);
    }
  for (const TokenGroup& g : w.groups) {
    const auto replicas = w.directory->replicas(0, g.expert);
    std::array<int, kSlices> row{};
    for (int i = 0; i < kSlices; ++i) {  // a row for each run of slices with the same replicas
      const bool cut = i == 0 || std::any_of(replicas.begin(), replicas.end(), [&](int id) {
                         return w.directory->replica(id).slice.first == i || w.directory->replica(id).slice.end() == i;
                       });
      row[static_cast<size_t>(i)] = cut ? lp.add_row(g.tokens, g.tokens) : -1;
    }
    for (int id : replicas) {
      const Replica& r = w.directory->replica(id);
      const int x = lp.add_column(0.0, 0.0, g.tokens);
      for (int i = r.slice.first; i < r.slice.end(); ++i)
        if (row[static_cast<size_t>(i)] >= 0) lp.add(row[static_cast<size_t>(i)], x, 1.0);
      lp.add(rows[id].first, x, 1.0);
      const int active = lp.add_row(-kLpInfinity, 0.0);
      lp.add(active, x, 1.0);
      lp.add(active, rows[id].second, -g.tokens);
      for (const auto route :
           {w.package.route_chiplets(g.source, r.at.chiplet), w.package.route_chiplets(r.at.chiplet, g.source)})
        for (int u : route)
          lp.add(machine[static_cast<size_t>(chiplets + sets + u)], x, cost.token_bytes() / cost.link_rate(u) / unit);
    }
  }
  LpLimits limits;
  limits.nodes = 4000;
  const LpSolution s = solve(lp, limits);
  return s.solved() ? s.objective * unit : -1;
}

}  // namespace

TEST_CASE("makespan dispatch is within 1 % of the mixed-integer optimum on tiny cases") {
  Rng rng(1, "makespan");
  MakespanDispatcher dispatcher;
  struct Gap {
    int cases = 0, exact = 0;
    double sum = 0, worst = 0;
    [[nodiscard]] std::string text() const {
      return fmt::format("{} cases, {} at the optimum, gap {:.4f} % on average, {:.4f} % at worst", cases, exact,
                         100 * sum / std::max(1, cases), 100 * worst);
    }
  } clean, mixed;
  int unsolved = 0;
  for (int round = 0; round < 400; ++round) {
    const Tiny w(rng);
    if (w.groups.empty()) continue;
    CAPTURE(round);
    const CostModel cost(w.package, w.model);
    std::vector<Assignment> x;
    dispatcher.assign(cost, *w.directory, {0, w.groups}, x);
    const double mine = count(*w.directory, w.package, w.model, w.groups, x);
    CHECK(dispatcher.time() == doctest::Approx(mine).epsilon(1e-9));
    const double least = optimum(w);
    if (least <= 0) {
      ++unsolved;
      continue;
    }
    const double gap = mine / least - 1;
    CHECK(gap > -1e-6);
    if (!w.mixed) CHECK(gap <= 0.01);
    Gap& into = w.mixed ? mixed : clean;
    ++into.cases;
    into.exact += gap < 1e-6;
    into.sum += gap;
    into.worst = std::max(into.worst, gap);
  }
  MESSAGE("whole copies, or shards that partition: ", clean.text(),
          "; whole copies beside shards of one expert: ", mixed.text(), "; not solved by CBC: ", unsolved);
  CHECK(clean.cases >= 300);
}

TEST_CASE("makespan dispatch sends every slice of every token once and is never worse than simpler rules") {
  for (const char* layout : {"eplb", "llep", "hcrmap", "sojourn"})
    for (const char* model : {"deepseek-v2-lite", "mixtral-8x7b"})
      for (const int tokens : {32, 512, 2048}) {
        CAPTURE(layout);
        CAPTURE(model);
        CAPTURE(tokens);
        World w(table1(), shape(model), 2, tokens, 0.9);
        auto policy = make(layout);
        w.task.limits = policy->limits(ResidencyLimits{});
        w.task.limits.budget =
            static_cast<Bytes>(policy->budget_factor(1.3) * 2 * w.profile.experts) * w.model.expert_bytes();
        policy->place(w.task, w.placed);
        Residency directory(w.package, 2, w.profile.experts, w.model.expert_bytes(), std::vector<Bytes>{});
        bool whole = true;
        for (const PlacedReplica& r : w.placed) {
          REQUIRE(directory.place(r.layer, r.expert, r.at, r.slice));
          whole = whole && r.slice.whole();
        }
        const CostModel cost(w.package, w.model);
        const auto choice = w.traffic.window();
        MakespanDispatcher mine, again;
        for (int l = 0; l < 2; ++l) {
          const auto groups = w.traffic.groups(choice[static_cast<size_t>(l)]);
          std::vector<Assignment> x, y;
          mine.assign(cost, directory, {l, groups}, x);
          const double time = count(directory, w.package, w.model, groups, x);
          CHECK(mine.time() == doctest::Approx(time).epsilon(1e-9));
          again.assign(cost, directory, {l, groups}, y);
          REQUIRE(x.size() == y.size());
          for (size_t i = 0; i < x.size(); ++i)
            CHECK((x[i].group == y[i].group && x[i].replica == y[i].replica && x[i].tokens == y[i].tokens));
          if (!whole) continue;  // the other rules know no shards
          const auto no_worse = [&](auto&& rule) {
            std::vector<Assignment> other;
            rule.assign(cost, directory, {l, groups}, other);
            CHECK(time <= count(directory, w.package, w.model, groups, other) * (1 + 1e-9));
          };
          no_worse(Dispatcher(Dispatch::nearest));
          no_worse(Dispatcher(Dispatch::even));
          no_worse(Dispatcher(Dispatch::least_loaded));
          std::vector<Assignment> fast;
          FastMapper().map(cost, directory, {l, groups}, fast);
          CHECK(time <= count(directory, w.package, w.model, groups, fast) * (1 + 1e-9));
        }
      }
}
