// Event-level execution of one routed MoE layer on a package (HCRMap 4.4, 4.5), with migrations in the background.
//
// A layer runs gate -> dispatch -> queue / weight access / compute -> gather -> combine over its routed token groups:
//   * gate: every chiplet scores its own tokens, then all groups are known.
//   * dispatch: source s sends chiplet c the activations of all its groups for c, N_g d bytes each, largest job first.
//   * weights: each active replica's weights are read once a layer, in tiles, from its bank set along its path; a
//     chiplet opens its streams in descending token order, one at a time and tier, while the unfinished jobs of that
//     tier fit its stream buffer of `prefetch_depth` experts (a shard takes its share of one).
//   * compute: a replica's work is one task a tile, on all cores of its chiplet (k = N_c^core, replicas in turn, so
//   that
//     (4) holds at every instant), first come first served. A task is ready when its tile and all of the replica's
//     tokens are there: the first tile gates compute, the rest overlaps. T_r^comp as in (13),
//     eta_r = N / (tile ceil(N / tile)).
//   * gather: each group's outputs go back to a_g = s_g when its replica is done; combine adds the k outputs a token.
//
// A shard (slice of c of the kSlices slices) takes c / kSlices of the expert's weight bytes, weight tiles and MACs a
// token; its pieces carry whole activation vectors out and whole partial sums back, and combine adds each of them.
//
// Stage times telescope: for every group gate + disp + queue + mem + comp + gath + combine is exactly its completion
// time C_g of (14), and the layer's latency is that of the slowest.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/ledger.h"
#include "network/network.h"
#include "sojourn/package.h"
#include "sojourn/residency.h"
#include "sojourn/results.h"

namespace sojourn {

/// An active replica with its tokens: xi_r = 1, N_r.
struct Job {
  int replica = 0;  ///< directory id, given back when the job is done
  Location at;
  int tokens = 0;
  Slice slice{};
};

/// A token group (or part of one) on its replica.
struct Piece {
  int job = 0;
  int source = 0;
  int tokens = 0;
};

struct LayerWork {
  const std::vector<Job>* jobs = nullptr;
  const std::vector<Piece>* pieces = nullptr;
  Bytes expert_bytes = 0;
  Bytes token_bytes = 0;            ///< an activation vector
  Macs macs_per_token = 0;          ///< Ops^token of the expert
  Macs combine_macs_per_token = 0;  ///< d: one scaled addition an expert output
  Ps gate = 0;                      ///< duration of the gate
  int throttle = 1024;              ///< compute throughput in 1/1024 of nominal (power cap)
};

enum class Bottleneck : std::uint8_t { compute, sram, hbm, dram, d2d, noc, latency };
inline constexpr std::array<const char*, 7> kBottleneckNames = {"compute",   "sram banks", "hbm banks", "dram banks",
                                                                "d2d links", "noc links",  "latency"};

struct LayerOutcome {
  Ps start = 0, end = 0;
  std::array<Ps, kStages> stages{};  ///< of the critical group; sums to end - start
  Bottleneck bottleneck = Bottleneck::latency;
  int bottleneck_index = 0;  ///< chiplet, bank set or link
  double load_max_over_mean = 1.0;
};

/// A background copy of weights between two bank sets.
struct Transfer {
  std::uint32_t tag = 0;
  int from_set = 0, to_set = 0;
  std::span<const int> path;
  Bytes bytes = 0;
  Ps gap = 0;  ///< least time between the starts of two chunks (pacing under (40))
};

class ExecutorListener {
 public:
  virtual ~ExecutorListener() = default;
  virtual void on_job_done(int replica) = 0;                    ///< its groups left the replica
  virtual void on_transfer_done(std::uint32_t tag, Ps at) = 0;  ///< the last chunk is written
};

class Executor final : private NetworkSink {
 public:
  /// `network`: packet or flit (closed runs no layers, only time and transfers: as packet).
  Executor(const Package& package, ExecutorListener& listener, NetworkKind network = NetworkKind::packet);

  /// Runs one layer from now to its end.
  LayerOutcome run_layer(const LayerWork& work);
  /// Lets `duration` pass (non-routed events), background transfers going on.
  void advance(Ps duration);
  void start_transfer(const Transfer& transfer);

  [[nodiscard]] Ps now() const { return engine_.now(); }
  [[nodiscard]] std::int64_t events() const { return engine_.events(); }
  Ledger& ledger() { return ledger_; }
  void set_spans(SpanSink* spans, int package_index);

  // for Engine
  void on_event(const Event& event);
  [[nodiscard]] bool finished() const { return layer_done_; }

 private:
  enum Kind : std::uint16_t {
    kTile = kFirstUserEvent,
    kStream,
    kTokens,
    kJobDone,
    kMigNext,
    kMigWrite,
    kMigDone,
    kLayerEnd
  };
  struct JobState {
    int chain = 0;
    int tiles = 0, requested = 0, arrived = 0, started = 0;
    int pending_pieces = 0;
    int first_piece = 0, piece_count = 0;  ///< into pieces_by_job_
    bool tokens_ready = false;
    Ps tokens_at = 0, previous_end = 0, opened_at = 0, bank_end = 0;
    Ps memory = 0, queue = 0, compute = 0;
    Ps done_at = 0;
    Bytes bytes = 0;
    Macs macs = 0;  ///< legal-tile work: ops x tile x ceil(N / tile)
  };
  struct Chain {  ///< weight streams of one (chiplet, tier), in order
    std::vector<int> jobs;
    int next = 0, streaming = -1;
    int open = 0;  ///< slices streaming, waiting or in computation
  };
  struct Flow {                        ///< dispatch of one (source, chiplet)
    int first = 0, count = 0, at = 0;  ///< into flow_pieces_
    Bytes delivered_end = 0;
  };
  struct TransferState {
    Transfer t;
    Bytes issued = 0, arrived = 0;
    bool active = false;
  };
  struct Aggregator {
    int pending = 0, tokens = 0;
    Ps last = 0;
    int last_piece = -1;
  };

  void on_delivered(Traffic traffic, std::uint32_t tag, Bytes delivered, Ps at) override;
  void prepare(const LayerWork& work);
  void start_dispatch();
  void open_streams(int chain, Ps want);
  void request_tile(int job, Ps want);
  void tile_arrived(int job);
  void start_tile(int job, int tile, Ps arrived);
  void piece_arrived(int piece, Ps at);
  void job_done(int job);
  void gathered(int piece, Ps at);
  FifoServer::Slot serve_migration(int bank_set, Bytes begin, Bytes bytes);
  void migrate_next(std::uint32_t id);
  void migrate_write(std::uint32_t id);
  void classify(LayerOutcome& out, const std::vector<Ps>& core_before, const std::vector<Ps>& bank_before,
                const std::vector<Ps>& link_before) const;
  [[nodiscard]] Bytes tile_end(const JobState& j, int tile) const { return j.bytes * (tile + 1) / j.tiles; }
  [[nodiscard]] Ps compute_time(const Rate& rate, Macs macs) const {
    const Ps t = rate.time(macs);
    return work_.throttle == 1024 ? t : t * 1024 / work_.throttle;
  }

  const Package& package_;
  ExecutorListener& listener_;
  Engine engine_;
  Ledger ledger_;
  std::unique_ptr<Network> network_;
  SpanSink* spans_ = nullptr;
  int package_index_ = 0;
  std::vector<Rate> core_rate_, bank_rate_;
  std::vector<Ps> bank_latency_;
  std::vector<FifoServer> cores_, banks_;
  std::uint32_t bank_lane_ = 0, core_lane_ = 0, tile_lane_ = 0;  ///< first event lane of bank sets, cores and chains

  LayerWork work_;
  bool layer_done_ = false;
  Ps routed_at_ = 0;
  std::vector<JobState> jobs_;
  std::vector<int> pieces_by_job_;
  std::vector<Chain> chains_;
  std::vector<Flow> flows_;
  std::vector<int> flow_pieces_;
  std::vector<Bytes> flow_ends_;
  std::vector<int> order_;
  std::vector<Aggregator> aggregators_;
  int open_aggregators_ = 0;
  Ps layer_end_ = 0;
  std::vector<TransferState> transfers_;
};

}  // namespace sojourn
