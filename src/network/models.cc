// Which event model of a network a name stands for.
#include <stdexcept>

#include "network/flit_model.h"
#include "network/packet.h"

namespace sojourn {

std::unique_ptr<Network> make_network(NetworkKind kind, const Package& package, Engine& engine, Ledger& ledger,
                                      NetworkSink& sink) {
  if (kind != NetworkKind::flit) return std::make_unique<PacketNetwork>(package, engine, ledger, sink);
  auto map = flit_map(package);
  if (!map) throw std::logic_error("flit network: " + map.error().diagnostics.text());
  return std::make_unique<FlitModel>(package, std::move(*map), engine, ledger, sink);
}

}  // namespace sojourn
