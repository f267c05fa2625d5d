// What each physical resource carried: bytes by class on links (5)-(6), bytes by class on banks (9), busy time.
// Only these physical loads reach latency and energy; scheduling pressure (weighted) is a different type, Pressure.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "sojourn/package.h"
#include "sojourn/units.h"

namespace sojourn {

enum class Traffic : std::uint8_t { dispatch, gather, memory, migration };  ///< K_L
inline constexpr int kTraffic = 4;
inline constexpr std::array<std::string_view, kTraffic> kTrafficNames = {"dispatch", "gather", "weights", "migration"};

struct LinkLoad {
  std::array<Bytes, kTraffic> bytes{};
  Ps busy = 0;
  [[nodiscard]] Bytes total() const { return bytes[0] + bytes[1] + bytes[2] + bytes[3]; }
  [[nodiscard]] Bytes foreground() const { return bytes[0] + bytes[1] + bytes[2]; }
};

struct BankLoad {
  Bytes foreground = 0, migration = 0;
  Ps busy = 0;
  [[nodiscard]] Bytes total() const { return foreground + migration; }
};

struct Ledger {
  std::vector<LinkLoad> links;
  std::vector<BankLoad> bank_sets;
  std::vector<Ps> core_busy;                     ///< [compute chiplet]
  std::array<Bytes, kTraffic> requested{};       ///< sum of D_h over requests, by class
  std::array<Bytes, kTraffic> requested_hops{};  ///< sum of D_h x path length: must equal the links' sum
  Macs macs = 0;

  explicit Ledger(const Package& p)
      : links(p.links.size()), bank_sets(p.bank_sets.size()), core_busy(static_cast<std::size_t>(p.compute_count)) {}
  /// Books a request of `amount` bytes along `path` (link ids); how long its links are busy is the network model's to
  /// say.
  void request(Traffic traffic, std::span<const int> path, Bytes amount) {
    const auto cls = static_cast<std::size_t>(traffic);
    requested[cls] += amount;
    requested_hops[cls] += amount * static_cast<Bytes>(path.size());
    for (const int u : path) links[static_cast<std::size_t>(u)].bytes[cls] += amount;
  }
  void clear() {
    links.assign(links.size(), {});
    bank_sets.assign(bank_sets.size(), {});
    core_busy.assign(core_busy.size(), 0);
    requested = {};
    requested_hops = {};
    macs = 0;
  }
};

}  // namespace sojourn
