// Fuzz target: any bytes as a .gv file and as a packet list. Must end in a network and packets that can be run, or in
// findings, never in a crash, a hang or a flood.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "network/popnet/bench.h"
#include "network/popnet/gv.h"

using namespace sojourn;
using namespace sojourn::popnet;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Diagnostics notes;
  const auto gv = read_gv(text, "fuzz.gv", notes);
  if (!gv && gv.error().diagnostics.text().empty()) std::abort();
  if (gv && gv->routers <= 64) {
    PopnetConfig c = graph(gv->routers, gv->edges, gv->period, gv->order);
    const int last = c.routers - 1;
    if (c.table[static_cast<std::size_t>(last)] >= 0 && check(c)) (void)simulate(c, {{0, 0, last, 3, -1}}, 1000);
  }
  for (const BenchFormat& format : {BenchFormat{2, 4, false}, BenchFormat{1, 16, true}}) {
    auto bench = read_bench(text, "fuzz.bench", format);
    if (!bench) {
      if (bench.error().diagnostics.text().empty()) std::abort();
      continue;
    }
    for (Packet& p : bench->packets) p.flits = std::min<std::int64_t>(p.flits, 50);
    const PopnetConfig c = grid(4, Routing::mesh);
    const Run run = simulate(c, bench->packets, 2000);
    (void)delay_text(*bench, format, run.arrivals);
  }
  return 0;
}
