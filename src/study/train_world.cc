// Steps, rewards and observations of train_world.h.
#include "study/train_world.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace sojourn {
namespace {

std::unique_ptr<Policy> still_hcrmap(const PolicyRegistry& registry) {
  const auto* entry = registry.find("hcrmap");
  assert(entry != nullptr);
  auto params = resolve(entry->info.params, {{"slow", "none"}}, {"<training>", 0, 0}, "hcrmap");
  assert(params);
  return entry->factory(*params);
}

}  // namespace

TrainWorld::TrainWorld(std::shared_ptr<const Scenario> scenario, std::size_t stage, const PolicyRegistry& registry,
                       int sampled)
    : scenario_(std::move(scenario)),
      package_(*scenario_->package),
      stage_(&scenario_->stages[stage]),
      profile_(slice(scenario_->profile, stage_->first_moe, stage_->moe_count)),
      policy_(still_hcrmap(registry)),
      cost_(package_, scenario_->model),
      router_(*scenario_->trace, scenario_->model.experts, package_.compute_count),
      ledger_(package_),
      scratch_(package_),
      sampled_(sampled > 0 ? std::min(sampled, stage_->moe_count) : stage_->moe_count) {
  limits_ = policy_->limits(scenario_->limits);
  limits_.budget = static_cast<Bytes>(std::floor(static_cast<double>(stage_->moe_count) * scenario_->model.experts *
                                                     policy_->budget_factor(scenario_->copies) +
                                                 1e-9)) *
                   scenario_->model.expert_bytes();
}

bool TrainWorld::start(int stir, Rng& rng) {
  const ModelShape& model = scenario_->model;
  residency_ =
      std::make_unique<Residency>(package_, stage_->moe_count, model.experts, model.expert_bytes(), stage_->fixed);
  PlacementTask task;
  task.package = &package_;
  task.model = &model;
  task.profile = &profile_;
  task.limits = limits_;
  for (std::size_t s = 0; s < package_.bank_sets.size(); ++s)
    task.usable.push_back(std::max<Bytes>(0, residency_->free_bytes(static_cast<int>(s))));
  task.mode = scenario_->mode;
  task.tokens = static_cast<int>(scenario_->plan.windows.front().tokens.size());
  task.seed = scenario_->seed;
  std::vector<PlacedReplica> placed;
  policy_->place(task, placed);
  // Two experts of a layer exchange all their places; capacity and budget stay as they are.
  std::vector<std::vector<int>> as(static_cast<std::size_t>(stage_->moe_count));
  for (auto& row : as) {
    row.resize(static_cast<std::size_t>(model.experts));
    for (int e = 0; e < model.experts; ++e) row[static_cast<std::size_t>(e)] = e;
  }
  for (int i = 0; i < stir; ++i) {
    auto& row = as[rng.below(as.size())];
    const std::size_t a = rng.below(row.size()), b = rng.below(row.size());
    std::swap(row[a], row[b]);
  }
  for (const PlacedReplica& r : placed) {
    assert(r.slice.whole() && "TrainWorld: a shard was placed; training knows whole experts only");
    const int expert = as[static_cast<std::size_t>(r.layer)][static_cast<std::size_t>(r.expert)];
    if (!residency_->place(r.layer, expert, r.at)) return false;
  }
  window_ = scenario_->plan.warmup;
  window_ps_ = 0;
  const std::size_t n = profile_.demand.size();
  ewma_ = last_ = profile_.demand;
  sigma_.assign(n, 0);
  source_ = profile_.source;
  pressure_ = Pressure{};
  pressure_.chiplet_load.assign(static_cast<std::size_t>(package_.compute_count), 0);
  pressure_.link_util.assign(package_.links.size(), 0);
  pressure_.link_weighted.assign(package_.links.size(), 0);
  pressure_.bank_util.assign(package_.bank_sets.size(), 0);
  pressure_.tier_used.assign(kTiers, 0);
  return true;
}

int TrainWorld::left(int credit) const {
  return std::max(0, static_cast<int>(scenario_->plan.windows.size()) - window_ - credit - 1);
}

PolicyView TrainWorld::view() const { return view_of(*residency_); }

PolicyView TrainWorld::view_of(const Residency& residency) const {
  PolicyView v;
  v.package = &package_;
  v.model = &scenario_->model;
  v.directory = &residency;
  v.limits = &limits_;
  v.pressure = &pressure_;
  v.profile = &profile_;
  v.window = window_;
  v.window_ps = window_ps_;
  v.tokens = static_cast<int>(scenario_->plan.windows.front().tokens.size());
  v.layers = stage_->moe_count;
  v.experts = scenario_->model.experts;
  v.chiplets = package_.compute_count;
  v.ewma = ewma_;
  v.sigma = sigma_;
  v.last = last_;
  v.source = source_;
  return v;
}

/// T_l^MoE of window w under a directory and the fast mapper.
Ps TrainWorld::layer_time(const Residency& residency, int local_layer, int w, const MigrationShare& share,
                          Ledger& ledger) {
  const ModelShape& model = scenario_->model;
  const auto& tokens = scenario_->plan.windows[static_cast<std::size_t>(w)].tokens;
  router_.route(trace_layer(stage_->first_moe + local_layer, model.moe_layers(), scenario_->trace->meta().layers),
                tokens);
  assignments_.clear();
  policy_->assign(view_of(residency), {local_layer, router_.groups()}, assignments_);
  jobs_.clear();
  pieces_.clear();
  job_of_replica_.assign(static_cast<std::size_t>(residency.slot_count()), -1);
  for (const Assignment& a : assignments_) {
    int& job = job_of_replica_[static_cast<std::size_t>(a.replica)];
    if (job < 0) {
      job = static_cast<int>(jobs_.size());
      Job fresh;
      fresh.replica = a.replica;
      fresh.at = residency.replica(a.replica).at;
      jobs_.push_back(fresh);
    }
    jobs_[static_cast<std::size_t>(job)].tokens += a.tokens;
    pieces_.push_back({job, router_.groups()[static_cast<std::size_t>(a.group)].source, a.tokens});
  }
  LayerWork work;
  work.jobs = &jobs_;
  work.pieces = &pieces_;
  work.expert_bytes = model.expert_bytes();
  work.token_bytes = model.activation_bytes_per_token();
  work.macs_per_token = model.expert_macs_per_token();
  work.combine_macs_per_token = model.hidden;
  ClosedTerms t;
  (void)closed_layer(package_, work, share, 0, ledger, &t);
  return t.disp + std::max(t.comp + t.queue, t.mem) + t.gath + t.combine;
}

void TrainWorld::serve(const MigrationShare& share) {
  // The layers evaluated change from window to window, so that all are seen.
  ledger_.clear();
  Ps sum = 0;
  const int step = std::max(1, stage_->moe_count / sampled_);
  int count = 0;
  for (int l = window_ % step; l < stage_->moe_count && count < sampled_; l += step, ++count) {
    sum += layer_time(*residency_, l, window_, share, ledger_);
    for (const Job& job : jobs_) {
      residency_->acquire(job.replica, window_);
      residency_->release(job.replica);
    }
  }
  window_s_ = ps_to_s(sum);
  layer_s_ = window_s_ / std::max(1, count);
  // Duration and pressures of the whole window, from the layers seen.
  const double scale = static_cast<double>(stage_->moe_count) / std::max(1, count);
  const Window& window = scenario_->plan.windows[static_cast<std::size_t>(window_)];
  Ps other = 0;
  for (int b = stage_->first_block; b < stage_->first_block + stage_->block_count; ++b)
    other += block_time(package_,
                        block_work(scenario_->model, b, scenario_->mode, static_cast<int>(window.tokens.size()),
                                   std::max(1, static_cast<int>(std::lround(window.context)))),
                        1024)
                 .duration;
  window_ps_ = other + static_cast<Ps>(scale * static_cast<double>(sum));
  const double d = static_cast<double>(std::max<Ps>(1, window_ps_)) / scale;
  const double alpha_mig = policy_->migration_weight();
  Pressure& p = pressure_;
  p.load = p.link = p.bank = p.tier = p.mig = 0;
  for (std::size_t c = 0; c < p.chiplet_load.size(); ++c) {
    p.chiplet_load[c] = static_cast<double>(ledger_.core_busy[c]) / d;
    p.load = std::max(p.load, p.chiplet_load[c]);
  }
  for (std::size_t u = 0; u < package_.links.size(); ++u) {
    const LinkLoad& l = ledger_.links[u];
    const Rate& rate = package_.links[u].bandwidth;
    const double migration = static_cast<double>(rate.time(l.bytes[static_cast<std::size_t>(Traffic::migration)])) / d;
    p.link_util[u] = static_cast<double>(rate.time(l.foreground())) / d;
    p.link_weighted[u] = p.link_util[u] + alpha_mig * migration;
    p.link = std::max(p.link, p.link_weighted[u]);
    p.mig = std::max(p.mig, migration);
  }
  for (std::size_t s = 0; s < package_.bank_sets.size(); ++s) {
    const BankLoad& b = ledger_.bank_sets[s];
    const Rate rate(package_.bank_sets[s].bandwidth);
    p.bank_util[s] = static_cast<double>(rate.time(b.foreground)) / d;
    p.bank = std::max(p.bank, p.bank_util[s] + alpha_mig * static_cast<double>(rate.time(b.migration)) / d);
  }
  std::vector<double> held(kTiers, 0.0), capacity(kTiers, 0.0);
  for (std::size_t s = 0; s < package_.bank_sets.size(); ++s) {
    const auto tier = static_cast<std::size_t>(package_.bank_sets[s].tier);
    held[tier] += static_cast<double>(residency_->used(static_cast<int>(s)));
    capacity[tier] += static_cast<double>(package_.bank_sets[s].usable);
  }
  for (std::size_t t = 0; t < kTiers; ++t) {
    p.tier_used[t] = capacity[t] > 0 ? held[t] / capacity[t] : 1.0;
    if (t < 2 && capacity[t] > 0) p.tier = std::max(p.tier, p.tier_used[t]);
  }
}

void TrainWorld::observe() {
  const double a = scenario_->ewma_alpha;
  const auto E = static_cast<std::size_t>(scenario_->model.experts);
  const auto& tokens = scenario_->plan.windows[static_cast<std::size_t>(window_)].tokens;
  int routed = -1;
  for (int l = 0; l < stage_->moe_count; ++l) {
    const int from = trace_layer(stage_->first_moe + l, scenario_->model.moe_layers(), scenario_->trace->meta().layers);
    if (from != routed) router_.route(from, tokens);  // several model layers may replay one of the trace
    routed = from;
    const std::size_t row = static_cast<std::size_t>(l) * E;
    for (std::size_t e = 0; e < E; ++e) {
      const double d = router_.demand()[e];
      sigma_[row + e] = a * sigma_[row + e] + (1 - a) * std::abs(d - ewma_[row + e]);
      ewma_[row + e] = a * ewma_[row + e] + (1 - a) * d;
      last_[row + e] = d;
    }
  }
}

void TrainWorld::judge(const std::vector<const SlowCandidate*>& actions, const RewardTerms& terms,
                       std::vector<Branch>& out) {
  out.clear();
  before_.assign(static_cast<std::size_t>(stage_->moe_count), -1.0);
  const auto time = [&](const Residency& residency, int l) {
    double sum = 0;
    for (int k = 1; k <= terms.credit; ++k) sum += ps_to_s(layer_time(residency, l, window_ + k, {}, scratch_));
    return sum / std::max(1, terms.credit);
  };
  scratch_.clear();
  for (const SlowCandidate* c : actions) {
    Branch b;
    b.after = std::make_unique<Residency>(*residency_);
    b.acts = c != nullptr && c->action.kind != ActionKind::no_op;
    if (b.acts) {
      const Action& a = c->action;
      if (a.kind == ActionKind::evict)
        b.after->retire(a.replica);
      else
        b.after->publish(b.after->begin(a), a.replica, window_);
      double& before = before_[static_cast<std::size_t>(a.layer)];
      if (before < 0) before = time(*residency_, a.layer);
      b.gain_s = before - time(*b.after, a.layer);
      b.exposed_s = c->exposed_s;
    }
    out.push_back(std::move(b));
  }
}

void TrainWorld::step(const SlowCandidate* action, const RewardTerms& terms, std::span<Branch> branches) {
  const bool acts = action != nullptr && action->action.kind != ActionKind::no_op;
  assert((!acts || action->action.slice.whole()) && "TrainWorld: a copy of a shard was asked for");
  MigrationShare share;
  int pending = -1;
  if (acts && action->action.kind == ActionKind::evict) {
    residency_->retire(action->action.replica);
  } else if (acts) {
    const Location from = residency_->replica(migration_source(action->action, *residency_)).at;
    pending = residency_->begin(action->action);
    if (from.bank_set != action->action.to.bank_set) {
      share.link.assign(package_.links.size(), 0);
      share.bank_set.assign(package_.bank_sets.size(), 0);
      const Bytes part = residency_->expert_bytes() / stage_->moe_count;
      for (int u : migration_path(package_, from, action->action.to)) share.link[static_cast<std::size_t>(u)] += part;
      share.bank_set[static_cast<std::size_t>(from.bank_set)] += part;
      share.bank_set[static_cast<std::size_t>(action->action.to.bank_set)] += part;
    }
  }
  serve(share);
  observe();
  if (pending >= 0) residency_->publish(pending, action->action.replica, window_);
  for (Branch& b : branches)
    b.reward = b.acts ? (b.gain_s - terms.mu_1 * b.exposed_s) / std::max(1e-30, layer_s_) - terms.mu_2 : 0.0;
  ++window_;
}

double TrainWorld::step(const SlowCandidate* action, const RewardTerms& terms) {
  std::vector<Branch> one;
  judge({action}, terms, one);
  step(action, terms, one);
  return one.front().reward;
}

double TrainWorld::evaluate(int w) {
  double sum = 0;
  scratch_.clear();
  for (int l = 0; l < stage_->moe_count; ++l) sum += ps_to_s(layer_time(*residency_, l, w, {}, scratch_));
  return sum / std::max(1, stage_->moe_count);
}

}  // namespace sojourn
