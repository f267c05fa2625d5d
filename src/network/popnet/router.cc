// The five steps of a router.
//
//   a draw is made exactly where there is a choice of two or more: ready VC of an input port, input port of an output
//   port, free VC for a head, head for a VC
//
// Assumption: on a mesh heads may use the first four VCs of a port, however many there are; on a torus one; in a table
// all. The routes of network.h. Source: as there.
#include "network/popnet/router.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

namespace sojourn::popnet {
namespace {

constexpr int kMeshVcs = 4;

/// Stable, for a handful of items.
template <class T>
void sort_by_key(std::vector<T>& items) {
  for (std::size_t i = 1; i < items.size(); ++i)
    for (std::size_t j = i; j > 0 && items[j].key < items[j - 1].key; --j) std::swap(items[j], items[j - 1]);
}

}  // namespace

Fabric::Fabric(const PopnetConfig& config, Draws& draws, Surroundings& around)
    : config_(config), draws_(draws), around_(around) {
  const std::size_t channels = config.ports.size() * static_cast<std::size_t>(config.vcs);
  inputs_.resize(channels);
  outputs_.assign(channels, {config.in_buffer, false});
  leaving_.resize(config.ports.size());
  const auto n = static_cast<std::size_t>(config.routers);
  work_.assign(n, 0);
  buffered_.assign(n, 0);
  active_.assign((n + 63) / 64, 0);
  std::size_t words = 0;
  for (int r = 0; r < config.routers; ++r) {
    first_word_.push_back(words);
    words += static_cast<std::size_t>(config.port_count(r) * config.vcs + 63) / 64;
  }
  first_word_.push_back(words);
  occupied_.assign(words, 0);
  int most = 0;
  for (int r = 0; r < config.routers; ++r) most = std::max(most, config.port_count(r));
  for (int i = 0; i < most * config.vcs; ++i) {
    port_of_.push_back(static_cast<std::uint16_t>(i / config.vcs));
    vc_of_.push_back(static_cast<std::uint16_t>(i % config.vcs));
  }
}

void Fabric::occupy(int router, int local) {
  occupied_[first_word_[static_cast<std::size_t>(router)] + static_cast<std::size_t>(local / 64)] |= std::uint64_t{1}
                                                                                                     << (local % 64);
}

void Fabric::add_work(int router, int flits) {
  std::int64_t& work = work_[static_cast<std::size_t>(router)];
  work += flits;
  std::uint64_t& word = active_[static_cast<std::size_t>(router / 64)];
  const std::uint64_t bit = std::uint64_t{1} << (router % 64);
  word = work > 0 ? word | bit : word & ~bit;
}

template <class F>
void Fabric::each_occupied(F&& f) {
  const std::size_t begin = first_word_[static_cast<std::size_t>(here_)],
                    end = first_word_[static_cast<std::size_t>(here_) + 1];
  for (std::size_t w = begin; w < end; ++w)
    for (std::uint64_t bits = occupied_[w]; bits != 0; bits &= bits - 1) {
      const int local = static_cast<int>(w - begin) * 64 + std::countr_zero(bits);
      f(local, static_cast<int>(port_of_[static_cast<std::size_t>(local)]),
        static_cast<int>(vc_of_[static_cast<std::size_t>(local)]));
    }
}

void Fabric::inject(int router, int vc, std::uint32_t packet, std::int64_t flits) {
  Input& in = inputs_[channel(router, 0, vc)];
  if (in.flits == 0) in.state = State::route;
  in.queue.push({packet, 0, flits});
  in.flits += flits;
  occupy(router, vc);
  work_[static_cast<std::size_t>(router)] += flits - 1;
  add_work(router, 1);
  changed_ = true;
}

void Fabric::arrive(int router, int port, int vc, Flit f) {
  Input& in = inputs_[channel(router, port, vc)];
  if (!in.queue.empty() && in.queue.back().packet == f.packet)
    ++in.queue.back().count;
  else
    in.queue.push({f.packet, f.index, 1});
  ++in.flits;
  occupy(router, port * config_.vcs + vc);
  add_work(router, 1);
  if (f.index == 0) {
    if (in.flits == 1) in.state = State::route;
  } else if (in.state == State::idle) {
    in.state = State::wait_switch;
  }
}

Flit Fabric::take(int local) {
  Input& in = inputs_[base_ + static_cast<std::size_t>(local)];
  Stretch& s = in.queue.front();
  const Flit f{s.packet, s.first};
  ++s.first;
  if (--s.count == 0) in.queue.pop();
  if (--in.flits == 0)
    occupied_[first_word_[static_cast<std::size_t>(here_)] + static_cast<std::size_t>(local / 64)] &=
        ~(std::uint64_t{1} << (local % 64));
  changed_ = true;
  return f;
}

bool Fabric::step(double period) {
  changed_ = false;
  for (std::size_t w = 0; w < active_.size(); ++w)
    for (std::uint64_t bits = active_[w]; bits != 0; bits &= bits - 1) {
      here_ = static_cast<int>(w) * 64 + std::countr_zero(bits);
      if (config_.period[static_cast<std::size_t>(here_)] != period) continue;
      port0_ = port_at(here_, 0);
      base_ = channel(here_, 0, 0);
      send_flits();
      to_output_buffers();
      allocate_switch();
      allocate_vcs();
      routes_and_ejection();
    }
  return changed_;
}

void Fabric::send_flits() {
  int& buffered = buffered_[static_cast<std::size_t>(here_)];
  if (buffered == 0) return;
  for (int p = 1; p < config_.port_count(here_); ++p) {
    Fifo<Leaving>& out = leaving_[port0_ + static_cast<std::size_t>(p)];
    if (out.empty()) continue;
    const Port& to = config_.ports[port0_ + static_cast<std::size_t>(p)];
    around_.send(to.router, to.port, out.front().vc, to.delay, out.front().flit);
    out.pop();
    --buffered;
    ++hops_;
    add_work(here_, -1);
    changed_ = true;
  }
}

void Fabric::to_output_buffers() {
  each_occupied([&](int local, int port, int vc) {
    Input& in = inputs_[base_ + static_cast<std::size_t>(local)];
    if (in.state != State::cross) return;
    --outputs_[out_channel(in)].credits;
    if (port != 0) {
      const Port& from = config_.ports[port0_ + static_cast<std::size_t>(port)];
      around_.send_credit(from.router, from.port, vc);
    }
    const bool more = in.flits > 1;
    const Flit f = take(local);
    leaving_[port0_ + static_cast<std::size_t>(in.out_port)].push({f, in.out_vc});
    ++buffered_[static_cast<std::size_t>(here_)];
    if (port == 0) around_.left_source(here_, vc);
    const bool tail = around_.last(f);
    if (tail) outputs_[out_channel(in)].taken = false;
    in.state = !more ? State::idle : tail ? State::route : State::wait_switch;
  });
}

void Fabric::allocate_switch() {
  requests_.clear();
  int at_port = -1;
  int ready[kMostVcs], count = 0;
  const auto pick = [&] {
    if (count == 0) return;
    const int local = ready[count > 1 ? draws_.below(count) : 0];
    requests_.push_back({inputs_[base_ + static_cast<std::size_t>(local)].out_port, local});
    count = 0;
  };
  each_occupied([&](int local, int port, int) {
    if (port != at_port) {
      pick();
      at_port = port;
    }
    const Input& in = inputs_[base_ + static_cast<std::size_t>(local)];
    if (in.state != State::wait_switch || outputs_[out_channel(in)].credits <= 0) return;
    if (leaving_[port0_ + static_cast<std::size_t>(in.out_port)].size() < static_cast<std::size_t>(config_.out_buffer))
      ready[count++] = local;
  });
  pick();
  sort_by_key(requests_);
  for (std::size_t i = 0, end; i < requests_.size(); i = end) {
    for (end = i + 1; end < requests_.size() && requests_[end].key == requests_[i].key;) ++end;
    const int n = static_cast<int>(end - i);
    const Request& winner = requests_[i + static_cast<std::size_t>(n > 1 ? draws_.below(n) : 0)];
    inputs_[base_ + static_cast<std::size_t>(winner.local)].state = State::cross;
    changed_ = true;
  }
}

void Fabric::allocate_vcs() {
  requests_.clear();
  each_occupied([&](int local, int, int) {
    const Input& in = inputs_[base_ + static_cast<std::size_t>(local)];
    if (in.state != State::wait_vc) return;
    int first = 0, last = config_.vcs;
    if (config_.routing == Routing::mesh) last = std::min(last, kMeshVcs);
    if (config_.routing == Routing::torus) {
      first = in.out_vc;
      last = first + 1;
    }
    int free[kMostVcs], count = 0;
    for (int v = first; v < last; ++v)
      if (!outputs_[base_ + static_cast<std::size_t>(in.out_port * config_.vcs + v)].taken) free[count++] = v;
    if (count == 0) return;
    const int v = free[count > 1 ? draws_.below(count) : 0];
    requests_.push_back({in.out_port * config_.vcs + v, local});
  });
  sort_by_key(requests_);
  for (std::size_t i = 0, end; i < requests_.size(); i = end) {
    for (end = i + 1; end < requests_.size() && requests_[end].key == requests_[i].key;) ++end;
    const int n = static_cast<int>(end - i);
    const Request& winner = requests_[i + static_cast<std::size_t>(n > 1 ? draws_.below(n) : 0)];
    Input& in = inputs_[base_ + static_cast<std::size_t>(winner.local)];
    in.state = State::wait_switch;
    in.out_vc = winner.key % config_.vcs;
    outputs_[out_channel(in)].taken = true;
    changed_ = true;
  }
}

void Fabric::routes_and_ejection() {
  each_occupied([&](int local, int port, int vc) {
    Input& in = inputs_[base_ + static_cast<std::size_t>(local)];
    if (in.state != State::route && in.state != State::home) return;
    const Flit f = front(in);
    const int destination = around_.destination(f.packet);
    if (destination != here_) {
      route(in, destination);
      in.state = State::wait_vc;
      changed_ = true;
      return;
    }
    if (port != 0) {
      const Port& from = config_.ports[port0_ + static_cast<std::size_t>(port)];
      around_.send_credit(from.router, from.port, vc);
    }
    around_.handed_over(f);
    const bool tail = around_.last(f);
    take(local);
    add_work(here_, -1);
    in.state = !tail ? State::home : in.flits > 0 ? State::route : State::idle;
  });
}

void Fabric::route(Input& in, int destination) {
  if (config_.routing == Routing::table) {
    in.out_port = config_.table[static_cast<std::size_t>(here_) * static_cast<std::size_t>(config_.routers) +
                                static_cast<std::size_t>(destination)];
    return;
  }
  const int k = config_.k, dx = destination / k - here_ / k, dy = destination % k - here_ % k;
  if (config_.routing == Routing::mesh) {
    in.out_port = dy < 0 ? 3 : dy > 0 ? 4 : dx < 0 ? 1 : 2;
    return;
  }
  const int d = dx != 0 ? dx : dy, down = dx != 0 ? 1 : 3;
  const bool direct = std::abs(d) * 2 <= k, rising = d > 0;
  in.out_port = rising == direct ? down + 1 : down;
  in.out_vc = rising ? 1 : 0;
}

}  // namespace sojourn::popnet
