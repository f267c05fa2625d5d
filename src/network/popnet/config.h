// A network of popnet-style routers: which port leads where, how packets are routed, how deep the buffers are.
//
//   Port 0 of a router is its source. Port p > 0 is an input and an output: it is joined with one port of one
//   neighbour. XY mesh: first along y, then along x, one of the first four VCs. Torus: first along x, then along y, the
//   shorter way round; the VC says whether the coordinate rises. Table: next hop by destination, any VC.
//
// Assumption: a link carries one flit a cycle in each direction and delays it by `delay` cycles.
// Source: behaviour of popnet (L. Shang, Princeton; FCAS-LAB/popnet_chiplet), described in docs/popnet.md.
#pragma once
#include <cstdint>
#include <vector>

#include "sojourn/diagnostics.h"

namespace sojourn::popnet {

enum class Routing { mesh, torus, table };

struct Port {
  int router = -1;  ///< at the other end; -1: nothing is there
  int port = 0;     ///< of that router
  double delay = 0.9;
};

struct PopnetConfig {
  Routing routing = Routing::mesh;
  int k = 0;  ///< routers a side: mesh and torus; router x * k + y
  int routers = 0;
  std::vector<int> first_port;  ///< of router r in `ports`; routers + 1 entries
  std::vector<Port> ports;
  std::vector<int> table;      ///< table[r * routers + destination]: the port to take
  std::vector<double> period;  ///< cycles from one pipeline step to the next, by router
  int vcs = 2, in_buffer = 64, out_buffer = 4;
  std::int64_t flit_words = 4;  ///< words of payload a flit; moves the random numbers only
  std::uint32_t seed = 1;

  [[nodiscard]] int port_count(int r) const {
    return first_port[static_cast<std::size_t>(r) + 1] - first_port[static_cast<std::size_t>(r)];
  }
  [[nodiscard]] const Port& port(int r, int p) const {
    return ports[static_cast<std::size_t>(first_port[static_cast<std::size_t>(r)] + p)];
  }
};

constexpr int kLargestSide = 512, kMostVcs = 64, kMostRouters = 1024;  ///< kMostRouters: of a graph
constexpr std::int64_t kMostChannels = 1 << 23;                        ///< routers x ports x VCs

/// k x k routers of five ports; `routing` is mesh or torus.
[[nodiscard]] PopnetConfig grid(int k, Routing routing);

/// An undirected edge; ports are numbered in the order of the edges.
struct Edge {
  int a = 0, b = 0;
  double delay = 0;
};
/// Any graph. `order` is the order in which the shortest-path search looks at the routers: it breaks ties.
[[nodiscard]] PopnetConfig graph(int routers, const std::vector<Edge>& edges, const std::vector<double>& period,
                                 const std::vector<int>& order);

/// Sizes in bounds.
[[nodiscard]] Result<void> check(const PopnetConfig& config);

}  // namespace sojourn::popnet
