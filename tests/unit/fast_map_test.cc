// The fast mapper against its plain form, bit by bit: Algorithm 2 as written in fast_map.h, every cost worked out for
// every block from scratch, on random layouts, link rates, weights and groups.
#include "policy/fast_map.h"

#include <cstring>

#include "policy_fixture.h"

using namespace policy_test;

namespace {

struct Plain {
  MapWeights w;
  std::vector<double> chiplet_s, bank_s, link_s;
  const CostModel* cost = nullptr;

  struct Candidate {
    int replica = 0, chiplet = 0, set = 0, tokens = 0;
    bool woken = false;
    double queue = 0, path = 0, bank = 0, stream = 0;
  };

  void add(std::span<const int> route, double bytes) {
    for (const int u : route) link_s[u] += bytes / cost->link_rate(u);
  }
  void wake(const Location& at) {
    bank_s[at.bank_set] += cost->stream_s(at.bank_set);
    add(cost->set_route(at.bank_set, at.chiplet), cost->expert_bytes());
  }

  void map(const CostModel& model, const DirectoryView& directory, const LayerTask& task,
           std::vector<Assignment>& out) {
    cost = &model;
    const int n = cost->chiplets();
    chiplet_s.assign(n, 0.0), bank_s.assign(cost->sets(), 0.0), link_s.assign(cost->package().links.size(), 0.0);
    std::vector<int> tokens(directory.experts(), 0), seen, several;
    std::vector<std::int64_t> flow(n * n, 0);
    for (size_t g = 0; g < task.groups.size(); ++g) {
      const TokenGroup& group = task.groups[g];
      const auto list = directory.replicas(task.layer, group.expert);
      auto& order = list.size() == 1 ? seen : several;
      if (std::find(order.begin(), order.end(), group.expert) == order.end()) order.push_back(group.expert);
      if (group.tokens <= 0) continue;
      tokens[group.expert] += group.tokens;
      if (list.size() > 1) continue;
      flow[group.source * n + directory.replica(list[0]).at.chiplet] += group.tokens;
      out.push_back({static_cast<int>(g), list[0], group.tokens});
    }
    for (const int e : seen) {
      if (tokens[e] == 0) continue;
      const Location at = directory.replica(directory.replicas(task.layer, e)[0]).at;
      chiplet_s[at.chiplet] += cost->tiles(tokens[e]) * cost->tile() * cost->token_s(at.chiplet);
      wake(at);
    }
    for (int s = 0; s < n; ++s)
      for (int c = 0; c < n; ++c) {
        if (flow[s * n + c] == 0 || s == c) continue;
        const double bytes = static_cast<double>(flow[s * n + c]) * cost->token_bytes();
        add(cost->package().route_chiplets(s, c), bytes);
        add(cost->package().route_chiplets(c, s), bytes);
      }
    std::sort(several.begin(), several.end(),
              [&](int a, int b) { return tokens[a] != tokens[b] ? tokens[a] > tokens[b] : a < b; });
    for (const int e : several) map_expert(directory, task, e, out);
  }

  void map_expert(const DirectoryView& directory, const LayerTask& task, int e, std::vector<Assignment>& out) {
    std::vector<Candidate> all;
    for (const int id : directory.replicas(task.layer, e)) {
      Candidate c;
      c.replica = id, c.chiplet = directory.replica(id).at.chiplet, c.set = directory.replica(id).at.bank_set;
      all.push_back(c);
    }
    for (size_t g = 0; g < task.groups.size(); ++g) {
      if (task.groups[g].expert != e) continue;
      for (int left = task.groups[g].tokens; left > 0;) {
        int block = std::min(left, std::max(1, w.block));
        size_t chosen = 0;
        while (chosen < all.size() && all[chosen].tokens % cost->tile() == 0) ++chosen;
        if (chosen < all.size()) {
          block = std::min(left, cost->tile() - all[chosen].tokens % cost->tile());
        } else {
          for (Candidate& c : all) score(c, task.groups[g].source, block);
          chosen = pick(all);
        }
        left -= block;
        Candidate& c = all[chosen];
        chiplet_s[c.chiplet] +=
            (cost->tiles(c.tokens + block) - cost->tiles(c.tokens)) * cost->tile() * cost->token_s(c.chiplet);
        c.tokens += block;
        if (!c.woken) wake({Tier::hbm, c.chiplet, c.set});
        c.woken = true;
        add(cost->package().route_chiplets(task.groups[g].source, c.chiplet), block * cost->token_bytes());
        add(cost->package().route_chiplets(c.chiplet, task.groups[g].source), block * cost->token_bytes());
        if (!out.empty() && out.back().group == static_cast<int>(g) && out.back().replica == c.replica) {
          out.back().tokens += block;
        } else {
          out.push_back({static_cast<int>(g), c.replica, block});
        }
      }
    }
  }

  void score(Candidate& c, int source, int tokens) const {
    const double step = cost->tile() * cost->token_s(c.chiplet);
    c.queue = chiplet_s[c.chiplet] + (cost->tiles(c.tokens + tokens) - cost->tiles(c.tokens)) * step;
    c.stream = c.woken ? 0.0 : cost->stream_s(c.set);
    c.bank = bank_s[c.set] + c.stream;
    c.path = 0;
    if (w.path == 0) return;
    const auto walk = [&](std::span<const int> route, double bytes) {
      for (const int u : route) c.path = std::max(c.path, link_s[u] + bytes / cost->link_rate(u));
    };
    walk(cost->package().route_chiplets(source, c.chiplet), tokens * cost->token_bytes());
    walk(cost->package().route_chiplets(c.chiplet, source), tokens * cost->token_bytes());
    if (!c.woken) walk(cost->set_route(c.set, c.chiplet), cost->expert_bytes());
  }

  size_t pick(std::vector<Candidate>& all) const {
    if (w.minmax)
      for (double Candidate::*term : {&Candidate::queue, &Candidate::path, &Candidate::bank, &Candidate::stream}) {
        double lo = all[0].*term, hi = lo;
        for (const Candidate& c : all) lo = std::min(lo, c.*term), hi = std::max(hi, c.*term);
        for (Candidate& c : all) c.*term = hi > lo ? (c.*term - lo) / (hi - lo) : 0.0;
      }
    size_t best = 0;
    double best_cost = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      const Candidate& c = all[i];
      const double total = w.queue * c.queue + w.path * c.path + w.bank * c.bank + w.stream * c.stream;
      if (i == 0 || total < best_cost) best = i, best_cost = total;
    }
    return best;
  }
};

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0);
}

}  // namespace

TEST_CASE("the fast mapper gives every assignment and counter of its plain form, to the bit") {
  Rng rng(11, "fast map");
  const Package presets[] = {table1(), *load_package("hcrmap-total", {std::string(SOJOURN_SOURCE_DIR) + "/packages"})};
  const ModelShape models[] = {shape("deepseek-v2-lite"), shape("mixtral-8x7b"), shape("deepseek-v3")};
  std::int64_t split = 0, blocks = 0;
  for (int round = 0; round < 400; ++round) {
    Package package = presets[rng.below(2)];
    for (Bank& b : package.banks) b.capacity *= 64;  // room for every layout drawn
    // The link that decides must often be another one: rates from a thousandth of the preset's to all of it.
    const double slow = std::pow(10.0, -3.0 * rng.uniform());
    for (Link& l : package.links)
      if (rng.below(3) == 0)
        l.bandwidth = Rate(static_cast<std::uint64_t>(static_cast<double>(l.bandwidth.per_second()) * slow));
    if (rng.below(10) == 0) {  // no links at all, as on a single chiplet
      package.links.clear();
      package.route_links.clear();
      std::fill(package.route_first.begin(), package.route_first.end(), size_t{0});
    }
    const ModelShape& model = models[rng.below(3)];
    const CostModel cost(package, model);
    Residency directory(package, 2, model.experts, model.expert_bytes(), std::vector<Bytes>{});
    for (int l = 0; l < 2; ++l)
      for (int e = 0; e < model.experts; ++e) {
        const int wanted = rng.below(3) == 0 ? 1 : 1 + static_cast<int>(rng.below(6));
        for (int i = 0; i < wanted; ++i) {
          const int c = static_cast<int>(rng.below(package.compute_count));
          const Tier t = rng.below(2) == 0 ? Tier::dram : Tier::hbm;
          const auto sets = package.visible(t, c);
          if (!sets.empty()) (void)directory.place(l, e, {t, c, sets[rng.below(sets.size())]});
        }
        for (int s = 0; directory.replicas(l, e).empty(); ++s) {
          REQUIRE(s < static_cast<int>(package.bank_sets.size()));
          const BankSet& set = package.bank_sets[static_cast<size_t>(s)];
          const int c = package.chiplets[static_cast<size_t>(set.owner)].compute ? set.owner : 0;
          (void)directory.place(l, e, {set.tier, c, s});
        }
      }
    MapWeights w;
    const auto weight = [&] { return rng.below(4) == 0 ? 0.0 : rng.uniform(); };
    w.queue = weight(), w.path = weight() * (rng.below(2) == 0 ? 1.0 : 100.0), w.bank = weight(), w.stream = weight();
    w.minmax = rng.below(4) == 0;
    w.block = 1 + static_cast<int>(rng.below(rng.below(2) == 0 ? 100 : 16));
    FastMapper fresh(w);
    Plain plain{w, {}, {}, {}};
    for (int l = 0; l < 2; ++l) {
      std::vector<TokenGroup> groups;
      const auto most = 1 + rng.below(rng.below(2) == 0 ? 4 : 90);
      for (int s = 0; s < package.compute_count; ++s)
        for (int e = 0; e < model.experts; ++e)
          if (rng.below(3) > 0) groups.push_back({e, s, static_cast<int>(rng.below(most + 1))});
      std::vector<Assignment> x, y;
      fresh.map(cost, directory, {l, groups}, x);
      plain.map(cost, directory, {l, groups}, y);
      REQUIRE(x.size() == y.size());
      bool same = true;
      for (size_t i = 0; i < x.size(); ++i) {
        same = same && x[i].group == y[i].group && x[i].replica == y[i].replica && x[i].tokens == y[i].tokens;
        split += directory.replicas(l, groups[static_cast<size_t>(x[i].group)].expert).size() > 1;
      }
      CHECK(same);
      CHECK(same_bits(fresh.chiplet_s(), plain.chiplet_s));
      CHECK(same_bits(fresh.bank_s(), plain.bank_s));
      CHECK(same_bits(fresh.link_s(), plain.link_s));
      blocks += static_cast<std::int64_t>(x.size());
    }
  }
  MESSAGE(blocks << " assignments, " << split << " of split experts");
  CHECK(split > 10000);
}
