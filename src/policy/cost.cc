// Closed-form cost of a layer; equations and assumptions in cost.h.
#include "policy/cost.h"

namespace sojourn {

CostModel::CostModel(const Package& package, const ModelShape& model) : package_(&package), model_(&model) {
  chiplets_ = package.compute_count;
  tile_ = std::max(1, package.tile_tokens);
  expert_bytes_ = static_cast<double>(model.expert_bytes());
  token_bytes_ = static_cast<double>(model.activation_bytes_per_token());
  hops_.resize(static_cast<size_t>(chiplets_) * static_cast<size_t>(chiplets_));
  double tokens_per_s = 0, streams_per_s = 0;
  for (int a = 0; a < chiplets_; ++a) {
    for (int b = 0; b < chiplets_; ++b) {
      hops_[index(a, b)] = static_cast<int>(package.route_chiplets(a, b).size());
      diameter_ = std::max(diameter_, hops_[index(a, b)]);
    }
    const double rate = static_cast<double>(package.chiplet_rate(a).per_second());
    token_s_.push_back(rate > 0 ? static_cast<double>(model.expert_macs_per_token()) / rate : 1e9);
    if (rate > 0) tokens_per_s += 1.0 / token_s_.back();
  }
  for (const BankSet& s : package.bank_sets) {
    const double bw = static_cast<double>(s.bandwidth);
    stream_s_.push_back(bw > 0 ? expert_bytes_ / bw : 1e9);
    if (s.usable >= model.expert_bytes() && bw > 0) streams_per_s += bw / std::max(1.0, expert_bytes_);
  }
  for (const Link& l : package.links)
    link_rate_.push_back(std::max(1.0, static_cast<double>(l.bandwidth.per_second())));
  all_tokens_per_s_ = std::max(tokens_per_s, 1e-12);
  all_streams_per_s_ = std::max(streams_per_s, 1e-12);
}

double CostModel::ideal_s(double tokens, double streams) const {
  return std::max(tokens / all_tokens_per_s_, streams / all_streams_per_s_);
}

void LayerLoad::add(const CostModel& cost, const Location& at, double tokens, double active) {
  compute[static_cast<size_t>(at.chiplet)] += cost.compute_s(at.chiplet, tokens, active);
  bank[static_cast<size_t>(at.bank_set)] += active * cost.stream_s(at.bank_set);
  for (int u : cost.set_route(at.bank_set, at.chiplet)) link[static_cast<size_t>(u)] += active * cost.expert_bytes();
}

double LayerLoad::max_link(const CostModel& cost) const {
  double worst = 0;
  for (size_t u = 0; u < link.size(); ++u) worst = std::max(worst, link[u] / cost.link_rate(static_cast<int>(u)));
  return worst;
}

Demand demand_of(const Profile& p, int layer, int expert) {
  const double d = p.d(layer, expert);
  const size_t i = static_cast<size_t>(layer) * static_cast<size_t>(p.experts) + static_cast<size_t>(expert);
  return {d, p.active.empty() ? activity(d) : p.active[i]};
}

Demand demand_of(const PolicyView& v, int layer, int expert) {
  const double d = v.d(layer, expert);
  return {d, activity(d)};
}

void hop_table(const CostModel& cost, std::span<const double> source_of_layer, int experts, std::vector<double>& out) {
  const size_t n = static_cast<size_t>(cost.chiplets());
  out.assign(static_cast<size_t>(experts) * n, 0.0);
  for (size_t e = 0; e < static_cast<size_t>(experts); ++e) {
    double* row = out.data() + e * n;
    for (size_t s = 0; s < n; ++s) {
      const double d = source_of_layer[e * n + s];
      if (d <= 0) continue;
      for (size_t c = 0; c < n; ++c) row[c] += d * cost.hops(static_cast<int>(s), static_cast<int>(c));
    }
  }
}

namespace {

/// Replicas of `layer` by expert, in placement order.
std::vector<std::vector<Location>> by_expert(const Profile& profile, int layer, std::span<const PlacedReplica> placed) {
  std::vector<std::vector<Location>> out(static_cast<size_t>(profile.experts));
  for (const PlacedReplica& r : placed)
    if (r.layer == layer) out[static_cast<size_t>(r.expert)].push_back(r.at);
  return out;
}

}  // namespace

LayerLoad layer_load(const CostModel& cost, const Profile& profile, int layer, std::span<const PlacedReplica> placed) {
  LayerLoad load(cost);
  const auto replicas = by_expert(profile, layer, placed);
  for (int e = 0; e < profile.experts; ++e) {
    const auto& list = replicas[static_cast<size_t>(e)];
    const Demand d = demand_of(profile, layer, e);
    const double share = list.empty() ? 0.0 : 1.0 / static_cast<double>(list.size());
    for (const Location& at : list) {
      load.add(cost, at, d.tokens * share, list.size() == 1 ? d.active : activity(d.tokens * share));
      for (int s = 0; s < cost.chiplets(); ++s) {
        const double bytes = profile.src(layer, e, s) * share * cost.token_bytes();
        if (bytes <= 0) continue;
        for (int u : cost.package().route_chiplets(s, at.chiplet)) load.link[static_cast<size_t>(u)] += bytes;
        for (int u : cost.package().route_chiplets(at.chiplet, s)) load.link[static_cast<size_t>(u)] += bytes;
      }
    }
  }
  return load;
}

double hop_bytes(const CostModel& cost, const Profile& profile, int layer, std::span<const PlacedReplica> placed) {
  double sum = 0;
  const auto replicas = by_expert(profile, layer, placed);
  for (int e = 0; e < profile.experts; ++e) {
    const auto& list = replicas[static_cast<size_t>(e)];
    for (const Location& at : list)
      for (int s = 0; s < cost.chiplets(); ++s)
        sum += profile.src(layer, e, s) / static_cast<double>(list.size()) * cost.token_bytes() *
               (cost.hops(s, at.chiplet) + cost.hops(at.chiplet, s));
  }
  return sum;
}

}  // namespace sojourn
