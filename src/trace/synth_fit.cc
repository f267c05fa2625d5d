// Fitting the generator: coordinate descent with golden sections, on a short trace with common random numbers (one
// seed), so that the same targets give the same knobs. What was asked for and what was reached are written down.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "trace/json_text.h"
#include "trace/synth.h"

namespace sojourn {
namespace {

struct Goal {
  const char* name;
  std::optional<double> target;
  double scale;  ///< a miss of this size counts as one
  std::optional<double> (*reached)(const TraceStats&);
};

std::array<Goal, 5> goals(const SynthTargets& t) {
  return {{
      {"gini", t.gini, 0.02, [](const TraceStats& s) -> std::optional<double> { return s.mean.shape.gini; }},
      {"max_over_mean", t.max_over_mean, 0.2,
       [](const TraceStats& s) -> std::optional<double> { return s.mean.shape.max_over_mean; }},
      {"top10pct_share", t.top10pct_share, 0.01,
       [](const TraceStats& s) -> std::optional<double> { return s.mean.shape.top10pct_share; }},
      {"reuse", t.reuse, 0.02, [](const TraceStats& s) { return s.mean.reuse; }},
      {"window_correlation_512", t.window_correlation_512, 0.05,
       [](const TraceStats& s) { return s.mean.correlation[0]; }},
  }};
}

struct Knob {
  const char* name;
  double low, high;
};

/// The trace the search looks at: at most some 25,000 token-layers, with as many requests as the whole trace has.
ParamSet short_version(const ParamSet& p) {
  ParamSet out = p;
  const std::int64_t whole = p.integer("tokens"), tokens = std::clamp<std::int64_t>(whole, 1024, 6144);
  out.set("tokens", tokens);
  out.set("layers", std::clamp<std::int64_t>(24576 / tokens, 1, p.integer("layers")));
  if (tokens < whole)
    out.set("length_mean",
            std::max(16.0, p.number("length_mean") * static_cast<double>(tokens) / static_cast<double>(whole)));
  return out;
}

}  // namespace

SynthTargets SynthTargets::of(const TraceStats& s) {
  SynthTargets t;
  t.gini = s.mean.shape.gini;
  t.max_over_mean = s.mean.shape.max_over_mean;
  t.top10pct_share = s.mean.shape.top10pct_share;
  t.reuse = s.mean.reuse;
  t.window_correlation_512 = s.mean.correlation[0];
  return t;
}

SynthTargets SynthTargets::of(const LoadStats& s) {
  SynthTargets t;
  t.gini = s.mean.gini;
  t.max_over_mean = s.mean.max_over_mean;
  t.top10pct_share = s.mean.top10pct_share;
  return t;
}

Result<SynthFit> fit_synth(const SynthTargets& targets, ParamSet start, std::uint64_t seed) {
  const auto wanted = goals(targets);
  Failure failure;
  bool failed = false;
  const auto stats_of = [&](const ParamSet& p) -> std::optional<TraceStats> {
    auto data = synthesise(p, seed);
    if (!data) {
      failure = data.error();
      failed = true;
      return std::nullopt;
    }
    return trace_stats(*make_trace(std::move(*data)));
  };
  const auto miss = [&](const ParamSet& p) {
    const auto stats = stats_of(short_version(p));
    if (!stats) return 1e300;
    double sum = 0;
    for (const Goal& g : wanted) {
      if (!g.target) continue;
      const auto v = g.reached(*stats);
      const double d = v ? (*v - *g.target) / g.scale : 10.0;
      sum += d * d;
    }
    return sum;
  };
  std::vector<Knob> knobs{{"zipf", 0, 3}, {"plateau", 0, 16}};
  if (targets.reuse) knobs.push_back({"persistence", 0, 0.95});
  if (targets.window_correlation_512) {
    knobs.push_back({"drift", 0, 2});
    knobs.push_back({"domain_mix", 0, 1});
  }
  double best = miss(start);
  // Exponent and plateau depend on each other: a grid first, so that the descent starts in the right valley.
  if (targets.gini || targets.max_over_mean || targets.top10pct_share) {
    const ParamSet asked = start;
    for (double zipf : {0.15, 0.3, 0.5, 0.75, 1.0, 1.4, 1.9, 2.5})
      for (double plateau : {0.0, 1.0, 3.0, 8.0, 16.0}) {
        ParamSet p = asked;
        p.set("zipf", zipf);
        p.set("plateau", plateau);
        const double f = miss(p);
        if (f >= best) continue;
        best = f;
        start = p;
      }
  }
  constexpr double kGolden = 0.6180339887498949;
  for (int round = 0; round < 4 && best > 0.05 && !failed; ++round)
    for (const Knob& knob : knobs) {
      const double span = (knob.high - knob.low) * (round == 0 ? 0.5 : round == 1 ? 0.3 : round == 2 ? 0.15 : 0.06);
      const double centre = start.number(knob.name);
      double a = std::max(knob.low, centre - span / 2);
      double b = std::min(knob.high, centre + span / 2);
      const auto at = [&](double v) {
        ParamSet p = start;
        p.set(knob.name, v);
        return miss(p);
      };
      double x = b - kGolden * (b - a), y = a + kGolden * (b - a), fx = at(x), fy = at(y);
      for (int i = 0; i < 9; ++i) {
        if (fx <= fy) {
          b = y;
          y = x;
          fy = fx;
          x = b - kGolden * (b - a);
          fx = at(x);
        } else {
          a = x;
          x = y;
          fx = fy;
          y = a + kGolden * (b - a);
          fy = at(y);
        }
      }
      const double v = fx <= fy ? x : y, f = std::min(fx, fy);
      if (f < best) {
        best = f;
        start.set(knob.name, v);
      }
    }
  const auto final_stats = stats_of(start);
  if (failed || !final_stats) return tl::unexpected(failure);
  SynthFit out;
  JsonText j;
  j.open('{');
  j.key("fit");
  j.open('[');
  for (const Goal& g : wanted) {
    if (!g.target) continue;
    const auto v = g.reached(*final_stats);
    j.open('{');
    j.member("statistic", g.name);
    j.member("target", *g.target);
    j.member("reached", v.value_or(std::nan("")));
    j.member("residual", v ? *v - *g.target : std::nan(""));
    j.close('}');
  }
  j.close(']');
  j.close('}');
  out.details = j.text();
  out.params = std::move(start);
  return out;
}

}  // namespace sojourn
