// popnet's files: the list of packets it reads, the delays it writes.
//
//   packets:  time source destination flits                         an address is one number for each dimension
//   with -P:  source_time destination_time source destination flits protocol
//   delays:   time source destination delay                         in order of completion
//   with -P:  source_time source destination protocol count delays
//     protocol & 0xF0000 (launch, barrier, lock, unlock): one flit goes back once the packet is there and
//     destination_time has come; four delays: the sender is free, arrival, the same two of the reply. Otherwise two.
//     protocol & 0xE0000 (barrier, lock, unlock): packet and reply end and begin at router 0 instead.
//
// Assumption: the sender is free a cycle a flit after the first, whatever happens in the network. Delays are written in
// full where popnet rounds them to six digits. Source: behaviour of popnet, LEGOSIM_MICRO interchiplet (net_delay.h).
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "network/popnet/network.h"

namespace sojourn::popnet {

struct BenchFormat {
  int dimensions = 2;
  int side = 8;  ///< coordinates are below it
  bool protocol = false;
};

struct BenchRow {
  double time = 0, destination_time = 0;
  std::int64_t source[2] = {0, 0}, destination[2] = {0, 0};
  std::int64_t flits = 1, protocol = 0;
};

struct Bench {
  std::vector<BenchRow> rows;
  std::vector<Packet> packets;  ///< of rows, in the same order
  bool sorted = true;
};

[[nodiscard]] Result<Bench> read_bench(std::string_view text, const std::string& path, const BenchFormat& format);

[[nodiscard]] std::string delay_text(const Bench& bench, const BenchFormat& format,
                                     const std::vector<Arrival>& arrivals);

/// The whole file, or why not; option names it in messages.
[[nodiscard]] Result<std::string> read_text(const std::string& path, const std::string& option);

}  // namespace sojourn::popnet
