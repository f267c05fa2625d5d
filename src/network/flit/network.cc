// The flit network's face: picks the width of the request sets.
#include "network/flit/network.h"

#include <algorithm>

#include "network/flit/core.h"

namespace sojourn::flit {
namespace {

int most_ports(const FlitConfig& c) {
  std::vector<int> ports(static_cast<std::size_t>(c.routers), 0);
  for (const Link& l : c.links) {
    int &from = ports[static_cast<std::size_t>(l.from)], &to = ports[static_cast<std::size_t>(l.to)];
    from = std::max(from, l.from_port + 1);
    to = std::max(to, l.to_port + 1);
  }
  for (const int r : c.terminals) ++ports[static_cast<std::size_t>(r)];
  return *std::max_element(ports.begin(), ports.end());
}

}  // namespace

FlitNetwork::FlitNetwork(const FlitConfig& config, int threads, int pays_from) {
  if (most_ports(config) * config.vcs <= 64)
    core_ = std::make_unique<RouterCore<std::uint64_t>>(config, threads, pays_from);
  else
    core_ = std::make_unique<RouterCore<unsigned __int128>>(config, threads, pays_from);
}
FlitNetwork::~FlitNetwork() = default;
FlitNetwork::FlitNetwork(FlitNetwork&&) noexcept = default;

void FlitNetwork::send(int source, int destination, int flits, std::uint64_t tag) {
  core_->send(source, destination, flits, tag);
}
void FlitNetwork::step() { core_->step(); }
Cycle FlitNetwork::next_work() const { return core_->next_work(); }
void FlitNetwork::skip_to(Cycle to) { core_->now = to; }
Cycle FlitNetwork::now() const { return core_->now; }
std::vector<Delivery>& FlitNetwork::delivered() { return core_->delivered; }
bool FlitNetwork::source_idle(int terminal) const { return core_->source_idle(terminal); }
std::int64_t FlitNetwork::packets_held() const { return core_->packets_held; }
std::int64_t FlitNetwork::flits_injected() const { return core_->flits_injected(); }
std::int64_t FlitNetwork::flits_ejected() const { return core_->flits_ejected(); }
std::int64_t FlitNetwork::router_hops() const { return core_->router_hops(); }
std::string FlitNetwork::inconsistency() const { return core_->inconsistency(); }

}  // namespace sojourn::flit
