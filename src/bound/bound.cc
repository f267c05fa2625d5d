// The window's bound: closed-form terms of each layer, and the linear program that couples layers; see bound.h.
#include "bound/bound.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "solver/lp.h"

namespace sojourn {
namespace {

constexpr double kExact = 1 - 1e-9;  // the relative error of Rate's fixed point is below this, see units.h
constexpr double kUs = 1e6;          // ps; the program is written in microseconds and megabytes
constexpr double kMb = 1e6;

bool holds(std::size_t subset, std::size_t tier) { return (subset >> tier & 1U) != 0; }

}  // namespace

double Bound::Layer::least() const { return std::max({0.0, compute, critical, links}); }

BoundResource Bound::Layer::resource() const {
  if (compute >= std::max(critical, links)) return BoundResource::compute;
  return critical >= links ? BoundResource::critical_group : BoundResource::links;
}

Bound::Bound(const Package& package, const TierRates& rates, BoundRules rules)
    : package_(package), rates_(rates), rules_(std::move(rules)) {
  for (int c = 0; c < package.compute_count; ++c)
    rates_of_cores_.push_back(static_cast<double>(package.chiplet_rate(c).per_second()) * 1e-12);
  std::sort(rates_of_cores_.rbegin(), rates_of_cores_.rend());
  for (double r : rates_of_cores_) core_rate_ += r;
  const Bytes slice = rules_.expert_bytes / kSlices, larger = (rules_.expert_bytes + kSlices - 1) / kSlices;
  set_slices_.assign(package.bank_sets.size(), 0);
  for (std::size_t s = 0; s < package.bank_sets.size(); ++s) {
    const Bytes room = std::max<Bytes>(0, rules_.set_bytes[s]);
    // Banks hold whole slices; slices differ by a byte at most.
    const Bytes fit = slice > 0 ? room / slice : std::min<Bytes>(room, 1) << 30;
    set_slices_[s] = fit;
    const auto t = static_cast<std::size_t>(package.bank_sets[s].tier);
    slices_[t] += fit;
    capacity_[t] += static_cast<double>(slice > 0 ? std::min(room, fit * larger) : room);
  }
  first_weights();
  last_weights();
  hop_ = kLpInfinity;
  std::vector<char> first_link(package.links.size(), 0);
  for (int a = 0; a < package.compute_count; ++a)
    for (int b = 0; b < package.compute_count; ++b) {
      if (a == b) continue;
      const auto path = package.route_chiplets(a, b);
      Ps latency = 0, serve = 0;
      for (int u : path) {
        const Link& link = package.links[static_cast<std::size_t>(u)];
        latency += link.latency;
        serve = std::max(serve, link.bandwidth.time(rules_.token_bytes));
      }
      hop_ = std::min(hop_, static_cast<double>(latency + serve));
      if (!path.empty()) first_link[static_cast<std::size_t>(path.front())] = 1;
    }
  for (std::size_t u = 0; u < first_link.size(); ++u)
    if (first_link[u]) out_rate_ += static_cast<double>(package.links[u].bandwidth.per_second()) * 1e-12;
}

int Bound::tiles(int slices, Bytes bytes, bool remote) const {
  const int least = (package_.weight_tiles * slices + kSlices - 1) / kSlices;
  const Bytes limit = 8 * package_.chunk_bytes;  // see Executor::prepare
  return remote ? static_cast<int>(std::max<Bytes>(least, (bytes + limit - 1) / limit)) : least;
}

Bytes Bound::least_tile(bool remote) const {
  Bytes least = rules_.expert_bytes;
  for (int k = 1; k <= kSlices; ++k) {
    const Bytes bytes = rules_.expert_bytes * k / kSlices;  // where a run of k slices starts may add one byte
    least = std::min(least, bytes / tiles(k, bytes + 1, remote));
  }
  return least;
}

Macs Bound::least_tile_work(bool remote) const {
  Macs least = rules_.macs_per_token * package_.tile_tokens;
  for (int k = 1; k <= kSlices; ++k) {
    const Bytes bytes = rules_.expert_bytes * k / kSlices;
    const Macs work = rules_.macs_per_token * k / kSlices * package_.tile_tokens;
    least = std::min(least, work / tiles(k, bytes + 1, remote));
  }
  return least;
}

void Bound::first_weights() {
  if (!rules_.events) {  // the closed form lets compute start at once
    first_.any.assign(rates_of_cores_.size(), 0);
    first_.common = first_.any;
    return;
  }
  const auto chiplets = static_cast<std::size_t>(package_.compute_count);
  std::array<bool, kTiers> scarce{};
  bool all = true;
  for (std::size_t t = 0; t < kTiers; ++t) {
    scarce[t] = slices_[t] < static_cast<std::int64_t>(chiplets) * rules_.layers;
    all = all && scarce[t];
  }
  if (all) scarce = {};
  first_.scarce = kLpInfinity;
  std::vector<double> route(package_.bank_sets.size(), kLpInfinity);  // least over the chiplets that see the set
  std::vector<int> seen_by(package_.bank_sets.size(), 0);
  std::vector<char> local(package_.bank_sets.size(), 0), across(package_.bank_sets.size(), 0);
  for (int t = 0; t < kTiers; ++t)
    for (int c = 0; c < package_.compute_count; ++c)
      for (int set : package_.visible(static_cast<Tier>(t), c)) {
        const auto s = static_cast<std::size_t>(set);
        const int owner = package_.bank_sets[s].owner;
        double latency = 0;
        for (int u : package_.route_chiplets(owner, c))
          latency += static_cast<double>(package_.links[static_cast<std::size_t>(u)].latency);
        route[s] = std::min(route[s], latency);
        local[s] = local[s] || owner == c;
        across[s] = across[s] || owner != c;
        ++seen_by[s];
      }
  for (std::size_t s = 0; s < package_.bank_sets.size(); ++s) {
    if (set_slices_[s] == 0 || seen_by[s] == 0) continue;
    const BankSet& set = package_.bank_sets[s];
    const bool rare = scarce[static_cast<std::size_t>(set.tier)];
    if (rare) first_.scarce_starts += set_slices_[s];
    Bytes tile = rules_.expert_bytes;
    if (across[s]) tile = std::min(tile, least_tile(true));
    if (local[s]) tile = std::min(tile, least_tile(false));
    const double serve = static_cast<double>(Rate(set.bandwidth).time(tile)) * kExact;
    const auto access = static_cast<double>(package_.banks[static_cast<std::size_t>(set.first_bank)].latency);
    for (int k = 1; k <= seen_by[s]; ++k) {  // first tiles from one set follow one another
      const double at = std::max(0.0, access + route[s] + k * (serve - 1));
      first_.any.push_back(at);
      if (rare)
        first_.scarce = std::min(first_.scarce, at);
      else
        first_.common.push_back(at);
    }
  }
  for (std::vector<double>* v : {&first_.any, &first_.common}) {
    v->resize(std::max(v->size(), chiplets), kLpInfinity);
    std::sort(v->begin(), v->end());
    v->resize(chiplets);
  }
}

void Bound::last_weights() {
  for (std::size_t q = 1; q < TierRates::kSubsets; ++q) {
    double least = kLpInfinity;
    for (int t = 0; t < kTiers; ++t) {
      if (!holds(q, static_cast<std::size_t>(t))) continue;
      for (int c = 0; c < package_.compute_count; ++c)
        for (int s : package_.visible(static_cast<Tier>(t), c)) {
          if (set_slices_[static_cast<std::size_t>(s)] == 0) continue;
          const BankSet& set = package_.bank_sets[static_cast<std::size_t>(s)];
          auto tail = static_cast<double>(package_.banks[static_cast<std::size_t>(set.first_bank)].latency);
          if (rules_.events) {
            if (!rates_.links[q])
              for (int u : package_.route_chiplets(set.owner, c))
                tail += static_cast<double>(package_.links[static_cast<std::size_t>(u)].latency);
            tail += static_cast<double>(least_tile_work(set.owner != c)) / rates_of_cores_.front() * kExact - 1;
          } else if (rates_.links[q]) {
            tail = 0;
          }
          least = std::min(least, tail);
        }
    }
    tail_[q] = std::isinf(least) ? 0 : std::max(0.0, least);
  }
}

double Bound::start_to_end(double work, const std::vector<double>& first) const {
  // Only the chiplets that start before the end take part: the least over how many they are.
  double best = kLpInfinity, rate = 0, lost = 0;
  for (std::size_t n = 0; n < first.size() && !std::isinf(first[n]); ++n) {
    rate += rates_of_cores_[n];
    lost += rates_of_cores_.back() * first[n];
    best = std::min(best, (work + lost) / rate);
  }
  return std::isinf(best) ? 0 : best;
}

void Bound::add(const BoundDemand& d) {
  Layer layer;
  std::int64_t active = 0, most = 0, moved = 0;
  Macs work = 0;
  const Macs tile = package_.tile_tokens;
  const auto chiplets = static_cast<std::size_t>(package_.compute_count);
  const auto replicas = static_cast<std::size_t>(std::max(1, rules_.replicas_max));
  bool away = false;
  std::vector<int> by_source;
  for (std::size_t e = 0; e < d.demand->size(); ++e) {
    const int n = (*d.demand)[e];
    if (n == 0) continue;
    ++active;
    most = std::max<std::int64_t>(most, n);
    work += rules_.macs_per_token * tile * ((n + tile - 1) / tile);
    if (d.sources == nullptr || replicas >= chiplets) continue;
    by_source.clear();
    for (std::size_t c = 0; c < chiplets; ++c)
      if (const int from = (*d.sources)[c * d.demand->size() + e]; from > 0) by_source.push_back(from);
    if (by_source.size() <= replicas) continue;
    std::sort(by_source.begin(), by_source.end());
    for (std::size_t i = 0; i + replicas < by_source.size(); ++i) moved += by_source[i];
    away = true;
  }
  double combine = kLpInfinity;
  for (std::size_t c = 0; c < d.aggregated.size(); ++c)
    if (d.aggregated[c] > 0)
      combine = std::min(
          combine,
          static_cast<double>(
              package_.chiplet_rate(static_cast<int>(c)).time(d.aggregated[c] * rules_.combine_macs_per_token)));
  layer.fixed = static_cast<double>(d.gate) + (std::isinf(combine) ? 0 : combine);
  if (active > 0) {
    const double fastest = rates_of_cores_.front();
    const double jobs = static_cast<double>(active) * kSlices * static_cast<double>(replicas);
    layer.bytes = static_cast<double>(active) * static_cast<double>(rules_.expert_bytes);
    // Half a picosecond a read of a bank, of which no expert needs more than its slices, and a tile on a link.
    layer.rounding = 1 + 0.5 * kSlices * static_cast<double>(active);
    layer.link_rounding =
        layer.rounding + 0.5 * static_cast<double>(active * (kSlices + tiles(kSlices, rules_.expert_bytes, true)));
    const double macs = static_cast<double>(work) * kExact - 0.5 * jobs * fastest;
    layer.credit = macs / core_rate_ >= first_.common.back() && first_.scarce < first_.common.back();
    layer.compute = start_to_end(std::max(0.0, macs), layer.credit ? first_.common : first_.any) - 1;
    // One replica of some slice gets its share of the largest expert's tokens, all on one chiplet.
    const auto spread = static_cast<std::int64_t>(std::min(replicas, chiplets));
    const Macs slice = rules_.macs_per_token / kSlices * tile;
    const std::int64_t share = (most + spread - 1) / spread;
    const double start = std::isinf(first_.any.front()) ? 0 : first_.any.front();
    layer.critical = start + static_cast<double>(slice * ((share + tile - 1) / tile)) / fastest * kExact - 2;
    if (away && !std::isinf(hop_))
      layer.critical = std::max(layer.critical, 2 * (hop_ - 1) + static_cast<double>(slice) / fastest * kExact - 2);
    if (moved > 0 && out_rate_ > 0) {
      const auto tokens = static_cast<double>(moved);
      layer.links = 2 * tokens * static_cast<double>(rules_.token_bytes) / out_rate_ * kExact - tokens;
    }
  }
  layers_.push_back(layer);
}

double Bound::limit(std::size_t subset, double duration) const {
  return std::max(0.0, rates_.bytes_per_s[subset] * 1e-12 * (duration - tail_[subset]));
}

bool Bound::admits(const std::vector<double>& durations) const {
  // Farthest tier first, so that near capacity is kept for layers that need it. Enough, not necessary.
  std::array<double, kTiers> room = capacity_;
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    double left = layers_[l].bytes;
    std::array<double, kTiers> y{};
    for (std::size_t t = kTiers; t-- > 0;) {
      double most = std::min(room[t], left);
      for (std::size_t q = 1; q < TierRates::kSubsets; ++q) {
        if (!holds(q, t)) continue;
        double others = 0;
        for (std::size_t o = 0; o < kTiers; ++o) others += holds(q, o) ? y[o] : 0;
        most = std::min(most, limit(q, durations[l]) - others);
      }
      y[t] = std::max(0.0, most);
      room[t] -= y[t];
      left -= y[t];
    }
    if (left > 0) return false;
  }
  return true;
}

double Bound::program(std::vector<BoundResource>& resources) const {
  LinearProgram lp;
  struct Row {
    int row;
    std::size_t subset;
  };
  std::vector<std::vector<Row>> rows(layers_.size());
  std::array<int, kTiers> capacity_row{};
  for (std::size_t t = 0; t < kTiers; ++t) capacity_row[t] = lp.add_row(-kLpInfinity, capacity_[t] / kMb);
  double slowest = kLpInfinity;  // of the tiers, for an upper limit of D that no optimum passes
  for (std::size_t t = 0; t < kTiers; ++t)
    if (capacity_[t] > 0) slowest = std::min(slowest, rates_.bytes_per_s[std::size_t{1} << t] * 1e-12);
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const Layer& layer = layers_[l];
    const double bytes = layer.bytes * kExact / kMb, most = layer.least() + tail_.back() + 1e6;
    const int d = lp.add_column(1, layer.least() / kUs,
                                (most + kTiers * (layer.bytes / slowest + layer.link_rounding + 1e9)) / kUs);
    const int need = lp.add_row(bytes, kLpInfinity);
    std::array<int, kTiers> y{};
    for (std::size_t t = 0; t < kTiers; ++t) {
      y[t] = lp.add_column(0, 0, capacity_[t] > 0 ? bytes : 0);
      lp.add(need, y[t], 1);
      lp.add(capacity_row[t], y[t], 1);
    }
    for (std::size_t q = 1; q < TierRates::kSubsets; ++q) {
      const double rate = rates_.bytes_per_s[q] * 1e-12 * kUs / kMb;  // MB/us
      if (rate <= 0) continue;
      double apart = 0;
      for (std::size_t t = 0; t < kTiers; ++t)
        if (holds(q, t)) apart += rates_.bytes_per_s[std::size_t{1} << t];
      if ((q & (q - 1)) != 0 && rates_.bytes_per_s[q] >= apart * kExact) continue;  // the single tiers say as much
      const double tail = std::min(tail_[q], layer.least());
      // sum y - F D <= -F (delta - rounding)
      const double rounding = rates_.links[q] ? layer.link_rounding : layer.rounding;
      const int row = lp.add_row(-kLpInfinity, -rate * (tail - rounding) / kUs);
      for (std::size_t t = 0; t < kTiers; ++t)
        if (holds(q, t)) lp.add(row, y[t], 1);
      lp.add(row, d, -rate);
      rows[l].push_back({row, q});
    }
  }
  const LpSolution s = solve(lp);
  if (s.price.empty()) return 0;
  std::size_t fullest = kTiers;
  for (std::size_t t = 0; t < kTiers; ++t) {
    const auto price = [&](std::size_t tier) { return s.price[static_cast<std::size_t>(capacity_row[tier])]; };
    if (price(t) * capacity_[t] < -1e-6 * kMb &&
        (fullest == kTiers || price(t) * capacity_[t] < price(fullest) * capacity_[fullest]))
      fullest = t;
  }
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    double most = 0;
    std::size_t subset = 0;
    for (const Row& r : rows[l])
      if (const double w = -s.price[static_cast<std::size_t>(r.row)] * rates_.bytes_per_s[r.subset]; w > most) {
        most = w;
        subset = r.subset;
      }
    if (subset == 0 || (!s.x.empty() && s.x[l * (kTiers + 1)] * kUs <= layers_[l].least() * (1 + 1e-9))) continue;
    if (fullest < kTiers) {
      resources[l] =
          static_cast<BoundResource>(static_cast<int>(BoundResource::sram_capacity) + static_cast<int>(fullest));
    } else if (rates_.links[subset]) {
      resources[l] = BoundResource::links;
    } else {
      int tier = 0;
      while (!holds(subset, static_cast<std::size_t>(tier))) ++tier;
      resources[l] = static_cast<BoundResource>(static_cast<int>(BoundResource::sram_bandwidth) + tier);
    }
  }
  return dual_bound(lp, s.price, 0) * kUs;
}

double Bound::credit() const {
  std::int64_t layers = 0, left = first_.scarce_starts;
  for (const Layer& l : layers_) layers += l.credit;
  double saved = 0;
  for (std::size_t k = first_.common.size(); k-- > 0 && layers > 0 && left > 0;) {
    const double one = first_.common[k] - first_.scarce;
    if (one <= 0) break;
    const std::int64_t n = std::min(layers, left);
    saved += one * static_cast<double>(n);
    left -= n;
  }
  return saved * rates_of_cores_.back() / core_rate_;
}

WindowBound Bound::window() {
  WindowBound out;
  double fixed = 0, least = 0;
  std::vector<double> durations;
  for (const Layer& l : layers_) {
    fixed += l.fixed;
    durations.push_back(l.least());
    least += durations.back();
    out.resources.push_back(l.resource());
  }
  if (!admits(durations)) least = std::max(least, program(out.resources));
  out.latency = static_cast<Ps>(std::max(0.0, std::floor(fixed + least * kExact - credit()) - 1));
  layers_.clear();
  return out;
}

WindowBound layer_bound(const Package& package, const BoundRules& rules, const BoundDemand& layer) {
  const TierRates rates = tier_rates(package);
  Bound bound(package, rates, rules);
  bound.add(layer);
  return bound.window();
}

}  // namespace sojourn
