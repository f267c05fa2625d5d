// The window's bound: closed-form terms of each layer, and the linear program that couples layers; see bound.h.
#include "bound/bound.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace sojourn {
namespace {

constexpr double kExact = 1 - 1e-9;  // the relative error of Rate's fixed point is below this, see units.h

constexpr double kNever = std::numeric_limits<double>::infinity();

bool holds(std::size_t subset, std::size_t tier) { return (subset >> tier & 1U) != 0; }

}  // namespace

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
    // Banks hold whole slices; slices differ by a byte at most, and those of an expert under 16 B may be empty.
    const Bytes fit = slice > 0 ? room / slice : Bytes{1} << 30;
    set_slices_[s] = fit;
    const auto t = static_cast<std::size_t>(package.bank_sets[s].tier);
    slices_[t] += fit;
    capacity_[t] += static_cast<double>(slice > 0 ? std::min(room, fit * larger) : room);
  }
  first_weights();
  last_weights();
  hop_ = kNever;
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
  first_.scarce = kNever;
  std::vector<double> route(package_.bank_sets.size(), kNever);  // least over the chiplets that see the set
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
    v->resize(std::max(v->size(), chiplets), kNever);
    std::sort(v->begin(), v->end());
    v->resize(chiplets);
  }
}

void Bound::last_weights() {
  for (std::size_t q = 1; q < TierRates::kSubsets; ++q) {
    double least = kNever;
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
            tail += static_cast<double>(least_tile_work(set.owner != c)) / rates_of_cores_.front() * kExact - 2;
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
  double best = kNever, rate = 0, lost = 0;
  for (std::size_t n = 0; n < first.size() && !std::isinf(first[n]); ++n) {
    rate += rates_of_cores_[n];
    lost += rates_of_cores_.back() * first[n];
    best = std::min(best, (work + lost) / rate);
  }
  return std::isinf(best) ? 0 : best;
}

namespace {

/// Tokens whose source cannot hold their expert: all but those of the `replicas` largest sources of each expert.
std::int64_t must_travel(const BoundDemand& d, std::size_t chiplets, std::size_t replicas) {
  std::int64_t moved = 0;
  std::vector<int> by_source;
  const std::size_t experts = d.demand->size();
  for (std::size_t e = 0; e < experts; ++e) {
    by_source.clear();
    for (std::size_t c = 0; c < chiplets; ++c)
      if (const int from = (*d.sources)[c * experts + e]; from > 0) by_source.push_back(from);
    if (by_source.size() <= replicas) continue;
    std::sort(by_source.begin(), by_source.end());
    for (std::size_t i = 0; i + replicas < by_source.size(); ++i) moved += by_source[i];
  }
  return moved;
}

}  // namespace

void Bound::add(const BoundDemand& d) {
  Layer layer;
  std::int64_t active = 0, most = 0, tokens = 0;
  Macs work = 0;
  const Macs tile = package_.tile_tokens;
  const auto chiplets = static_cast<std::size_t>(package_.compute_count);
  const auto replicas = static_cast<std::size_t>(std::max(1, rules_.replicas_max));
  for (std::size_t e = 0; e < d.demand->size(); ++e) {
    const int n = (*d.demand)[e];
    if (n == 0) continue;
    ++active;
    most = std::max<std::int64_t>(most, n);
    work += rules_.macs_per_token * tile * ((n + tile - 1) / tile);
    tokens += n;
  }
  double combine = kNever;
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
    layer.program.bytes = static_cast<double>(active) * static_cast<double>(rules_.expert_bytes);
    // Half a picosecond a read of a bank, of which no expert needs more than its slices, and a tile on a link.
    layer.program.rounding = 1 + 0.5 * kSlices * static_cast<double>(active);
    layer.program.link_rounding =
        layer.program.rounding +
        0.5 * static_cast<double>(active * (kSlices + tiles(kSlices, rules_.expert_bytes, true)));
    const double macs = static_cast<double>(work) * kExact - 0.5 * jobs * fastest;
    layer.credit = macs / core_rate_ >= first_.common.back() && first_.scarce < first_.common.back();
    layer.compute = start_to_end(std::max(0.0, macs), layer.credit ? first_.common : first_.any) - 1;
    // One replica of some slice gets its share of the largest expert's tokens, all on one chiplet.
    const auto spread = static_cast<std::int64_t>(std::min(replicas, chiplets));
    const Macs slice = rules_.macs_per_token / kSlices * tile;
    const std::int64_t share = (most + spread - 1) / spread;
    const double start = std::isinf(first_.any.front()) ? 0 : first_.any.front();
    layer.critical = start + static_cast<double>(slice * ((share + tile - 1) / tile)) / fastest * kExact - 2;
    // Tokens that must travel matter only where all of them would outweigh the rest.
    const double hops = 2 * (hop_ - 1) + static_cast<double>(slice) / fastest * kExact - 2;
    const auto links = [&](std::int64_t n) {
      return static_cast<double>(n) * (2 * static_cast<double>(rules_.token_bytes) / out_rate_ * kExact - 1);
    };
    if (d.sources != nullptr && replicas < chiplets && out_rate_ > 0 &&
        std::max(hops, links(tokens)) > std::max(layer.compute, layer.critical)) {
      const std::int64_t moved = must_travel(d, chiplets, replicas);
      if (moved > 0 && !std::isinf(hop_)) layer.critical = std::max(layer.critical, hops);
      if (moved > 0) layer.links = links(moved);
    }
  }
  layer.program.least = std::max({0.0, layer.compute, layer.critical, layer.links});
  for (std::size_t q = 1; q < TierRates::kSubsets; ++q) layer.program.tail[q] = std::min(tail_[q], layer.program.least);
  for (const int n : *d.demand) layer.used.push_back(n > 0);
  layers_.push_back(std::move(layer));
}

double Bound::limit(std::size_t subset, double duration) const {
  return std::max(0.0, rates_.bytes_per_s[subset] * 1e-12 * (duration - tail_[subset]));
}

bool Bound::admits() const {
  // Farthest tier first, so that near capacity is kept for layers that need it. Enough, not necessary.
  std::array<double, kTiers> room = capacity_;
  for (const Layer& layer : layers_) {
    double left = layer.program.bytes;
    std::array<double, kTiers> y{};
    for (std::size_t t = kTiers; t-- > 0;) {
      double most = std::min(room[t], left);
      for (std::size_t q = 1; q < TierRates::kSubsets; ++q) {
        if (!holds(q, t)) continue;
        double others = 0;
        for (std::size_t o = 0; o < kTiers; ++o) others += holds(q, o) ? y[o] : 0;
        most = std::min(most, limit(q, layer.program.least) - others);
      }
      y[t] = std::max(0.0, most);
      room[t] -= y[t];
      left -= y[t];
    }
    if (left > 0) return false;
  }
  return true;
}

Program Bound::program(int windows) const {
  Program p;
  p.rates = &rates_;
  p.capacity = capacity_;
  p.expert_bytes = static_cast<double>(rules_.expert_bytes);
  p.windows = windows;
  p.moved = static_cast<double>(rules_.updates_max) * windows * p.expert_bytes;
  return p;
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
  double fixed = -credit(), least = 0;
  for (const Layer& l : layers_) {
    fixed += l.fixed;
    least += l.program.least;
    out.resources.push_back(l.resource());
  }
  if (!admits()) {
    std::vector<ProgramLayer> layers;
    for (const Layer& l : layers_) layers.push_back(l.program);
    least = std::max(least, solve_program(program(1), layers, out.resources));
  }
  out.latency = static_cast<Ps>(std::max(0.0, std::floor(fixed + least * kExact) - 1));

  ++run_.windows;
  run_.latency += out.latency;
  run_.fixed += fixed;
  run_.resources = out.resources;
  run_.layers.resize(std::max(run_.layers.size(), layers_.size()));
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const ProgramLayer& add = layers_[l].program;
    ProgramLayer& sum = run_.layers[l];
    sum.least += add.least;
    sum.bytes += add.bytes;
    sum.rounding += add.rounding;
    sum.link_rounding += add.link_rounding;
    for (std::size_t q = 0; q < TierRates::kSubsets; ++q) sum.tail[q] += add.tail[q];
    sum.uses.resize(std::max(sum.uses.size(), layers_[l].used.size()), 0);
    for (std::size_t e = 0; e < layers_[l].used.size(); ++e) sum.uses[e] += layers_[l].used[e];
  }
  layers_.clear();
  return out;
}

WindowBound Bound::run() const {
  WindowBound out{run_.latency, {}};
  const auto changes = [&](const ProgramLayer& l) {
    return std::any_of(l.uses.begin(), l.uses.end(), [&](int n) { return n > 0 && n < run_.windows; });
  };
  // Where every window uses the same experts, one residency serves all and the windows' bounds say everything.
  if (run_.windows < 2 || std::none_of(run_.layers.begin(), run_.layers.end(), changes)) return out;
  std::vector<BoundResource> resources = run_.resources;
  const double sum = solve_program(program(run_.windows), run_.layers, resources);
  const double latency = std::floor(run_.fixed + sum * kExact) - 1;
  if (latency <= static_cast<double>(out.latency)) return out;
  return {static_cast<Ps>(latency), std::move(resources)};
}

WindowBound layer_bound(const Package& package, const BoundRules& rules, const BoundDemand& layer) {
  const TierRates rates = tier_rates(package);
  Bound bound(package, rates, rules);
  bound.add(layer);
  return bound.window();
}

}  // namespace sojourn
