// Statistics over the runs of a study; see reproduce_view.h.
#include "study/reproduce_view.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "base/rng.h"
#include "base/student_t.h"

namespace sojourn {
namespace {

constexpr int kDraws = 999;

double mean_of(const std::vector<double>& v) {
  return std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(std::max<std::size_t>(1, v.size()));
}

/// Half width of the 95 % interval of the mean; exact quantiles where the expansion of student_t95 is too small.
double half_width(const std::vector<double>& v) {
  const std::size_t n = v.size();
  if (n < 2) return 0;
  const double m = mean_of(v);
  double squares = 0;
  for (const double x : v) squares += (x - m) * (x - m);
  const double error = std::sqrt(squares / static_cast<double>(n - 1) / static_cast<double>(n));
  const double t = n == 2 ? 12.706 : n == 3 ? 4.3027 : n == 4 ? 3.1824 : student_t95(static_cast<int>(n) - 1);
  return t * error;
}

}  // namespace

StudyView::StudyView(const SweepInputs& inputs, const std::vector<SweepRun>& runs, const SweepOutcome& outcome)
    : inputs_(inputs), runs_(runs), outcome_(outcome) {
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (outcome.runs[i])
      index_[{inputs.places[runs[i].place].id, inputs.arms[runs[i].arm].id, static_cast<int>(runs[i].mode),
              runs[i].model, runs[i].seed}] = i;
}

const RunResult* StudyView::run(const At& at, Mode mode, std::size_t model, std::uint64_t seed) const {
  const auto it = index_.find({at.place, at.arm, static_cast<int>(mode), model, seed});
  return it == index_.end() ? nullptr : &*outcome_.runs[it->second];
}

void StudyView::each(const std::function<void(const SweepRun&, const RunResult&)>& f) const {
  for (std::size_t i = 0; i < runs_.size(); ++i)
    if (outcome_.runs[i]) f(runs_[i], *outcome_.runs[i]);
}

std::vector<std::uint64_t> StudyView::seeds(const At& at, Mode mode) const {
  std::set<std::uint64_t> found;
  const int m = static_cast<int>(mode);
  for (auto it = index_.lower_bound({at.place, at.arm, m, 0, 0}); it != index_.end(); ++it) {
    const auto& [place, arm, in_mode, model, seed] = it->first;
    if (place != at.place || arm != at.arm || in_mode != m) break;
    found.insert(seed);
  }
  return {found.begin(), found.end()};
}

std::vector<std::uint64_t> StudyView::shared_seeds(const std::vector<At>& all, Mode mode) const {
  std::vector<std::uint64_t> out = seeds(all.front(), mode);
  for (const At& at : all) {
    const std::vector<std::uint64_t> other = seeds(at, mode);
    std::erase_if(out, [&](std::uint64_t s) { return std::find(other.begin(), other.end(), s) == other.end(); });
  }
  return out;
}

std::vector<std::size_t> StudyView::models(const std::vector<At>& all, Mode mode) const {
  const std::vector<std::uint64_t> seeds = shared_seeds(all, mode);
  std::vector<std::size_t> out;
  for (std::size_t m = 0; m < inputs_.models.size() && !seeds.empty(); ++m) {
    bool whole = true;
    for (const At& at : all)
      for (const std::uint64_t s : seeds) whole = whole && run(at, mode, m, s) != nullptr;
    if (whole) out.push_back(m);
  }
  return out;
}

double StudyView::value(const At& at, Mode mode, std::size_t model,
                        const std::function<double(const RunResult&)>& get) const {
  double sum = 0;
  int n = 0;
  for (const std::uint64_t s : seeds(at, mode))
    if (const RunResult* r = run(at, mode, model, s)) {
      sum += get(*r);
      ++n;
    }
  return n > 0 ? sum / n : std::numeric_limits<double>::quiet_NaN();
}

double StudyView::latency(const At& at, Mode mode, std::size_t model) const {
  const double v = value(at, mode, model, [](const RunResult& r) { return static_cast<double>(r.latency_ps); });
  return std::isnan(v) ? 0 : v;
}

Estimate StudyView::latency_ratio(const At& a, const At& b, Mode mode, const std::vector<std::size_t>& only) const {
  Estimate e;
  const std::vector<std::uint64_t> seeds = shared_seeds({a, b}, mode);
  std::vector<std::size_t> used = models({a, b}, mode);
  if (!only.empty())
    std::erase_if(used, [&](std::size_t m) { return std::find(only.begin(), only.end(), m) == only.end(); });
  if (used.empty()) return e;
  // [model][seed] window latencies of a and b
  struct Pair {
    const std::vector<Ps>*a, *b;
  };
  std::vector<std::vector<Pair>> windows(used.size());
  for (std::size_t m = 0; m < used.size(); ++m)
    for (const std::uint64_t s : seeds) {
      const Pair p{&run(a, mode, used[m], s)->window_ps, &run(b, mode, used[m], s)->window_ps};
      if (p.a->empty() || p.a->size() != p.b->size()) return e;
      windows[m].push_back(p);
    }
  double log_sum = 0;
  for (const auto& model : windows) {
    double top = 0, bottom = 0;
    for (const Pair& p : model) {
      for (const Ps t : *p.a) top += static_cast<double>(t);
      for (const Ps t : *p.b) bottom += static_cast<double>(t);
    }
    if (!(top > 0 && bottom > 0)) return e;
    log_sum += std::log(top / bottom);
  }
  e.valid = true;
  e.models = static_cast<int>(used.size());
  e.seeds = static_cast<int>(seeds.size());
  e.windows = static_cast<int>(windows[0][0].a->size());
  e.value = e.low = e.high = std::exp(log_sum / e.models);
  if (e.windows * e.seeds < 2) return e;
  Rng rng(20260713, "bootstrap");
  std::vector<double> draws;
  for (int d = 0; d < kDraws; ++d) {
    double logs = 0;
    std::vector<std::size_t> chosen;  // seeds, the same for every model
    for (std::size_t k = 0; k < seeds.size(); ++k) chosen.push_back(rng.below(seeds.size()));
    for (const auto& model : windows) {
      double top = 0, bottom = 0;
      for (const std::size_t s : chosen)
        for (std::size_t k = 0; k < model[s].a->size(); ++k) {
          const std::size_t w = rng.below(model[s].a->size());
          top += static_cast<double>((*model[s].a)[w]);
          bottom += static_cast<double>((*model[s].b)[w]);
        }
      logs += std::log(top / bottom);
    }
    draws.push_back(std::exp(logs / e.models));
  }
  std::sort(draws.begin(), draws.end());
  e.low = draws[static_cast<std::size_t>(0.025 * kDraws)];
  e.high = draws[static_cast<std::size_t>(0.975 * kDraws)];
  e.has_interval = true;
  return e;
}

Estimate StudyView::value_ratio(const At& a, const At& b, Mode mode,
                                const std::function<double(const RunResult&)>& get) const {
  Estimate e;
  const std::vector<std::size_t> used = models({a, b}, mode);
  if (used.empty()) return e;
  std::vector<double> logs;
  for (const std::uint64_t s : shared_seeds({a, b}, mode)) {
    double sum = 0;
    for (const std::size_t m : used) {
      const double top = get(*run(a, mode, m, s)), bottom = get(*run(b, mode, m, s));
      if (!(top > 0 && bottom > 0)) return e;
      sum += std::log(top / bottom);
    }
    logs.push_back(sum / static_cast<double>(used.size()));
  }
  const double m = mean_of(logs), h = half_width(logs);
  return {true,
          std::exp(m),
          std::exp(m - h),
          std::exp(m + h),
          logs.size() > 1,
          static_cast<int>(used.size()),
          0,
          static_cast<int>(logs.size())};
}

Estimate StudyView::mean_value(const At& a, Mode mode, const std::function<double(const RunResult&)>& get) const {
  Estimate e;
  const std::vector<std::size_t> used = models({a}, mode);
  if (used.empty()) return e;
  std::vector<double> by_seed;
  for (const std::uint64_t s : seeds(a, mode)) {
    double sum = 0;
    for (const std::size_t m : used) sum += get(*run(a, mode, m, s));
    by_seed.push_back(sum / static_cast<double>(used.size()));
  }
  const double m = mean_of(by_seed), h = half_width(by_seed);
  return {
      true, m, m - h, m + h, by_seed.size() > 1, static_cast<int>(used.size()), 0, static_cast<int>(by_seed.size())};
}

Estimate StudyView::mean_reduction(const At& a, const At& b, Mode mode,
                                   const std::function<double(const RunResult&)>& get) const {
  Estimate e;
  std::vector<double> by_model;
  for (const std::size_t m : models({a, b}, mode)) {
    const double top = value(a, mode, m, get), bottom = value(b, mode, m, get);
    if (bottom > 0) by_model.push_back(1 - top / bottom);
  }
  if (by_model.empty()) return e;
  const double m = mean_of(by_model), h = half_width(by_model);
  return {true,
          m,
          m - h,
          m + h,
          by_model.size() > 1,
          static_cast<int>(by_model.size()),
          0,
          static_cast<int>(seeds(a, mode).size())};
}

Estimate reduction_percent(const Estimate& ratio) {
  Estimate e = ratio;
  e.value = 100 * (1 - ratio.value);
  e.low = 100 * (1 - ratio.high);
  e.high = 100 * (1 - ratio.low);
  return e;
}

}  // namespace sojourn
