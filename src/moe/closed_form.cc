// Closed-form layer latency; see closed_form.h for the equations.
#include "moe/closed_form.h"

#include <algorithm>

namespace sojourn {

void ClassLoad::request(std::span<const int> path, Bytes bytes) {
  Ps route = 0;
  for (const int u : path) {
    const Link& l = package_.links[static_cast<std::size_t>(u)];
    link_[static_cast<std::size_t>(u)] += bytes;
    route += l.latency + l.bandwidth.time(bytes);
  }
  longest_route_ = std::max(longest_route_, route);
}

Ps ClassLoad::service() const {
  Ps worst = 0;
  for (std::size_t u = 0; u < link_.size(); ++u) worst = std::max(worst, package_.links[u].bandwidth.time(link_[u]));
  return worst;
}

LayerOutcome closed_layer(const Package& p, const LayerWork& work, const MigrationShare& migration, Ps now,
                          Ledger& ledger, ClosedTerms* terms) {
  ClassLoad dispatch(p), gather(p), memory(p);
  std::vector<Bytes> bank(p.bank_sets.size());
  std::vector<Ps> chiplet(static_cast<std::size_t>(p.compute_count));
  std::vector<int> combined(static_cast<std::size_t>(p.compute_count));
  ClosedTerms t;
  auto stretch = [&](Ps x) { return work.throttle == 1024 ? x : x * 1024 / work.throttle; };
  for (const Piece& piece : *work.pieces) {
    const Job& job = (*work.jobs)[static_cast<std::size_t>(piece.job)];
    const Bytes bytes = piece.tokens * work.token_bytes;
    const auto out = p.route_chiplets(piece.source, job.at.chiplet),
               back = p.route_chiplets(job.at.chiplet, piece.source);
    dispatch.request(out, bytes);
    gather.request(back, bytes);
    ledger.request(Traffic::dispatch, out, bytes);
    ledger.request(Traffic::gather, back, bytes);
    combined[static_cast<std::size_t>(piece.source)] += piece.tokens;
  }
  for (const Job& job : *work.jobs) {
    const auto c = static_cast<std::size_t>(job.at.chiplet), set = static_cast<std::size_t>(job.at.bank_set);
    const auto path = p.route_chiplets(p.bank_sets[set].owner, job.at.chiplet);
    const Bytes weights = job.slice.of(work.expert_bytes);
    memory.request(path, weights);
    ledger.request(Traffic::memory, path, weights);
    bank[set] += weights;
    const Macs tile = p.tile_tokens, per_token = job.slice.of(work.macs_per_token);
    const Ps comp = stretch(p.chiplet_rate(job.at.chiplet).time(per_token * tile * ((job.tokens + tile - 1) / tile)));
    chiplet[c] += comp;
    ledger.core_busy[c] += comp;
    ledger.macs += per_token * job.tokens;
    t.comp = std::max(t.comp, comp);
  }
  Bottleneck bank_kind = Bottleneck::hbm;
  int bank_index = 0;
  for (std::size_t s = 0; s < bank.size(); ++s) {
    const BankSet& set = p.bank_sets[s];
    const Bytes moved = migration.bank_set.empty() ? 0 : migration.bank_set[s];
    const Bytes total = bank[s] + moved;
    if (total == 0) continue;
    const Ps serve = Rate(set.bandwidth).time(total);
    ledger.bank_sets[s].foreground += bank[s];
    ledger.bank_sets[s].migration += moved;
    ledger.bank_sets[s].busy += serve;
    const Ps time = p.banks[static_cast<std::size_t>(set.first_bank)].latency + serve;
    if (time <= t.bank) continue;
    t.bank = time;
    static constexpr Bottleneck kByTier[kTiers] = {Bottleneck::sram, Bottleneck::hbm, Bottleneck::dram};
    bank_kind = kByTier[static_cast<std::size_t>(set.tier)];
    bank_index = static_cast<int>(s);
  }
  t.disp = dispatch.time();
  t.gath = gather.time();
  t.mem = std::max(t.bank, memory.time());
  Ps worst_link = 0;
  for (std::size_t u = 0; u < p.links.size(); ++u) {
    const Bytes moved = migration.link.empty() ? 0 : migration.link[u];
    const Ps busy = p.links[u].bandwidth.time(dispatch.on(u) + gather.on(u) + memory.on(u) + moved);
    ledger.links[u].bytes[static_cast<std::size_t>(Traffic::migration)] += moved;
    ledger.links[u].busy += busy;
    worst_link = std::max(worst_link, busy);
  }
  t.net = std::max({worst_link, dispatch.longest_route(), gather.longest_route(), memory.longest_route()});
  const auto fullest = std::max_element(chiplet.begin(), chiplet.end());
  t.queue = *fullest - t.comp;
  for (std::size_t c = 0; c < combined.size(); ++c)
    if (combined[c] > 0)
      t.combine = std::max(
          t.combine, stretch(p.chiplet_rate(static_cast<int>(c)).time(combined[c] * work.combine_macs_per_token)));

  LayerOutcome out;
  out.start = now;
  out.stages = {work.gate, t.disp, t.queue, std::max<Ps>(0, t.mem - t.comp), t.comp, t.gath, t.combine};
  out.end = now;
  for (Ps s : out.stages) out.end += s;
  if (t.mem > t.comp + t.queue) {
    out.bottleneck = t.bank == t.mem ? bank_kind : Bottleneck::d2d;
    out.bottleneck_index = bank_index;
  } else if (std::max(t.disp, t.gath) > t.comp + t.queue) {
    out.bottleneck = Bottleneck::d2d;
  } else {
    out.bottleneck = Bottleneck::compute;
    out.bottleneck_index = static_cast<int>(fullest - chiplet.begin());
  }
  Ps sum = 0;
  for (Ps c : chiplet) sum += c;
  if (sum > 0)
    out.load_max_over_mean =
        static_cast<double>(*fullest) * static_cast<double>(chiplet.size()) / static_cast<double>(sum);
  if (terms) *terms = t;
  return out;
}

}  // namespace sojourn
