// Layer execution: the event handlers. See executor.h for the model.
#include "moe/executor.h"

#include <algorithm>
#include <cassert>

namespace sojourn {

Executor::Executor(const Package& package, ExecutorListener& listener, NetworkKind network)
    : package_(package),
      listener_(listener),
      ledger_(package),
      network_(make_network(network, package, engine_, ledger_, *this)),
      cores_(static_cast<std::size_t>(package.compute_count)),
      banks_(package.bank_sets.size()),
      chains_(static_cast<std::size_t>(package.compute_count) * kTiers),
      flows_(static_cast<std::size_t>(package.compute_count) * static_cast<std::size_t>(package.compute_count)),
      aggregators_(static_cast<std::size_t>(package.compute_count)) {
  for (int c = 0; c < package.compute_count; ++c) core_rate_.push_back(package.chiplet_rate(c));
  for (const BankSet& set : package.bank_sets) {
    bank_rate_.emplace_back(set.bandwidth);
    bank_latency_.push_back(package.banks[static_cast<std::size_t>(set.first_bank)].latency);
  }
  bank_lane_ = network_->lanes();
  core_lane_ = bank_lane_ + static_cast<std::uint32_t>(package.bank_sets.size());
  tile_lane_ = core_lane_ + static_cast<std::uint32_t>(package.compute_count);
}

void Executor::set_spans(SpanSink* spans, int package_index) {
  spans_ = spans;
  package_index_ = package_index;
  network_->set_spans(spans, package_index);
}

void Executor::on_event(const Event& event) {
  if (event.kind < kFirstUserEvent) return network_->on_event(event);
  const int index = static_cast<int>(event.index);
  switch (event.kind) {
    case kTile:
      return tile_arrived(index);
    case kStream: {
      JobState& j = jobs_[static_cast<std::size_t>(index)];
      if (j.requested < j.tiles) return request_tile(index, engine_.now());
      chains_[static_cast<std::size_t>(j.chain)].streaming = -1;
      return open_streams(j.chain, engine_.now());
    }
    case kTokens: {
      JobState& j = jobs_[static_cast<std::size_t>(index)];
      j.tokens_ready = true;
      j.previous_end = engine_.now();
      for (int tile = 0; tile < j.arrived; ++tile) start_tile(index, tile, engine_.now());
      return;
    }
    case kJobDone:
      return job_done(index);
    case kMigNext:
      return migrate_next(event.index);
    case kMigWrite:
      return migrate_write(event.index);
    case kMigDone: {
      TransferState& t = transfers_[event.index];
      t.active = false;
      return listener_.on_transfer_done(t.t.tag, engine_.now());
    }
    case kLayerEnd:
      layer_done_ = true;
      return;
    default:
      assert(false);
  }
}

void Executor::advance(Ps duration) {
  layer_done_ = false;
  engine_.run_until(*this, engine_.now() + duration);
}

void Executor::prepare(const LayerWork& work) {
  work_ = work;
  const std::vector<Job>& jobs = *work.jobs;
  const std::vector<Piece>& pieces = *work.pieces;
  const int n = static_cast<int>(jobs.size());
  jobs_.assign(jobs.size(), {});
  for (Chain& chain : chains_) {
    chain.jobs.clear();
    chain.next = chain.open = 0;
    chain.streaming = -1;
  }
  // Largest first: within a chiplet and tier this is the order of streams, and of pieces inside a dispatch flow.
  order_.resize(jobs.size());
  for (int i = 0; i < n; ++i) order_[static_cast<std::size_t>(i)] = i;
  std::sort(order_.begin(), order_.end(), [&](int a, int b) {
    const Job &ja = jobs[static_cast<std::size_t>(a)], &jb = jobs[static_cast<std::size_t>(b)];
    const int ta = ja.tokens * ja.slice.count, tb = jb.tokens * jb.slice.count;
    return ta != tb ? ta > tb : a < b;
  });
  for (int id : order_) {
    const Job& job = jobs[static_cast<std::size_t>(id)];
    JobState& j = jobs_[static_cast<std::size_t>(id)];
    j.chain = job.at.chiplet * kTiers + static_cast<int>(job.at.tier);
    chains_[static_cast<std::size_t>(j.chain)].jobs.push_back(id);
    j.bytes = job.slice.of(work.expert_bytes);
    // Tiles that cross links are kept small enough that token traffic is never long behind one.
    const bool remote = package_.bank_sets[static_cast<std::size_t>(job.at.bank_set)].owner != job.at.chiplet;
    const Bytes limit = remote ? 8 * package_.chunk_bytes : std::max<Bytes>(1, j.bytes);
    const int tiles = (package_.weight_tiles * job.slice.count + kSlices - 1) / kSlices;
    j.tiles = static_cast<int>(std::max<Bytes>(tiles, (j.bytes + limit - 1) / limit));
    const Macs tile = package_.tile_tokens, per_token = job.slice.of(work.macs_per_token);
    j.macs = per_token * tile * ((job.tokens + tile - 1) / tile);
    ledger_.macs += per_token * job.tokens;
  }
  // Pieces by job (gather) and by (source, chiplet) flow, largest job first (dispatch).
  for (const Piece& p : pieces) ++jobs_[static_cast<std::size_t>(p.job)].piece_count;
  int first = 0;
  for (JobState& j : jobs_) {
    j.first_piece = first;
    first += j.piece_count;
    j.pending_pieces = j.piece_count;
    j.piece_count = 0;
  }
  pieces_by_job_.resize(pieces.size());
  for (int i = 0; i < static_cast<int>(pieces.size()); ++i) {
    JobState& j = jobs_[static_cast<std::size_t>(pieces[static_cast<std::size_t>(i)].job)];
    pieces_by_job_[static_cast<std::size_t>(j.first_piece + j.piece_count++)] = i;
  }
  flow_pieces_.clear();
  for (Flow& f : flows_) f = {};
  for (const Piece& p : pieces) {
    const int c = jobs[static_cast<std::size_t>(p.job)].at.chiplet;
    ++flows_[static_cast<std::size_t>(p.source * package_.compute_count + c)].count;
  }
  first = 0;
  for (Flow& f : flows_) {
    f.first = first;
    first += f.count;
    f.count = 0;
  }
  flow_pieces_.resize(pieces.size());
  flow_ends_.resize(pieces.size());
  // Walking jobs by rank keeps every flow's pieces in rank order without a sort.
  for (int id : order_) {
    const JobState& j = jobs_[static_cast<std::size_t>(id)];
    for (int k = 0; k < j.piece_count; ++k) {
      const int piece = pieces_by_job_[static_cast<std::size_t>(j.first_piece + k)];
      const Piece& p = pieces[static_cast<std::size_t>(piece)];
      Flow& f = flows_[static_cast<std::size_t>(p.source * package_.compute_count +
                                                jobs[static_cast<std::size_t>(id)].at.chiplet)];
      f.delivered_end += p.tokens * work.token_bytes;
      flow_pieces_[static_cast<std::size_t>(f.first + f.count)] = piece;
      flow_ends_[static_cast<std::size_t>(f.first + f.count)] = f.delivered_end;
      ++f.count;
    }
  }
  aggregators_.assign(aggregators_.size(), {});
  open_aggregators_ = 0;
  for (const Piece& p : pieces) {
    Aggregator& a = aggregators_[static_cast<std::size_t>(p.source)];
    open_aggregators_ += a.pending == 0;
    ++a.pending;
    a.tokens += p.tokens;
  }
}

LayerOutcome Executor::run_layer(const LayerWork& work) {
  LayerOutcome out;
  out.start = engine_.now();
  layer_done_ = false;
  engine_.run_until(*this, out.start + work.gate);
  routed_at_ = engine_.now();
  layer_end_ = routed_at_;
  std::vector<Ps> core_before = ledger_.core_busy, bank_before, link_before;
  for (const BankLoad& b : ledger_.bank_sets) bank_before.push_back(b.busy);
  for (const LinkLoad& l : ledger_.links) link_before.push_back(l.busy);
  prepare(work);
  if (!work.pieces->empty()) {
    start_dispatch();
    for (int chain = 0; chain < static_cast<int>(chains_.size()); ++chain) open_streams(chain, routed_at_);
    engine_.run(*this);
    assert(layer_done_);
  }
  out.end = engine_.now();
  out.stages[static_cast<std::size_t>(Stage::gate)] = work.gate;
  if (!work.pieces->empty()) {
    // The critical group: last to arrive at the aggregator that finishes last.
    int critical = -1;
    Ps combine = 0;
    for (std::size_t a = 0; a < aggregators_.size(); ++a) {
      const Aggregator& g = aggregators_[a];
      if (g.last_piece < 0) continue;
      const Ps t = compute_time(core_rate_[a], g.tokens * work.combine_macs_per_token);
      if (g.last + t == layer_end_ && critical < 0) {
        critical = g.last_piece;
        combine = t;
      }
    }
    const Piece& p = (*work.pieces)[static_cast<std::size_t>(critical)];
    const JobState& j = jobs_[static_cast<std::size_t>(p.job)];
    out.stages[static_cast<std::size_t>(Stage::dispatch)] = j.tokens_at - routed_at_;
    out.stages[static_cast<std::size_t>(Stage::queue)] = j.queue;
    out.stages[static_cast<std::size_t>(Stage::memory)] = j.memory;
    out.stages[static_cast<std::size_t>(Stage::compute)] = j.compute;
    out.stages[static_cast<std::size_t>(Stage::gather)] = out.end - combine - j.done_at;
    out.stages[static_cast<std::size_t>(Stage::combine)] = combine;
  }
  classify(out, core_before, bank_before, link_before);
  if (spans_) spans_->span(package_index_, SpanTrack::layer, 0, out.start, out.end, "MoE layer");
  return out;
}

void Executor::start_dispatch() {
  const int n = package_.compute_count;
  for (int s = 0; s < n; ++s) {
    for (int i = 0; i < n; ++i) {
      const int c = (s + i) % n;  // every source starts with itself, then its neighbours in turn
      const auto id = static_cast<std::uint32_t>(s * n + c);
      const Flow& f = flows_[id];
      if (f.count == 0) continue;
      network_->send(
          {package_.route_chiplets(s, c), f.delivered_end, Traffic::dispatch, id, engine_.now(), engine_.now(), false});
    }
  }
}

void Executor::on_delivered(Traffic traffic, std::uint32_t tag, Bytes delivered, Ps at) {
  switch (traffic) {
    case Traffic::dispatch: {
      Flow& f = flows_[tag];
      while (f.at < f.count && flow_ends_[static_cast<std::size_t>(f.first + f.at)] <= delivered) {
        piece_arrived(flow_pieces_[static_cast<std::size_t>(f.first + f.at)], at);
        ++f.at;
      }
      return;
    }
    case Traffic::gather: {
      const Piece& p = (*work_.pieces)[tag];
      if (delivered == p.tokens * work_.token_bytes) gathered(static_cast<int>(tag), at);
      return;
    }
    case Traffic::memory:
      engine_.schedule_in_lane(tile_lane_ + static_cast<std::uint32_t>(jobs_[tag].chain), at, kTile, tag);
      return;
    case Traffic::migration:
      engine_.schedule(at, kMigWrite, tag);
      return;
  }
}

void Executor::piece_arrived(int piece, Ps at) {
  const int job = (*work_.pieces)[static_cast<std::size_t>(piece)].job;
  JobState& j = jobs_[static_cast<std::size_t>(job)];
  j.tokens_at = std::max(j.tokens_at, at);
  if (--j.pending_pieces == 0) engine_.schedule(j.tokens_at, kTokens, static_cast<std::uint32_t>(job));
}

void Executor::open_streams(int chain_id, Ps want) {
  Chain& chain = chains_[static_cast<std::size_t>(chain_id)];
  if (chain.streaming >= 0 || chain.next >= static_cast<int>(chain.jobs.size())) return;
  const int job = chain.jobs[static_cast<std::size_t>(chain.next)];
  const int slices = (*work_.jobs)[static_cast<std::size_t>(job)].slice.count;
  if (chain.open + slices > package_.prefetch_depth * kSlices) return;
  ++chain.next;
  chain.open += slices;
  chain.streaming = job;
  jobs_[static_cast<std::size_t>(job)].opened_at = engine_.now();
  request_tile(job, want);
}

void Executor::request_tile(int job, Ps want) {
  JobState& j = jobs_[static_cast<std::size_t>(job)];
  const Location& at = (*work_.jobs)[static_cast<std::size_t>(job)].at;
  const auto set = static_cast<std::size_t>(at.bank_set);
  const Bytes begin = j.requested == 0 ? 0 : tile_end(j, j.requested - 1), end = tile_end(j, j.requested);
  const Ps serve = bank_rate_[set].time(end) - bank_rate_[set].time(begin);
  const FifoServer::Slot slot = banks_[set].reserve(want, serve);
  ledger_.bank_sets[set].foreground += end - begin;
  ledger_.bank_sets[set].busy += serve;
  if (spans_) spans_->span(package_index_, SpanTrack::bank, at.bank_set, slot.start, slot.end, "weights");
  ++j.requested;
  j.bank_end = slot.end;
  const int owner = package_.bank_sets[set].owner;
  const std::span<const int> path = package_.route_chiplets(owner, at.chiplet);
  // A local stream asks for its next tile when this one arrives (without a gap: see tile_arrived); a remote one when
  // the bank is done with it, since the tile then still travels.
  if (!path.empty())
    engine_.schedule_in_lane(bank_lane_ + static_cast<std::uint32_t>(set), slot.end, kStream,
                             static_cast<std::uint32_t>(job));
  network_->send({path, end - begin, Traffic::memory, static_cast<std::uint32_t>(job), slot.start + bank_latency_[set],
                  slot.end + bank_latency_[set], true});
}

void Executor::tile_arrived(int job) {
  JobState& j = jobs_[static_cast<std::size_t>(job)];
  const int tile = j.arrived++;
  if (j.tokens_ready) start_tile(job, tile, engine_.now());
  const Location& at = (*work_.jobs)[static_cast<std::size_t>(job)].at;
  if (package_.bank_sets[static_cast<std::size_t>(at.bank_set)].owner != at.chiplet) return;
  // The bank was free since bank_end; its access latency is pipelined, so it is paid once a stream, as in (10).
  if (j.requested < j.tiles) {
    request_tile(job, j.bank_end);
  } else {
    chains_[static_cast<std::size_t>(j.chain)].streaming = -1;
    open_streams(j.chain, j.bank_end);
  }
}

void Executor::start_tile(int job, int tile, Ps arrived) {
  JobState& j = jobs_[static_cast<std::size_t>(job)];
  const auto c = static_cast<std::size_t>((*work_.jobs)[static_cast<std::size_t>(job)].at.chiplet);
  const Macs begin = j.macs * tile / j.tiles, end = j.macs * (tile + 1) / j.tiles;
  const Ps serve = compute_time(core_rate_[c], end) - compute_time(core_rate_[c], begin);
  const FifoServer::Slot slot = cores_[c].reserve(engine_.now(), serve);
  ledger_.core_busy[c] += serve;
  if (spans_) spans_->span(package_index_, SpanTrack::chiplet, static_cast<int>(c), slot.start, slot.end, "expert");
  // Waiting for a stream that the prefetch window has not opened yet is queueing behind other replicas, not memory.
  const Ps memory = std::max<Ps>(0, arrived - std::max(j.previous_end, j.opened_at));
  j.memory += memory;
  j.queue += slot.start - j.previous_end - memory;
  j.compute += serve;
  j.previous_end = slot.end;
  if (++j.started == j.tiles)
    engine_.schedule_in_lane(core_lane_ + static_cast<std::uint32_t>(c), slot.end, kJobDone,
                             static_cast<std::uint32_t>(job));
}

void Executor::job_done(int job) {
  JobState& j = jobs_[static_cast<std::size_t>(job)];
  const Job& spec = (*work_.jobs)[static_cast<std::size_t>(job)];
  j.done_at = engine_.now();
  listener_.on_job_done(spec.replica);
  chains_[static_cast<std::size_t>(j.chain)].open -= spec.slice.count;
  open_streams(j.chain, engine_.now());
  for (int k = 0; k < j.piece_count; ++k) {
    const int piece = pieces_by_job_[static_cast<std::size_t>(j.first_piece + k)];
    const Piece& p = (*work_.pieces)[static_cast<std::size_t>(piece)];
    network_->send({package_.route_chiplets(spec.at.chiplet, p.source), p.tokens * work_.token_bytes, Traffic::gather,
                    static_cast<std::uint32_t>(piece), engine_.now(), engine_.now(), false});
  }
}

void Executor::gathered(int piece, Ps at) {
  const auto source = static_cast<std::size_t>((*work_.pieces)[static_cast<std::size_t>(piece)].source);
  Aggregator& a = aggregators_[source];
  if (at > a.last || a.last_piece < 0) {
    a.last = at;
    a.last_piece = piece;
  }
  if (--a.pending > 0) return;
  layer_end_ = std::max(layer_end_, a.last + compute_time(core_rate_[source], a.tokens * work_.combine_macs_per_token));
  if (--open_aggregators_ == 0) engine_.schedule(layer_end_, kLayerEnd, 0);
}

void Executor::start_transfer(const Transfer& transfer) {
  std::size_t id = 0;
  while (id < transfers_.size() && transfers_[id].active) ++id;
  if (id == transfers_.size()) transfers_.emplace_back();
  transfers_[id] = {transfer, 0, 0, true};
  engine_.schedule(engine_.now(), kMigNext, static_cast<std::uint32_t>(id));
}

FifoServer::Slot Executor::serve_migration(int bank_set, Bytes begin, Bytes bytes) {
  const auto set = static_cast<std::size_t>(bank_set);
  const Ps serve = bank_rate_[set].time(begin + bytes) - bank_rate_[set].time(begin);
  ledger_.bank_sets[set].migration += bytes;
  ledger_.bank_sets[set].busy += serve;
  return banks_[set].reserve(engine_.now(), serve);
}

void Executor::migrate_next(std::uint32_t id) {
  TransferState& s = transfers_[id];
  const Ps latency = bank_latency_[static_cast<std::size_t>(s.t.from_set)];
  const Bytes bytes = std::min(package_.chunk_bytes, s.t.bytes - s.issued);
  const FifoServer::Slot slot = serve_migration(s.t.from_set, s.issued, bytes);
  s.issued += bytes;
  if (s.issued < s.t.bytes) engine_.schedule(std::max(slot.end, engine_.now() + s.t.gap), kMigNext, id);
  network_->send({s.t.path, bytes, Traffic::migration, id, slot.start + latency, slot.end + latency, true});
}

void Executor::migrate_write(std::uint32_t id) {
  TransferState& s = transfers_[id];
  const Bytes bytes = std::min(package_.chunk_bytes, s.t.bytes - s.arrived);
  const FifoServer::Slot slot = serve_migration(s.t.to_set, s.arrived, bytes);
  if (spans_) spans_->span(package_index_, SpanTrack::migration, static_cast<int>(id), slot.start, slot.end, "write");
  s.arrived += bytes;
  if (s.arrived == s.t.bytes)
    engine_.schedule(slot.end + bank_latency_[static_cast<std::size_t>(s.t.to_set)], kMigDone, id);
}

void Executor::classify(LayerOutcome& out, const std::vector<Ps>& core_before, const std::vector<Ps>& bank_before,
                        const std::vector<Ps>& link_before) const {
  Ps most = 0, sum = 0, fullest = 0;
  auto consider = [&](Ps busy, Bottleneck what, std::size_t index) {
    if (busy <= most) return;
    most = busy;
    out.bottleneck = what;
    out.bottleneck_index = static_cast<int>(index);
  };
  for (std::size_t c = 0; c < core_before.size(); ++c) {
    const Ps busy = ledger_.core_busy[c] - core_before[c];
    sum += busy;
    fullest = std::max(fullest, busy);
    consider(busy, Bottleneck::compute, c);
  }
  for (std::size_t s = 0; s < bank_before.size(); ++s) {
    static constexpr Bottleneck kByTier[kTiers] = {Bottleneck::sram, Bottleneck::hbm, Bottleneck::dram};
    consider(ledger_.bank_sets[s].busy - bank_before[s], kByTier[static_cast<std::size_t>(package_.bank_sets[s].tier)],
             s);
  }
  for (std::size_t u = 0; u < link_before.size(); ++u)
    consider(ledger_.links[u].busy - link_before[u],
             package_.links[u].cls == LinkClass::d2d ? Bottleneck::d2d : Bottleneck::noc, u);
  // A resource explains the layer only if it was busy for more than half of it; otherwise dependencies do.
  if (most * 2 < out.end - out.start) out.bottleneck = Bottleneck::latency;
  if (sum > 0)
    out.load_max_over_mean =
        static_cast<double>(fullest) * static_cast<double>(core_before.size()) / static_cast<double>(sum);
}

}  // namespace sojourn
