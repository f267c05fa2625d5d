// The generator. An expert's popularity in a layer is Zipf-Mandelbrot in a rank that mixes a common order with the
// domain's own, perturbed a request (drift). A token keeps each expert of the token before it with probability
// `persistence`; the others are drawn without replacement, from the first one's cluster with probability
// `coactivation`. The model is ours; it is meant to reproduce the marginals FORMATS.md lists, not the semantics of a
// router.
#include "trace/synth.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/rng.h"
#include "trace/json_text.h"

namespace sojourn {
namespace {

struct Knobs {
  int layers, experts, top_k, domains, clusters;
  std::int64_t tokens, drift_every;
  double zipf, plateau, domain_mix, coactivation, drift, persistence, length_mean, length_spread, prefill;

  explicit Knobs(const ParamSet& p)
      : layers(static_cast<int>(p.integer("layers"))),
        experts(static_cast<int>(p.integer("experts"))),
        top_k(static_cast<int>(p.integer("top_k"))),
        domains(static_cast<int>(p.integer("domains"))),
        clusters(static_cast<int>(p.integer("clusters"))),
        tokens(p.integer("tokens")),
        drift_every(p.integer("drift_every")),
        zipf(p.number("zipf")),
        plateau(p.number("plateau")),
        domain_mix(p.number("domain_mix")),
        coactivation(p.number("coactivation")),
        drift(p.number("drift")),
        persistence(p.number("persistence")),
        length_mean(p.number("length_mean")),
        length_spread(p.number("length_spread")),
        prefill(p.number("prefill")) {}
};

std::vector<int> permutation(int n, Rng rng) {
  std::vector<int> out(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) out[static_cast<std::size_t>(i)] = i;
  rng.shuffle(out);
  return out;
}

/// Log popularity of every expert of one layer in one domain.
std::vector<double> log_popularity(const Knobs& k, std::uint64_t seed, int layer, int domain) {
  const auto l = static_cast<std::uint64_t>(layer);
  const std::vector<int> common = permutation(k.experts, Rng(seed, "synth.common", l));
  const std::vector<int> own =
      permutation(k.experts, Rng(seed, "synth.domain", l * 65536 + static_cast<std::uint64_t>(domain)));
  std::vector<double> out(common.size());
  for (std::size_t e = 0; e < out.size(); ++e) {
    const double shared = std::log(1 + k.plateau + common[e]), local = std::log(1 + k.plateau + own[e]);
    out[e] = -k.zipf * ((1 - k.domain_mix) * shared + k.domain_mix * local);
  }
  return out;
}

/// Draws experts of one layer for one request.
class Sampler {
 public:
  Sampler(const Knobs& k, const std::vector<double>& log_p, const std::vector<int>& cluster, Rng& rng)
      : knobs_(k), cluster_(cluster), cumulative_(log_p.size()) {
    double sum = 0;
    for (std::size_t e = 0; e < log_p.size(); ++e) {
      sum += std::exp(log_p[e] + (k.drift > 0 ? k.drift * rng.normal() : 0.0));
      cumulative_[e] = sum;
    }
  }

  void draw(Rng& rng, std::vector<int>& token) {
    next_.clear();
    for (int e : token)
      if (rng.uniform() < knobs_.persistence) next_.push_back(e);
    while (next_.size() < static_cast<std::size_t>(knobs_.top_k)) {
      const bool near = !next_.empty() && rng.uniform() < knobs_.coactivation;
      next_.push_back(pick(rng, near ? cluster_[static_cast<std::size_t>(next_[0])] : -1));
    }
    token = next_;
  }

 private:
  [[nodiscard]] bool taken(int e) const { return std::find(next_.begin(), next_.end(), e) != next_.end(); }
  int pick(Rng& rng, int cluster) {
    for (int tries = 0; tries < 256; ++tries) {
      if (tries == 64) cluster = -1;  // the cluster is used up, or cold
      const double u = rng.uniform() * cumulative_.back();
      const auto it = std::upper_bound(cumulative_.begin(), cumulative_.end(), u);
      const int e = static_cast<int>(std::min<std::ptrdiff_t>(it - cumulative_.begin(), knobs_.experts - 1));
      if (!taken(e) && (cluster < 0 || cluster_[static_cast<std::size_t>(e)] == cluster)) return e;
    }
    const int start = static_cast<int>(rng.below(static_cast<std::uint64_t>(knobs_.experts)));
    int e = start;
    while (taken(e)) e = (e + 1) % knobs_.experts;
    return e;
  }

  const Knobs& knobs_;
  const std::vector<int>& cluster_;
  std::vector<double> cumulative_;
  std::vector<int> next_;
};

struct Request {
  std::int64_t length;
  int domain;
};

std::vector<Request> requests(const Knobs& k, std::uint64_t seed) {
  std::vector<Request> out;
  Rng rng(seed, "synth.requests");
  // Log-normal with the given mean.
  const double mu = std::log(k.length_mean) - k.length_spread * k.length_spread / 2;
  for (std::int64_t at = 0; at < k.tokens;) {
    const double drawn = std::exp(mu + k.length_spread * rng.normal());
    const std::int64_t length = std::clamp<std::int64_t>(std::llround(std::min(drawn, 1e9)), 1, k.tokens - at);
    out.push_back({length, static_cast<int>(rng.below(static_cast<std::uint64_t>(k.domains)))});
    at += length;
  }
  return out;
}

}  // namespace

const std::vector<Param>& synth_params() {
  static const std::vector<Param> params = [] {
    const auto whole = [](const char* name, std::int64_t value, double min, double max, const char* text) {
      return Param{.name = name, .default_value = value, .min = min, .max = max, .text = text, .source = "ours"};
    };
    const auto real = [](const char* name, double value, double min, double max, const char* text) {
      return Param{.name = name, .default_value = value, .min = min, .max = max, .text = text, .source = "ours"};
    };
    return std::vector<Param>{
        whole("layers", 24, 1, 4096, "MoE layers"),
        whole("experts", 64, 1, 65535, "routed experts a layer"),
        whole("top_k", 6, 1, 1024, "experts a token"),
        whole("tokens", 16384, 1, 1e9, "tokens in all"),
        whole("domains", 4, 1, 4096, "text domains; a request belongs to one"),
        real("zipf", 0.6, 0, 8, "exponent of the popularity; 0 = all experts alike"),
        real("plateau", 2.0, 0, 1000, "ranks added before the exponent: flattens the hottest experts"),
        real("domain_mix", 0.6, 0, 1, "0 = all domains share one order of experts, 1 = each has its own"),
        whole("clusters", 8, 1, 65535, "groups of experts chosen together"),
        real("coactivation", 0.2, 0, 1, "chance that a further expert of a token comes from the first one's group"),
        real("drift", 0.4, 0, 4, "spread of a perturbation of the log popularity, drawn a request"),
        whole("drift_every", 256, 1, 1e9, "tokens of a request after which that perturbation is drawn anew"),
        real("persistence", 0.15, 0, 1, "chance that a token keeps an expert of the token before it"),
        real("length_mean", 256, 1, 1e7, "mean tokens a request"),
        real("length_spread", 0.5, 0, 4, "log-normal spread of the lengths"),
        real("prefill", 0.5, 0, 1, "share of a request's tokens that are prefill"),
    };
  }();
  return params;
}

Result<TraceData> synthesise(const ParamSet& params, std::uint64_t seed) {
  const Knobs k(params);
  if (k.top_k > k.experts)
    return fail({"<command line>"}, "top_k", fmt::format("{} experts a token of only {}", k.top_k, k.experts),
                "lower top_k or raise experts");
  const double numbers = static_cast<double>(k.tokens) * static_cast<double>(k.layers) * static_cast<double>(k.top_k);
  if (numbers > 8e9)
    return fail({"<command line>"}, "tokens", fmt::format("{:.3g} ids do not fit in memory", numbers),
                "lower tokens, layers or top_k");
  TraceData out;
  const std::vector<Request> all = requests(k, seed);
  out.ids.resize(static_cast<std::size_t>(k.layers));
  for (auto& layer : out.ids) layer.reserve(static_cast<std::size_t>(k.tokens) * static_cast<std::size_t>(k.top_k));
  for (std::size_t r = 0; r < all.size(); ++r) {
    const auto prompt = static_cast<std::int64_t>(std::llround(k.prefill * static_cast<double>(all[r].length)));
    for (std::int64_t t = 0; t < all[r].length; ++t) {
      out.sequence_id.push_back(static_cast<std::int32_t>(r));
      out.position.push_back(static_cast<std::int32_t>(t));
      out.phase.push_back(t < prompt ? 0 : 1);
    }
    out.meta.sequence_domain.push_back(all[r].domain);
  }
  for (int l = 0; l < k.layers; ++l) {
    std::vector<int> cluster = permutation(k.experts, Rng(seed, "synth.clusters", static_cast<std::uint64_t>(l)));
    for (int& c : cluster) c %= k.clusters;
    std::vector<std::vector<double>> popularity;
    for (int d = 0; d < k.domains; ++d) popularity.push_back(log_popularity(k, seed, l, d));
    auto& ids = out.ids[static_cast<std::size_t>(l)];
    for (std::size_t r = 0; r < all.size(); ++r) {
      Rng rng(seed, "synth.tokens", static_cast<std::uint64_t>(l) * 0x100000000ULL + r);
      std::optional<Sampler> sampler;
      std::vector<int> token;
      for (std::int64_t t = 0; t < all[r].length; ++t) {
        if (t % k.drift_every == 0)
          sampler.emplace(k, popularity[static_cast<std::size_t>(all[r].domain)], cluster, rng);
        sampler->draw(rng, token);
        for (int e : token) ids.push_back(static_cast<std::uint16_t>(e));
      }
    }
  }
  TraceMeta& m = out.meta;
  m.model = "synthetic";
  m.layers = k.layers;
  m.experts = k.experts;
  m.top_k = k.top_k;
  m.tokens = k.tokens;
  m.origin = Origin::synthetic;
  m.format = "synth";
  m.note = fmt::format("drawn by `sojourn trace synth`, seed {}", seed);
  for (int d = 0; d < k.domains; ++d) m.domains.push_back(fmt::format("domain{}", d));
  return out;
}

}  // namespace sojourn
