// What-if arithmetic of one layer; definitions in layer_plan.h.
#include "policy/layer_plan.h"

#include <numeric>

namespace sojourn {

void LayerPlan::pour(LayerLoad& into, const Demand& d, std::span<const Location> replicas,
                     std::vector<double>& out) const {
  const size_t n = replicas.size();
  out.assign(n, 0.0);
  if (n == 0) return;
  if (n == 1) {
    out[0] = d.tokens;
  } else {
    // Level lambda with sum_i max(0, (lambda - q_i) / t_i) = tokens, over replicas by ascending queue.
    size_t order[64];
    const size_t m = std::min<size_t>(n, 64);
    std::iota(order, order + m, size_t{0});
    const auto q = [&](size_t i) { return into.compute[static_cast<size_t>(replicas[i].chiplet)]; };
    std::sort(order, order + m, [&](size_t a, size_t b) { return q(a) != q(b) ? q(a) < q(b) : a < b; });
    double rate = 0, offset = 0, level = 0;
    size_t used = 0;
    for (; used < m; ++used) {
      const size_t i = order[used];
      if (used > 0 && level <= q(i)) break;
      const double r = 1.0 / cost_->token_s(replicas[i].chiplet);
      rate += r;
      offset += r * q(i);
      level = (d.tokens + offset) / rate;
    }
    for (size_t k = 0; k < used; ++k) {
      const size_t i = order[k];
      out[i] = std::max(0.0, (level - q(i)) / cost_->token_s(replicas[i].chiplet));
    }
  }
  for (size_t i = 0; i < n; ++i)
    if (out[i] > 0) into.add(*cost_, replicas[i], out[i], n == 1 ? d.active : std::min(d.active, activity(out[i])));
}

void LayerPlan::change(LayerLoad& into, int e, double sign) const {
  const auto i = static_cast<size_t>(e);
  const size_t n = at[i].size();
  for (size_t r = 0; r < n; ++r) {
    if (tokens[i][r] <= 0) continue;
    const double active = n == 1 ? demand[i].active : std::min(demand[i].active, activity(tokens[i][r]));
    const Location& l = at[i][r];
    into.compute[static_cast<size_t>(l.chiplet)] += sign * cost_->compute_s(l.chiplet, tokens[i][r], active);
    into.bank[static_cast<size_t>(l.bank_set)] += sign * active * cost_->stream_s(l.bank_set);
  }
}

void LayerPlan::rebuild() {
  std::fill(load.compute.begin(), load.compute.end(), 0.0);
  std::fill(load.bank.begin(), load.bank.end(), 0.0);
  std::fill(load.link.begin(), load.link.end(), 0.0);
  std::vector<int> order(at.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    const bool sa = at[static_cast<size_t>(a)].size() > 1, sb = at[static_cast<size_t>(b)].size() > 1;
    if (sa != sb) return sb;
    return demand[static_cast<size_t>(a)].tokens > demand[static_cast<size_t>(b)].tokens;
  });
  for (int e : order) {
    const auto i = static_cast<size_t>(e);
    pour(load, demand[i], at[i], tokens[i]);
  }
}

double LayerPlan::smooth_of(const LayerLoad& load) {
  double worst = 1e-30;
  for (double q : load.compute) worst = std::max(worst, q);
  for (double m : load.bank) worst = std::max(worst, m);
  double sum = 0;
  const auto term = [&](double x) {
    const double y = x / worst, y2 = y * y, y4 = y2 * y2;
    sum += y4 * y4;
  };
  for (double q : load.compute) term(q);
  for (double m : load.bank) term(m);
  return worst * std::pow(sum, 0.125);
}

double LayerPlan::smooth_if(int e, std::span<const Location> replicas) const {
  scratch_.compute = load.compute;
  scratch_.bank = load.bank;
  change(scratch_, e, -1);
  pour(scratch_, demand[static_cast<size_t>(e)], replicas, poured_);
  return smooth_of(scratch_);
}

void LayerPlan::set_replicas(int e, std::vector<Location> replicas) {
  const auto i = static_cast<size_t>(e);
  change(load, e, -1);
  at[i] = std::move(replicas);
  pour(load, demand[i], at[i], tokens[i]);
}

}  // namespace sojourn
