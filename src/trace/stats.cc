// Statistics of traces and loads. Union and windows follow the token order of the file, across sequence boundaries, as
// a server that runs requests one after the other would see them.
#include "trace/stats.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace sojourn {
namespace {

/// Running mean of values that may be missing.
struct Mean {
  double sum = 0;
  std::int64_t n = 0;
  void add(std::optional<double> v) {
    if (!v) return;
    sum += *v;
    ++n;
  }
  [[nodiscard]] std::optional<double> value() const {
    return n == 0 ? std::nullopt : std::optional<double>(sum / static_cast<double>(n));
  }
};

void add(LoadShape& to, const LoadShape& v) {
  to.gini += v.gini;
  to.entropy_bits += v.entropy_bits;
  to.entropy += v.entropy;
  to.max_over_mean += v.max_over_mean;
  to.top10pct_share += v.top10pct_share;
}

LoadShape mean_shape(const std::vector<LoadShape>& all) {
  LoadShape out;
  for (const LoadShape& s : all) add(out, s);
  const double n = std::max<double>(1, static_cast<double>(all.size()));
  return {out.gini / n, out.entropy_bits / n, out.entropy / n, out.max_over_mean / n, out.top10pct_share / n};
}

std::optional<double> union_mean(std::span<const std::uint16_t> ids, int k, int experts, int block) {
  const std::size_t row = static_cast<std::size_t>(k), step = row * static_cast<std::size_t>(block);
  std::vector<std::uint64_t> stamp(static_cast<std::size_t>(experts), 0);
  std::uint64_t blocks = 0, distinct = 0;
  for (std::size_t at = 0; at + step <= ids.size(); at += step) {
    ++blocks;
    for (std::size_t i = at; i < at + step; ++i) {
      if (ids[i] >= experts || stamp[ids[i]] == blocks) continue;
      stamp[ids[i]] = blocks;
      ++distinct;
    }
  }
  if (blocks == 0) return std::nullopt;
  return static_cast<double>(distinct) / static_cast<double>(blocks);
}

std::optional<double> window_correlation(std::span<const std::uint16_t> ids, int k, int experts, int window) {
  const std::size_t step = static_cast<std::size_t>(k) * static_cast<std::size_t>(window);
  std::vector<double> before, now;
  Mean mean;
  for (std::size_t at = 0; at + step <= ids.size(); at += step) {
    now.assign(static_cast<std::size_t>(experts), 0.0);
    for (std::size_t i = at; i < at + step; ++i)
      if (ids[i] < experts) now[ids[i]] += 1;
    if (!before.empty()) mean.add(pearson(before, now));
    before.swap(now);
  }
  return mean.value();
}

std::optional<double> reuse(std::span<const std::uint16_t> ids, std::span<const std::int32_t> sequence, int k) {
  const auto row = static_cast<std::size_t>(k);
  std::uint64_t shared = 0, all = 0;
  for (std::size_t t = 1; t < sequence.size(); ++t) {
    if (sequence[t] != sequence[t - 1]) continue;
    const auto now = ids.subspan(t * row, row), before = ids.subspan((t - 1) * row, row);
    for (std::uint16_t id : now) {
      if (id == 65535) continue;
      ++all;
      shared += std::find(before.begin(), before.end(), id) != before.end();
    }
  }
  if (all == 0) return std::nullopt;
  return static_cast<double>(shared) / static_cast<double>(all);
}

void count_sequences(const Trace& trace, TraceStats& out) {
  std::map<std::int32_t, std::int64_t> lengths;
  for (std::int32_t s : trace.sequence_id()) ++lengths[s];
  out.sequences = static_cast<std::int64_t>(lengths.size());
  out.length_min = std::numeric_limits<std::int64_t>::max();
  for (const auto& [id, n] : lengths) {
    out.length_min = std::min(out.length_min, n);
    out.length_max = std::max(out.length_max, n);
  }
  out.length_mean = static_cast<double>(trace.meta().tokens) / std::max<double>(1, static_cast<double>(out.sequences));
  for (std::uint8_t p : trace.phase()) (p == 1 ? out.decode_tokens : out.prefill_tokens) += 1;
}

void count_domains(const Trace& trace, TraceStats& out) {
  const TraceMeta& m = trace.meta();
  if (m.domains.empty() || m.sequence_domain.empty()) return;
  const auto row = static_cast<std::size_t>(m.top_k);
  out.domains.resize(m.domains.size());
  for (std::size_t d = 0; d < m.domains.size(); ++d) {
    out.domains[d].name = m.domains[d];
    out.domains[d].loads.assign(static_cast<std::size_t>(m.layers),
                                std::vector<double>(static_cast<std::size_t>(m.experts), 0.0));
  }
  for (int d : m.sequence_domain)
    if (d < static_cast<int>(out.domains.size())) ++out.domains[static_cast<std::size_t>(d)].sequences;
  const auto sequence = trace.sequence_id();
  const auto domain_of = [&](std::size_t t) -> DomainStats* {
    const auto s = static_cast<std::size_t>(sequence[t]);
    return s < m.sequence_domain.size() ? &out.domains[static_cast<std::size_t>(m.sequence_domain[s])] : nullptr;
  };
  for (std::size_t t = 0; t < sequence.size(); ++t)
    if (DomainStats* d = domain_of(t)) ++d->tokens;
  for (int l = 0; l < m.layers; ++l) {
    const auto ids = trace.ids(l);
    for (std::size_t t = 0; t < sequence.size(); ++t) {
      DomainStats* d = domain_of(t);
      if (d == nullptr) continue;
      for (std::uint16_t id : ids.subspan(t * row, row))
        if (id < m.experts) d->loads[static_cast<std::size_t>(l)][id] += 1;
    }
  }
  for (DomainStats& d : out.domains) {
    std::vector<LoadShape> shapes;
    for (const auto& loads : d.loads) shapes.push_back(load_shape(loads));
    d.shape = mean_shape(shapes);
  }
  out.domain_correlation.assign(out.domains.size(), std::vector<double>(out.domains.size(), std::nan("")));
  for (std::size_t a = 0; a < out.domains.size(); ++a)
    for (std::size_t b = 0; b < out.domains.size(); ++b) {
      Mean mean;
      for (std::size_t l = 0; l < out.domains[a].loads.size(); ++l)
        mean.add(pearson(out.domains[a].loads[l], out.domains[b].loads[l]));
      out.domain_correlation[a][b] = mean.value().value_or(std::nan(""));
    }
}

}  // namespace

LoadShape load_shape(const std::vector<double>& loads) {
  LoadShape out;
  std::vector<double> sorted = loads;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t n = sorted.size();
  double sum = 0, weighted = 0;
  for (std::size_t i = 0; i < n; ++i) {
    sum += sorted[i];
    weighted += (2.0 * static_cast<double>(i) + 1.0 - static_cast<double>(n)) * sorted[i];
  }
  if (n == 0 || sum <= 0) return out;
  out.gini = weighted / (static_cast<double>(n) * sum);
  out.max_over_mean = sorted.back() * static_cast<double>(n) / sum;
  for (double v : sorted)
    if (v > 0) out.entropy_bits -= v / sum * std::log2(v / sum);
  out.entropy = n > 1 ? out.entropy_bits / std::log2(static_cast<double>(n)) : 1.0;
  const std::size_t top = (n + 9) / 10;
  double hot = 0;
  for (std::size_t i = n - top; i < n; ++i) hot += sorted[i];
  out.top10pct_share = hot / sum;
  return out;
}

std::optional<double> pearson(const std::vector<double>& a, const std::vector<double>& b) {
  const auto n = static_cast<double>(a.size());
  double ma = 0, mb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ma += a[i];
    mb += b[i];
  }
  ma /= n;
  mb /= n;
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - ma) * (b[i] - mb);
    aa += (a[i] - ma) * (a[i] - ma);
    bb += (b[i] - mb) * (b[i] - mb);
  }
  if (aa <= 0 || bb <= 0) return std::nullopt;
  return ab / std::sqrt(aa * bb);
}

TraceStats trace_stats(const Trace& trace) {
  const TraceMeta& m = trace.meta();
  TraceStats out;
  const LoadData loads = loads_of(trace);
  const auto totals = loads.total();
  Mean unions[4], correlation[2], again;
  std::vector<LoadShape> shapes;
  for (int l = 0; l < m.layers; ++l) {
    LayerStats s;
    const auto ids = trace.ids(l);
    s.shape = load_shape(totals[static_cast<std::size_t>(l)]);
    for (int i = 0; i < 4; ++i) s.unions[i] = union_mean(ids, m.top_k, m.experts, kUnionBlocks[i]);
    for (int i = 0; i < 2; ++i) s.correlation[i] = window_correlation(ids, m.top_k, m.experts, kWindows[i]);
    s.reuse = reuse(ids, trace.sequence_id(), m.top_k);
    for (int i = 0; i < 4; ++i) unions[i].add(s.unions[i]);
    for (int i = 0; i < 2; ++i) correlation[i].add(s.correlation[i]);
    again.add(s.reuse);
    shapes.push_back(s.shape);
    out.layers.push_back(s);
  }
  out.mean.shape = mean_shape(shapes);
  for (int i = 0; i < 4; ++i) out.mean.unions[i] = unions[i].value();
  for (int i = 0; i < 2; ++i) out.mean.correlation[i] = correlation[i].value();
  out.mean.reuse = again.value();
  count_sequences(trace, out);
  count_domains(trace, out);
  return out;
}

LoadStats load_stats(const LoadData& data) {
  LoadStats out;
  const auto totals = data.total();
  for (int l = 0; l < data.layers; ++l) {
    out.layers.push_back(load_shape(totals[static_cast<std::size_t>(l)]));
    Mean mean;
    std::vector<double> before, now(static_cast<std::size_t>(data.experts));
    for (std::int64_t s = 0; s < data.steps; ++s) {
      for (int e = 0; e < data.experts; ++e) now[static_cast<std::size_t>(e)] = data.at(s, l, e);
      if (!before.empty()) mean.add(pearson(before, now));
      before = now;
    }
    out.step_correlation.push_back(mean.value());
  }
  out.mean = mean_shape(out.layers);
  return out;
}

}  // namespace sojourn
