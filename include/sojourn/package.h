// The hardware graph of a package (HCRMap 4.2): chiplets, routers and links, memory banks of three tiers, groups.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sojourn/units.h"

namespace sojourn {

enum class Tier : std::uint8_t { sram = 0, hbm = 1, dram = 2 };
inline constexpr int kTiers = 3;
[[nodiscard]] inline const char* tier_name(Tier t) {
  return t == Tier::sram ? "sram" : t == Tier::hbm ? "hbm" : "dram";
}

enum class LinkClass : std::uint8_t { noc, d2d };  ///< which energy term a link's traffic is charged to

/// A directed link u: B_u, epsilon_u, delta_u, v_u, lambda_u^0.
struct Link {
  std::string name;      ///< "c0->c1"
  int from = 0, to = 0;  ///< node ids
  LinkClass cls = LinkClass::d2d;
  Rate bandwidth;             ///< bytes a second
  Fj energy_per_byte = 0;     ///< epsilon_u, fJ/B
  double distance_mm = 0;     ///< delta_u
  double signal_mps = 1.5e8;  ///< v_u
  Ps overhead = 0;            ///< lambda_u^0
  Ps latency = 0;             ///< lambda_u = lambda_u^0 + delta_u / v_u, rounded to a picosecond
};

/// A physical bank (t, c, b).
struct Bank {
  Tier tier = Tier::sram;
  int owner = 0;  ///< chiplet that carries it (index into Package::chiplets)
  int index = 0;  ///< b within its bank set
  Bytes capacity = 0;
  Rate bandwidth;
  Ps latency = 0;
  Fj energy_per_byte = 0;
  Bytes reserve_activation = 0;  ///< A_{t,c,b}
  Bytes reserve_metadata = 0;    ///< M_{t,c,b}
  [[nodiscard]] Bytes usable() const { return capacity - reserve_activation - reserve_metadata; }
};

/// All banks of one tier on one chiplet; a replica is striped evenly over them (readings: "an expert larger than a
/// bank").
struct BankSet {
  Tier tier = Tier::sram;
  int owner = 0;       ///< chiplet
  int first_bank = 0;  ///< into Package::banks
  int count = 0;
  Bytes usable = 0;             ///< sum of Bank::usable
  std::uint64_t bandwidth = 0;  ///< sum, bytes a second
};

struct Chiplet {
  std::string name;
  bool compute = true;  ///< false: IO/memory chiplet
  int node = 0;         ///< its router in the graph
  int group = 0;
  int x = 0, y = 0;  ///< grid position (pictures, XY routing); IO chiplets sit outside the grid
  int cores = 0;     ///< N_c^core; 0 for IO chiplets
};

/// How the flit network sees the package: what its links carry a cycle, and the routers (section [flit]).
struct FlitSettings {
  Bytes bytes = 256;          ///< a flit: what the fastest link carries in a cycle
  Bytes packet = 4 * kKiB;    ///< largest packet; a message is cut into such packets
  int vcs = 4;                ///< virtual channels an input port
  int buffer = 0;             ///< flits a VC; 0 = as many as a link's credit loop has cycles
  bool speculative = true;    ///< a head asks for VC and switch in the same cycle
  bool oldest_first = false;  ///< age arbitration instead of round robin
  bool adaptive = false;      ///< minimal adaptive routing with an escape VC instead of the package's routes
};

struct Package {
  std::string name;
  std::string text;
  std::string topology;  ///< registered topology name
  std::string routing;   ///< "xy" or "table"
  int nodes = 0;
  int width = 0, height = 0;      ///< grid of compute chiplets, for pictures
  std::vector<Chiplet> chiplets;  ///< compute chiplets first
  int compute_count = 0;          ///< |C|
  int groups = 0;
  std::vector<Link> links;
  std::vector<Bank> banks;
  std::vector<BankSet> bank_sets;

  double clock_hz = 1e9;
  int macs_per_cycle = 256;        ///< a core
  int tile_tokens = 16;            ///< legal tile: eta_r = N / (tile ceil(N / tile))
  Fj energy_per_mac = 0;           ///< epsilon_MAC, fJ
  Fj energy_per_gate_group = 0;    ///< E_g^gate, fJ a token group
  Fj energy_per_migration = 0;     ///< E_m^ctrl, fJ
  double power_cap_w = 0;          ///< 0 = none
  double throttle_floor = 0.5;     ///< least fraction of throughput under the cap
  Ps gate_overhead = 0;            ///< fixed time of a gate (routing decision) a layer
  Bytes chunk_bytes = 256 * kKiB;  ///< packet model: largest unit that holds a link at once
  int weight_tiles = 8;            ///< weight chunks an expert is streamed in; the first gates compute
  int prefetch_depth = 2;          ///< experts a chiplet's stream buffer of one tier holds (2: double buffering)
  FlitSettings flit;
  Rate handover;  ///< package to package, bytes a second (pipelined models)
  Ps handover_latency = 0;
  std::string source_sha256;  ///< of the TOML text

  /// Rate of one chiplet's cores together, MACs a second.
  [[nodiscard]] Rate chiplet_rate(int c) const {
    return Rate(static_cast<std::uint64_t>(clock_hz * macs_per_cycle * chiplets[static_cast<size_t>(c)].cores + 0.5));
  }
  /// Links from node a to node b in order; empty when a == b. Precomputed for every pair.
  [[nodiscard]] std::span<const int> route(int a, int b) const {
    const size_t i = static_cast<size_t>(a) * static_cast<size_t>(nodes) + static_cast<size_t>(b);
    return {route_links.data() + route_first[i], route_links.data() + route_first[i + 1]};
  }
  [[nodiscard]] std::span<const int> route_chiplets(int a, int b) const {
    return route(chiplets[static_cast<size_t>(a)].node, chiplets[static_cast<size_t>(b)].node);
  }
  /// Bank sets a replica executing on compute chiplet c may be backed by in tier t (B_{t,c}): its own for local tiers,
  /// every one of the tier for a tier that sits on IO chiplets (shared by the package), nearest first.
  [[nodiscard]] std::span<const int> visible(Tier t, int c) const {
    return visible_sets[static_cast<size_t>(t)][static_cast<size_t>(c)];
  }

  std::vector<int> route_links;                                    ///< filled by finish()
  std::vector<size_t> route_first;                                 ///< nodes * nodes + 1
  std::array<std::vector<std::vector<int>>, kTiers> visible_sets;  ///< [tier][compute chiplet] -> bank set ids
};

}  // namespace sojourn
