// Pipeline cutting, routing and profiles; see workload.h.
#include "moe/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "package/fits.h"

namespace sojourn {

Tier streaming_tier(const Package& package) {
  std::array<std::uint64_t, kTiers> bandwidth{};
  for (const BankSet& set : package.bank_sets) bandwidth[static_cast<std::size_t>(set.tier)] += set.bandwidth;
  if (bandwidth[static_cast<std::size_t>(Tier::hbm)] > 0) return Tier::hbm;
  return bandwidth[0] >= bandwidth[2] ? Tier::sram : Tier::dram;
}

namespace {

/// Where non-routed weights are kept: HBM, else the largest tier.
std::vector<Bytes> spread_fixed(const Package& package, Bytes bytes) {
  std::array<Bytes, kTiers> usable{};
  std::array<int, kTiers> sets{};
  for (const BankSet& set : package.bank_sets) {
    usable[static_cast<std::size_t>(set.tier)] += set.usable;
    ++sets[static_cast<std::size_t>(set.tier)];
  }
  std::size_t tier = static_cast<std::size_t>(Tier::hbm);
  if (usable[tier] < bytes)
    tier = static_cast<std::size_t>(std::max_element(usable.begin(), usable.end()) - usable.begin());
  std::vector<Bytes> fixed(package.bank_sets.size(), 0);
  if (sets[tier] == 0) return fixed;
  const Bytes share = (bytes + sets[tier] - 1) / sets[tier];
  for (std::size_t s = 0; s < fixed.size(); ++s)
    if (static_cast<std::size_t>(package.bank_sets[s].tier) == tier) fixed[s] = share;
  return fixed;
}

Bytes stage_fixed_bytes(const ModelShape& model, int first, int count, bool head) {
  Bytes bytes = head ? model.head_bytes() : 0;
  for (int b = first; b < first + count; ++b) bytes += model.block_weight_bytes(b);
  return bytes;
}

}  // namespace

std::int64_t expert_slots(const Package& package, Bytes expert_bytes, const std::vector<Bytes>& fixed) {
  std::int64_t slots = 0;
  for (std::size_t s = 0; s < package.bank_sets.size(); ++s) {
    const BankSet& set = package.bank_sets[s];
    Bytes limit = package.banks[static_cast<std::size_t>(set.first_bank)].usable();
    for (int b = 1; b < set.count; ++b)
      limit = std::min(limit, package.banks[static_cast<std::size_t>(set.first_bank + b)].usable());
    const Bytes held = fixed.empty() ? 0 : (fixed[s] + set.count - 1) / set.count;
    const Bytes need = (expert_bytes + set.count - 1) / set.count;
    if (limit > held) slots += (limit - held) / need;
  }
  return slots;
}

Result<std::vector<PipelineStage>> partition(const ModelShape& model, const Package& package, double copies,
                                             bool per_layer) {
  const int moe_layers = model.moe_layers();
  if (moe_layers == 0)
    return fail({"<command line>", 0, 0}, "models", fmt::format("{} has no routed experts", model.name),
                "choose a Mixture-of-Experts model");
  if (Diagnostics d = check_expert_fits(package, model.expert_bytes(), model.name); d.has_errors()) return fail(d);
  // Cut into `n` stages with MoE layers shared out evenly; dense blocks stay with the MoE block after them.
  auto cut = [&](int n) {
    std::vector<PipelineStage> stages;
    int block = 0, moe = 0;
    for (int i = 0; i < n; ++i) {
      PipelineStage s;
      s.first_block = block;
      s.first_moe = moe;
      const int until = static_cast<int>(static_cast<std::int64_t>(moe_layers) * (i + 1) / n);
      while (block < model.layers && (moe < until || i == n - 1)) {
        moe += model.is_moe(block);
        ++block;
      }
      s.block_count = block - s.first_block;
      s.moe_count = moe - s.first_moe;
      s.head = i == n - 1;
      s.fixed = spread_fixed(package, stage_fixed_bytes(model, s.first_block, s.block_count, s.head));
      stages.push_back(std::move(s));
    }
    return stages;
  };
  for (int n = per_layer ? moe_layers : 1; n <= moe_layers; ++n) {
    std::vector<PipelineStage> stages = cut(n);
    const bool fits = std::all_of(stages.begin(), stages.end(), [&](const PipelineStage& s) {
      const double wanted = std::ceil(static_cast<double>(s.moe_count) * model.experts * copies);
      return static_cast<double>(expert_slots(package, model.expert_bytes(), s.fixed)) >= wanted;
    });
    if (fits) return stages;
  }
  return fail({"<command line>", 0, 0}, "package",
              fmt::format("{}: one layer of {} ({} experts of {} bytes, {} copies) does not fit the package's tiers",
                          package.name, model.name, model.experts, model.expert_bytes(), copies),
              "use a package with more memory, or lower --copies");
}

int trace_layer(int moe_layer, int moe_layers, int trace_layers) {
  if (trace_layers >= moe_layers) return moe_layer;
  return static_cast<int>(static_cast<std::int64_t>(moe_layer) * trace_layers / moe_layers);
}

Router::Router(const Trace& trace, int experts, int chiplets)
    : trace_(trace),
      experts_(experts),
      chiplets_(chiplets),
      counts_(static_cast<std::size_t>(experts) * static_cast<std::size_t>(chiplets)),
      demand_(static_cast<std::size_t>(experts)) {}

void Router::route(int layer_of_trace, const std::vector<std::uint32_t>& tokens) {
  const auto ids = trace_.ids(layer_of_trace);
  const auto k = static_cast<std::size_t>(trace_.meta().top_k);
  std::fill(counts_.begin(), counts_.end(), 0);
  std::fill(demand_.begin(), demand_.end(), 0);
  const auto chiplets = static_cast<std::size_t>(chiplets_);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::uint16_t* row = ids.data() + static_cast<std::size_t>(tokens[i]) * k;
    int* counts = counts_.data() + (i % chiplets) * static_cast<std::size_t>(experts_);
    for (std::size_t j = 0; j < k; ++j)
      if (row[j] < experts_) ++counts[row[j]];
  }
  groups_.clear();
  for (int c = 0; c < chiplets_; ++c) {
    for (int e = 0; e < experts_; ++e) {
      const int n =
          counts_[static_cast<std::size_t>(c) * static_cast<std::size_t>(experts_) + static_cast<std::size_t>(e)];
      if (n == 0) continue;
      demand_[static_cast<std::size_t>(e)] += n;
      groups_.push_back({e, c, n});
    }
  }
}

Profile profile_windows(const Trace& trace, const WindowPlan& plan, int moe_layers, int experts, int chiplets) {
  Profile p;
  p.layers = moe_layers;
  p.experts = experts;
  p.chiplets = chiplets;
  p.windows = plan.warmup;
  const auto E = static_cast<std::size_t>(experts), L = static_cast<std::size_t>(moe_layers);
  p.demand.assign(L * E, 0);
  p.active.assign(L * E, 0);
  p.source.assign(L * E * static_cast<std::size_t>(chiplets), 0);
  p.sample.assign(L * static_cast<std::size_t>(plan.warmup) * E, 0);
  p.next.assign(L * E * E, 1.0);  // Laplace smoothing
  const auto k = static_cast<std::size_t>(trace.meta().top_k);
  Router router(trace, experts, chiplets);
  for (int w = 0; w < plan.warmup; ++w) {
    const std::vector<std::uint32_t>& tokens = plan.windows[static_cast<std::size_t>(w)].tokens;
    for (int l = 0; l < moe_layers; ++l) {
      const int here = trace_layer(l, moe_layers, trace.meta().layers);
      router.route(here, tokens);
      const std::size_t row = static_cast<std::size_t>(l) * E;
      for (std::size_t e = 0; e < E; ++e) {
        p.demand[row + e] += router.demand()[e];
        p.active[row + e] += router.demand()[e] > 0;
        p.sample[(static_cast<std::size_t>(l) * static_cast<std::size_t>(plan.warmup) + static_cast<std::size_t>(w)) *
                     E +
                 e] = router.demand()[e];
      }
      for (const TokenGroup& g : router.groups())
        p.source[(row + static_cast<std::size_t>(g.expert)) * static_cast<std::size_t>(chiplets) +
                 static_cast<std::size_t>(g.source)] += g.tokens;
      if (l + 1 == moe_layers) continue;
      const auto a = trace.ids(here), b = trace.ids(trace_layer(l + 1, moe_layers, trace.meta().layers));
      for (std::uint32_t t : tokens) {
        for (std::size_t i = 0; i < k; ++i) {
          const std::uint16_t from = a[static_cast<std::size_t>(t) * k + i];
          if (from >= experts) continue;
          double* out = p.next.data() + (row + from) * E;
          for (std::size_t j = 0; j < k; ++j) {
            const std::uint16_t to = b[static_cast<std::size_t>(t) * k + j];
            if (to < experts) out[to] += 1;
          }
        }
      }
    }
  }
  const double n = std::max(1, plan.warmup);
  for (double& x : p.demand) x /= n;
  for (double& x : p.active) x /= n;
  for (double& x : p.source) x /= n;
  for (std::size_t row = 0; row < L * E; ++row) {
    double sum = 0;
    for (std::size_t j = 0; j < E; ++j) sum += p.next[row * E + j];
    for (std::size_t j = 0; j < E; ++j) p.next[row * E + j] /= sum;
  }
  return p;
}

Profile slice(const Profile& all, int first_moe, int moe_count) {
  Profile p;  // not a copy of `all`: its vectors would keep the capacity of the whole model for every stage
  p.layers = moe_count;
  p.experts = all.experts;
  p.chiplets = all.chiplets;
  p.windows = all.windows;
  auto take = [&](std::vector<double>& v, const std::vector<double>& from, std::size_t per_layer) {
    v.assign(from.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(first_moe) * per_layer),
             from.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(first_moe + moe_count) * per_layer));
  };
  const auto E = static_cast<std::size_t>(all.experts);
  take(p.demand, all.demand, E);
  take(p.active, all.active, E);
  take(p.source, all.source, E * static_cast<std::size_t>(all.chiplets));
  if (!all.sample.empty()) take(p.sample, all.sample, static_cast<std::size_t>(all.windows) * E);
  take(p.next, all.next, E * E);
  return p;
}

namespace {

std::uint64_t total_rate(const Package& package) {
  std::uint64_t rate = 0;
  for (int c = 0; c < package.compute_count; ++c) rate += package.chiplet_rate(c).per_second();
  return rate;
}

Ps throttled(Ps t, int throttle) { return throttle == 1024 ? t : t * 1024 / throttle; }

}  // namespace

BlockTime block_time(const Package& package, const BlockWork& work, int throttle) {
  std::uint64_t bandwidth = 0;
  for (const BankSet& set : package.bank_sets)
    if (set.tier == streaming_tier(package)) bandwidth += set.bandwidth;
  BlockTime t;
  t.macs = work.macs();
  t.bytes = work.weight_bytes + work.kv_read_bytes + work.kv_write_bytes;
  const Ps compute = throttled(Rate(total_rate(package)).time(t.macs), throttle);
  t.duration = std::max(compute, Rate(bandwidth).time(t.bytes));
  return t;
}

Ps gate_time(const Package& package, const BlockWork& work, int throttle) {
  return package.gate_overhead + throttled(Rate(total_rate(package)).time(work.gate_macs), throttle);
}

}  // namespace sojourn
