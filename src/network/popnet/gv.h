// Reads the part of Graphviz's language in which LEGOSim writes its topologies.
//
//   graph NAME { edge [weight=W] node [pipeline_stage_delay=P] 0 -- 1 -- 2 [weight=V]; 3 [pipeline_stage_delay=Q] }
//   delay of a link = weight in cycles, period of a router = pipeline_stage_delay in cycles
//
// Assumption: routers are named 0, 1, 2 ...; defaults hold for what follows them; other attributes mean nothing here;
// subgraphs and directed graphs are refused. Without a weight a link has delay 0, as in popnet; without a
// pipeline_stage_delay a router has period 1. Source: the .gv files of LEGOSIM_MICRO; the DOT language, graphviz.org.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "network/popnet/config.h"

namespace sojourn::popnet {

struct GvGraph {
  int routers = 0;
  std::vector<Edge> edges;
  std::vector<double> period;
  std::vector<int> order;  ///< routers by name as text: "10" comes before "2"; the order popnet searches in
};

[[nodiscard]] Result<GvGraph> read_gv(std::string_view text, const std::string& path, Diagnostics& notes);

}  // namespace sojourn::popnet
