// Serves windows on one package: slow loop, layers, accounting. See HCRMap Algorithm 1 for the order of steps.
#include "study/stage_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

namespace sojourn {

StageRun::StageRun(const Scenario& scenario, const PipelineStage& stage, std::unique_ptr<Policy> policy, int index)
    : scenario_(scenario),
      package_(*scenario.package),
      stage_(stage),
      profile_(slice(scenario.profile, stage.first_moe, stage.moe_count)),
      policy_(std::move(policy)),
      limits_(policy_->limits(scenario.limits)),
      residency_(package_, stage.moe_count, scenario.model.experts, scenario.model.expert_bytes(), stage.fixed),
      executor_(package_, *this, scenario.network),
      router_(*scenario.trace, scenario.model.experts, package_.compute_count),
      index_(index),
      bound_(package_, scenario.tier_rates, bound_rules()) {
  const double factor = policy_->budget_factor(scenario.copies);
  const Bytes experts = static_cast<Bytes>(stage.moe_count) * scenario.model.experts;
  limits_.budget =
      static_cast<Bytes>(std::floor(static_cast<double>(experts) * factor + 1e-9)) * scenario.model.expert_bytes();
  const std::size_t n = profile_.demand.size();
  ewma_ = profile_.demand;
  last_ = profile_.demand;
  sigma_.assign(n, 0);
  source_ = profile_.source;
  window_demand_.assign(n, 0);
  window_source_.assign(source_.size(), 0);
  pressure_.chiplet_load.assign(static_cast<std::size_t>(package_.compute_count), 0);
  pressure_.link_util.assign(package_.links.size(), 0);
  pressure_.link_weighted.assign(package_.links.size(), 0);
  pressure_.bank_util.assign(package_.bank_sets.size(), 0);
  pressure_.tier_used.assign(kTiers, 0);
  totals_.chiplet_busy.assign(static_cast<std::size_t>(package_.compute_count), 0);
  totals_.link_busy.assign(package_.links.size(), 0);
  totals_.bank_busy.assign(package_.bank_sets.size(), 0);
}

BoundRules StageRun::bound_rules() const {
  const ModelShape& model = scenario_.model;
  BoundRules r;
  r.expert_bytes = model.expert_bytes();
  r.token_bytes = model.activation_bytes_per_token();
  r.macs_per_token = model.expert_macs_per_token();
  r.combine_macs_per_token = model.hidden;
  r.layers = stage_.moe_count;
  r.replicas_max = limits_.replicas_max;
  r.updates_max = limits_.updates_max;
  r.events = scenario_.network != NetworkKind::closed;
  for (std::size_t s = 0; s < package_.bank_sets.size(); ++s)
    r.set_bytes.push_back(residency_.free_bytes(static_cast<int>(s)));
  return r;
}

Result<bool> StageRun::place(const std::string& policy_name) {
  policy_name_ = policy_name;
  PlacementTask task;
  task.package = &package_;
  task.model = &scenario_.model;
  task.profile = &profile_;
  task.limits = limits_;
  for (std::size_t s = 0; s < package_.bank_sets.size(); ++s)
    task.usable.push_back(std::max<Bytes>(0, residency_.free_bytes(static_cast<int>(s))));
  task.mode = scenario_.mode;
  task.stages_in_turn = scenario_.network == NetworkKind::closed;
  task.tokens = static_cast<int>(scenario_.plan.windows.front().tokens.size());
  task.seed = scenario_.seed + static_cast<std::uint64_t>(index_) * 1000003;
  std::vector<PlacedReplica> placed;
  policy_->place(task, placed);
  const SourceSpan where{"<command line>", 0, 0};
  for (const PlacedReplica& r : placed) {
    const auto visible = package_.visible(r.at.tier, r.at.chiplet);
    const bool seen = std::find(visible.begin(), visible.end(), r.at.bank_set) != visible.end();
    if (!seen || !residency_.place(r.layer, r.expert, r.at, r.slice))
      return fail(
          where, "policies",
          fmt::format("{}: placed expert {} of layer {} of {} where it does not fit ({} on chiplet {})", policy_name,
                      r.expert, stage_.first_moe + r.layer, scenario_.model.name, tier_name(r.at.tier), r.at.chiplet),
          "use a package with more memory, or lower --copies");
  }
  if (residency_.budget_bytes() > limits_.budget)
    return fail(where, "policies", fmt::format("{}: the placement exceeds the residency budget", policy_name),
                "lower --copies");
  for (int l = 0; l < stage_.moe_count; ++l)
    for (int e = 0; e < scenario_.model.experts; ++e)
      if (residency_.copies(l, e).first > limits_.replicas_max)
        return fail(where, "policies",
                    fmt::format("{}: the placement gives expert {} more than {} replicas", policy_name, e,
                                limits_.replicas_max),
                    "raise --replicas-max");
      else if (slice_cover(residency_, l, e).empty())
        return fail(where, "policies",
                    fmt::format("{}: expert {} of layer {} of {} was left without a replica of all its weights",
                                policy_name, e, stage_.first_moe + l, scenario_.model.name),
                    "use a package with more memory");
  return true;
}

PolicyView StageRun::view(int w) const {
  PolicyView v;
  v.package = &package_;
  v.model = &scenario_.model;
  v.directory = &residency_;
  v.limits = &limits_;
  v.pressure = &pressure_;
  v.profile = &profile_;
  v.window = w;
  v.window_ps = window_ps_;
  v.tokens = static_cast<int>(scenario_.plan.windows.front().tokens.size());
  v.layers = stage_.moe_count;
  v.experts = scenario_.model.experts;
  v.chiplets = package_.compute_count;
  v.ewma = ewma_;
  v.sigma = sigma_;
  v.last = last_;
  v.source = source_;
  return v;
}

void StageRun::decide(int w, bool scored) {
  actions_.clear();
  policy_->decide(view(w), actions_);
  migrating_.assign(package_.links.size(), 0);
  int started = 0;
  for (const Action& action : actions_) {
    const LinkUse use{pressure_.link_util, migrating_, window_ps_};
    const Verdict verdict = legal(action, residency_, limits_, w, started, use);
    if (verdict != Verdict::ok) {
      if (scored) ++(verdict == Verdict::link_busy ? totals_.deferred : totals_.refused);
      continue;
    }
    if (action.kind == ActionKind::no_op || action.kind == ActionKind::retain) continue;
    ++started;
    ++migrations_started_;
    if (action.kind == ActionKind::evict)
      residency_.retire(action.replica);
    else
      start_migration(action);
    if (!scored) continue;
    totals_.promote += action.kind == ActionKind::promote;
    totals_.demote += action.kind == ActionKind::demote;
    totals_.evict += action.kind == ActionKind::evict;
    totals_.relocate += action.kind == ActionKind::relocate;
  }
}

void StageRun::start_migration(const Action& action) {
  const int source = migration_source(action, residency_);
  const Location from = residency_.replica(source).at;
  std::size_t id = 0;
  while (id < migrations_.size() && migrations_[id].active) ++id;
  if (id == migrations_.size()) migrations_.emplace_back();
  migrations_[id] = {residency_.begin(action), action.replica, source, true};
  residency_.acquire(source, residency_.replica(source).last_used_window);  // the copy being read may not be freed
  const auto tag = static_cast<std::uint32_t>(id);
  if (from.bank_set == action.to.bank_set) {  // another execution chiplet for the same banks: nothing moves
    on_transfer_done(tag, executor_.now());
    return;
  }
  const std::span<const int> path = migration_path(package_, from, action.to);
  const Bytes bytes = residency_.replica(migrations_[id].pending).slice.of(residency_.expert_bytes());
  Ps gap = 0;
  for (int u : path) {
    const auto i = static_cast<std::size_t>(u);
    const double room = std::max(0.05, limits_.link_threshold - pressure_.link_util[i]);
    gap = std::max(gap,
                   static_cast<Ps>(static_cast<double>(package_.links[i].bandwidth.time(package_.chunk_bytes)) / room));
    if (window_ps_ > 0)
      migrating_[i] += static_cast<double>(package_.links[i].bandwidth.time(bytes)) / static_cast<double>(window_ps_);
  }
  if (scenario_.network != NetworkKind::closed) {
    executor_.start_transfer({tag, from.bank_set, action.to.bank_set, path, bytes, gap});
    return;
  }
  // Closed form: the copy takes the whole window; its bytes are shared out over the window's layers.
  const Bytes share = bytes / stage_.moe_count;
  for (int u : path) closed_share_.link[static_cast<std::size_t>(u)] += share;
  closed_share_.bank_set[static_cast<std::size_t>(from.bank_set)] += share;
  closed_share_.bank_set[static_cast<std::size_t>(action.to.bank_set)] += share;
  executor_.ledger().requested[static_cast<std::size_t>(Traffic::migration)] += share * stage_.moe_count;
  closed_pending_.push_back(tag);
}

void StageRun::on_transfer_done(std::uint32_t tag, Ps) {
  Migration& m = migrations_[tag];
  m.active = false;
  residency_.publish(m.pending, m.retire, window_);
  residency_.release(m.source);
}

void StageRun::assign(int local_layer) {
  assignments_.clear();
  policy_->assign(view(window_), {local_layer, router_.groups()}, assignments_);
  jobs_.clear();
  pieces_.clear();
  job_of_replica_.assign(static_cast<std::size_t>(residency_.slot_count()), -1);
  std::int64_t assigned = 0;
  for (const Assignment& a : assignments_) {
    const TokenGroup& g = router_.groups()[static_cast<std::size_t>(a.group)];
    const Replica& r = residency_.replica(a.replica);
    // A policy that breaks these is a bug in the policy, not in the user's input.
    assert(r.state == ReplicaState::live && r.layer == local_layer && r.expert == g.expert && a.tokens > 0);
    int& job = job_of_replica_[static_cast<std::size_t>(a.replica)];
    if (job < 0) {
      job = static_cast<int>(jobs_.size());
      jobs_.push_back({a.replica, r.at, 0, r.slice});
      residency_.acquire(a.replica, window_);
    }
    jobs_[static_cast<std::size_t>(job)].tokens += a.tokens;
    assigned += static_cast<std::int64_t>(a.tokens) * r.slice.count;
    if (!pieces_.empty() && pieces_.back().job == job && pieces_.back().source == g.source)
      pieces_.back().tokens += a.tokens;
    else
      pieces_.push_back({job, g.source, a.tokens});
  }
  std::int64_t routed = 0;
  for (const TokenGroup& g : router_.groups()) routed += static_cast<std::int64_t>(g.tokens) * kSlices;
  assert(assigned == routed && every_slice_once());
  (void)assigned;
  (void)routed;
}

bool StageRun::every_slice_once() const {
  std::vector<int> change(router_.groups().size() * (kSlices + 1), 0);
  for (const Assignment& a : assignments_) {
    const Slice s = residency_.replica(a.replica).slice;
    change[static_cast<std::size_t>(a.group) * (kSlices + 1) + s.first] += a.tokens;
    change[static_cast<std::size_t>(a.group) * (kSlices + 1) + static_cast<std::size_t>(s.end())] -= a.tokens;
  }
  for (std::size_t g = 0; g < router_.groups().size(); ++g) {
    int tokens = 0;
    for (std::size_t i = 0; i < kSlices; ++i) {
      tokens += change[g * (kSlices + 1) + i];
      if (tokens != router_.groups()[g].tokens) return false;
    }
  }
  return true;
}

void StageRun::run_moe_layer(int local_layer, const std::vector<std::uint32_t>& tokens, bool scored,
                             const BlockWork& block) {
  const ModelShape& model = scenario_.model;
  const int moe_layers = model.moe_layers();
  router_.route(trace_layer(stage_.first_moe + local_layer, moe_layers, scenario_.trace->meta().layers), tokens);
  const auto E = static_cast<std::size_t>(model.experts), C = static_cast<std::size_t>(package_.compute_count);
  const std::size_t row = static_cast<std::size_t>(local_layer) * E;
  for (std::size_t e = 0; e < E; ++e) window_demand_[row + e] = router_.demand()[e];
  for (std::size_t c = 0; c < C; ++c)
    for (std::size_t e = 0; e < E; ++e) window_source_[(row + e) * C + c] = router_.counts()[c * E + e];
  assign(local_layer);
  gate_groups_ += static_cast<std::int64_t>(router_.groups().size());

  LayerWork work;
  work.jobs = &jobs_;
  work.pieces = &pieces_;
  work.expert_bytes = model.expert_bytes();
  work.token_bytes = model.activation_bytes_per_token();
  work.macs_per_token = model.expert_macs_per_token();
  work.combine_macs_per_token = model.hidden;
  work.gate = gate_time(package_, block, throttle_);
  work.throttle = throttle_;
  if (scenario_.observer != nullptr)
    scenario_.observer->on_layer(model.name, scenario_.mode, policy_name_, window_, stage_.first_moe + local_layer,
                                 work);
  LayerOutcome out;
  if (scenario_.network != NetworkKind::closed) {
    out = executor_.run_layer(work);
  } else {
    out = closed_layer(package_, work, closed_share_, executor_.now(), executor_.ledger());
    executor_.advance(out.end - out.start);
    closed_events_ += static_cast<std::int64_t>(pieces_.size());
    for (const Job& job : jobs_) residency_.release(job.replica);
  }
  if (!scored) return;

  BoundDemand routed;
  routed.demand = &router_.demand();
  routed.sources = &router_.counts();
  routed.aggregated.assign(C, 0);
  for (const TokenGroup& g : router_.groups()) routed.aggregated[static_cast<std::size_t>(g.source)] += g.tokens;
  routed.gate = gate_time(package_, block, 1024);
  bound_.add(routed);
  totals_.moe += out.end - out.start;
  for (std::size_t i = 0; i < kStages; ++i) totals_.stages[i] += out.stages[i];
  ++totals_.layers;
  totals_.load_ratio += out.load_max_over_mean;
  ++totals_.bottleneck[kBottleneckNames[static_cast<std::size_t>(out.bottleneck)]];
}

Ps StageRun::serve(int w, bool scored) {
  window_ = w;
  const Ps begin = executor_.now();
  [[maybe_unused]] const Ps moe_before = totals_.moe;
  executor_.ledger().clear();
  other_macs_ = other_bytes_ = 0;
  gate_groups_ = migrations_started_ = 0;
  closed_share_.link.assign(package_.links.size(), 0);
  closed_share_.bank_set.assign(package_.bank_sets.size(), 0);
  decide(w, scored);
  const Window& window = scenario_.plan.windows[static_cast<std::size_t>(w)];
  const int tokens = static_cast<int>(window.tokens.size());
  const int context = std::max(1, static_cast<int>(std::lround(window.context)));
  int local = 0;
  for (int b = stage_.first_block; b < stage_.first_block + stage_.block_count; ++b) {
    const BlockWork work = block_work(scenario_.model, b, scenario_.mode, tokens, context);
    const BlockTime time = block_time(package_, work, throttle_);
    other_macs_ += time.macs + work.gate_macs;
    other_bytes_ += time.bytes;
    executor_.advance(time.duration);
    if (scenario_.model.is_moe(b)) run_moe_layer(local++, window.tokens, scored, work);
  }
  if (stage_.head) {
    const BlockTime time = block_time(package_, head_work(scenario_.model, std::max(1, window.finished)), throttle_);
    other_macs_ += time.macs;
    other_bytes_ += time.bytes;
    executor_.advance(time.duration);
  }
  if (scored) {
    const WindowBound bound = bound_.window();
    assert(bound.latency <= totals_.moe - moe_before);
    totals_.bound += bound.latency;
    for (const BoundResource r : bound.resources) ++totals_.bound_by[kBoundResourceNames[static_cast<std::size_t>(r)]];
  }
  for (std::uint32_t tag : closed_pending_) on_transfer_done(tag, executor_.now());
  closed_pending_.clear();
  const Ps duration = executor_.now() - begin;
  observe_demand();
  close_window(duration, scored);
  return duration;
}

void StageRun::finish() {
  const WindowBound run = bound_.run();
  assert(run.latency <= totals_.moe);
  if (run.resources.empty()) return;
  totals_.bound = run.latency;
  totals_.bound_by.clear();
  for (const BoundResource r : run.resources) ++totals_.bound_by[kBoundResourceNames[static_cast<std::size_t>(r)]];
}

void StageRun::observe_demand() {
  const double a = scenario_.ewma_alpha;
  for (std::size_t i = 0; i < ewma_.size(); ++i) {
    const double d = window_demand_[i];
    sigma_[i] = a * sigma_[i] + (1 - a) * std::abs(d - ewma_[i]);
    ewma_[i] = a * ewma_[i] + (1 - a) * d;
    last_[i] = d;
  }
  for (std::size_t i = 0; i < source_.size(); ++i) source_[i] = a * source_[i] + (1 - a) * window_source_[i];
}

Bytes StageRun::counter_bytes() const {
  // One 32-bit counter a link and bank set (weighted utilisation), a chiplet (queued service) and a tier, as hardware
  // would keep them for the current layer.
  return static_cast<Bytes>(4 * (package_.links.size() + package_.bank_sets.size() +
                                 static_cast<std::size_t>(package_.compute_count) + kTiers));
}

void StageRun::close_window(Ps duration, bool scored) {
  const Ledger& ledger = executor_.ledger();
  const double d = static_cast<double>(std::max<Ps>(1, duration));
  const double alpha_mig = policy_->migration_weight();  // of pressures only: never of latency or energy
  Pressure& p = pressure_;
  p.load = p.link = p.bank = p.tier = p.mig = 0;
  for (std::size_t c = 0; c < p.chiplet_load.size(); ++c) {
    p.chiplet_load[c] = static_cast<double>(ledger.core_busy[c]) / d;
    p.load = std::max(p.load, p.chiplet_load[c]);
  }
  for (std::size_t u = 0; u < package_.links.size(); ++u) {
    const LinkLoad& l = ledger.links[u];
    const Rate& rate = package_.links[u].bandwidth;
    const double migration = static_cast<double>(rate.time(l.bytes[static_cast<std::size_t>(Traffic::migration)])) / d;
    p.link_util[u] = static_cast<double>(rate.time(l.foreground())) / d;
    p.link_weighted[u] = p.link_util[u] + alpha_mig * migration;
    p.link = std::max(p.link, p.link_weighted[u]);
    p.mig = std::max(p.mig, migration);
  }
  for (std::size_t s = 0; s < package_.bank_sets.size(); ++s) {
    const BankLoad& b = ledger.bank_sets[s];
    const Rate rate(package_.bank_sets[s].bandwidth);
    p.bank_util[s] = static_cast<double>(rate.time(b.foreground)) / d;
    p.bank = std::max(p.bank, p.bank_util[s] + alpha_mig * static_cast<double>(rate.time(b.migration)) / d);
  }
  std::array<double, kTiers> held{}, room{};
  for (std::size_t s = 0; s < package_.bank_sets.size(); ++s) {
    const auto tier = static_cast<std::size_t>(package_.bank_sets[s].tier);
    held[tier] += static_cast<double>(residency_.used(static_cast<int>(s)));
    room[tier] += static_cast<double>(package_.bank_sets[s].usable);
  }
  for (std::size_t tier = 0; tier < kTiers; ++tier) {
    p.tier_used[tier] = room[tier] > 0 ? held[tier] / room[tier] : 1.0;
    if (tier < 2 && room[tier] > 0) p.tier = std::max(p.tier, p.tier_used[tier]);
  }
  window_ps_ = duration;

  EnergyTerms e;
  e.compute = (ledger.macs + other_macs_) * package_.energy_per_mac;
  for (std::size_t u = 0; u < package_.links.size(); ++u)
    (package_.links[u].cls == LinkClass::noc ? e.noc : e.d2d) +=
        ledger.links[u].total() * package_.links[u].energy_per_byte;
  std::array<Fj, kTiers> tier_energy{}, per_byte{};
  for (std::size_t s = 0; s < package_.bank_sets.size(); ++s) {
    const BankSet& set = package_.bank_sets[s];
    const Fj cost = package_.banks[static_cast<std::size_t>(set.first_bank)].energy_per_byte;
    tier_energy[static_cast<std::size_t>(set.tier)] += ledger.bank_sets[s].total() * cost;
    per_byte[static_cast<std::size_t>(set.tier)] = cost;
  }
  const auto stream = static_cast<std::size_t>(streaming_tier(package_));
  tier_energy[stream] += other_bytes_ * per_byte[stream];
  e.sram = tier_energy[0];
  e.hbm = tier_energy[1];
  e.dram = tier_energy[2];
  e.migration = migrations_started_ * package_.energy_per_migration;
  e.gate = gate_groups_ * package_.energy_per_gate_group;

  // Power cap (after RAPL): a window that used more than cap x duration slows the next one's compute in proportion.
  const bool was_throttled = throttle_ < 1024;
  throttle_ = 1024;
  if (package_.power_cap_w > 0) {
    const double budget_fj = package_.power_cap_w * ps_to_s(duration) * 1e15;
    const double share = budget_fj / static_cast<double>(std::max<Fj>(1, e.total()));
    if (share < 1) throttle_ = static_cast<int>(1024 * std::max(package_.throttle_floor, share));
  }
  if (!scored) return;
  totals_.throttled += was_throttled;
  totals_.energy.add(e);
  for (std::size_t k = 0; k < kTraffic; ++k) totals_.requested[k] += ledger.requested[k];
  totals_.replicas += static_cast<double>(residency_.live_bytes()) / static_cast<double>(residency_.expert_bytes());
  totals_.resident_max = std::max(totals_.resident_max, residency_.resident_bytes());
  totals_.directory_max = std::max(totals_.directory_max, residency_.directory_bytes());
  for (std::size_t c = 0; c < totals_.chiplet_busy.size(); ++c) totals_.chiplet_busy[c] += ledger.core_busy[c];
  for (std::size_t u = 0; u < totals_.link_busy.size(); ++u) totals_.link_busy[u] += ledger.links[u].busy;
  for (std::size_t s = 0; s < totals_.bank_busy.size(); ++s) totals_.bank_busy[s] += ledger.bank_sets[s].busy;
}

}  // namespace sojourn
