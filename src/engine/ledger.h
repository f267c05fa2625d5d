// What each physical resource carried: bytes by class on links (5)-(6), bytes by class on banks (9), busy time.
// Only these physical loads reach latency and energy; scheduling pressure (weighted) is a different type, Pressure.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "sojourn/package.h"
#include "sojourn/units.h"

namespace sojourn {

enum class Traffic : std::uint8_t { dispatch, gather, memory, migration };  ///< K_L
inline constexpr int kTraffic = 4;

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
