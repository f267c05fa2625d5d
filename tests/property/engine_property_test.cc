// The engine's order, the random streams and the serving windows.
#include <map>
#include <set>

#include "moe/windows.h"
#include "random_package.h"

using namespace kit;

namespace {

// An explicit instantiation may name a private member: the only way to stand near the wrap without 2^32 pushes.
template <auto Member>
struct Opener {
  friend std::uint32_t& sequence_of(EventQueue& q) { return q.*Member; }
};
std::uint32_t& sequence_of(EventQueue& q);
template struct Opener<&EventQueue::sequence_>;

}  // namespace

TEST_CASE(
    "EventQueue pops in order of time, then of scheduling, whatever lane they wait in, also across the 32-bit wrap") {
  CHECK(rc::check("event queue", [] {
    Rng rng(static_cast<std::uint64_t>(pick(0, 1 << 20)), "queue");
    EventQueue q;
    if (pick(0, 1)) sequence_of(q) = 0xFFFFFFFFu - static_cast<std::uint32_t>(rng.below(300));
    std::multimap<Ps, std::uint32_t> expected;  // equal keys keep the order of insertion
    const int span = pick(1, 50), lanes = pick(0, 4);
    std::uint32_t next = 0;
    Ps now = 0;
    for (int i = 0; i < 600; ++i) {
      if (rng.below(5) < (i < 400 ? 3 : 1)) {
        const Ps t = now + static_cast<Ps>(rng.below(span));
        expected.emplace(t, next);
        // Lane 0 stands for the plain heap; times in a lane are mostly, not always, in order.
        const auto lane = static_cast<std::uint32_t>(rng.below(static_cast<std::uint64_t>(lanes) + 1));
        if (lane == 0)
          q.push(t, 1, 2, next++);
        else
          q.push_lane(lane, t, 1, 2, next++);
      } else if (!expected.empty()) {
        RC_ASSERT(q.top().time == expected.begin()->first);
        const Event e = q.pop();
        RC_ASSERT(e.time == expected.begin()->first);
        RC_ASSERT(e.index == expected.begin()->second);
        now = e.time;
        expected.erase(expected.begin());
      }
      RC_ASSERT(q.size() == expected.size());
    }
  }));
}

TEST_CASE("FifoServer serves in order of request, never two at once, never idle with work waiting") {
  CHECK(rc::check("fifo", [] {
    Rng rng(static_cast<std::uint64_t>(pick(0, 1 << 20)), "fifo");
    FifoServer server;
    Ps now = 0, free = 0, busy = 0;
    for (int i = 0; i < 200; ++i) {
      now += static_cast<Ps>(rng.below(100));
      const Ps d = static_cast<Ps>(rng.below(120));
      const FifoServer::Slot slot = server.reserve(now, d);
      RC_ASSERT(slot.start == std::max(now, free));
      RC_ASSERT(slot.end == slot.start + d);
      free = slot.end;
      busy += d;
    }
    RC_ASSERT(busy <= free);
  }));
}

TEST_CASE("Rng::below stays in range and is unbiased; streams differ and repeat") {
  CHECK(rc::check("below", [] {
    const auto n = static_cast<std::uint64_t>(pick(1, 40));
    const auto seed = static_cast<std::uint64_t>(pick(0, 1 << 20));
    Rng rng(seed, "a"), same(seed, "a"), other(seed, "b");
    std::vector<double> count(n, 0);
    const int draws = 400 * static_cast<int>(n);
    bool differs = false;
    for (int i = 0; i < draws; ++i) {
      const std::uint64_t x = rng.below(n);
      RC_ASSERT(x < n);
      RC_ASSERT(same.below(n) == x);
      differs = differs || other.next() != x;
      ++count[x];
    }
    RC_ASSERT(differs);
    double chi = 0;
    for (const double c : count) chi += (c - 400) * (c - 400) / 400;
    const double df = static_cast<double>(n) - 1;
    RC_ASSERT(chi <= df + 6 * std::sqrt(2 * df) + 12);  // beyond 1e-7 by chance
    // A range just above 2^63 is where a plain modulus would be most biased: halves must balance.
    const std::uint64_t wide = (1ULL << 63) + (1ULL << 62);
    int low = 0;
    for (int i = 0; i < 4000; ++i) {
      const std::uint64_t x = rng.below(wide);
      RC_ASSERT(x < wide);
      low += x < wide / 2;
    }
    RC_ASSERT(std::abs(low - 2000) < 200);
  }));
}

namespace {

struct Requests {
  std::shared_ptr<const Trace> trace;
  std::vector<int> sequence, domain;  // by token
  std::vector<bool> first, last;      // by token: of its request
  int domains = 1;
};

Requests random_requests(bool phases) {
  Rng rng(static_cast<std::uint64_t>(pick(0, 1 << 20)), "requests");
  Requests r;
  TraceData d;
  d.meta.layers = 1;
  d.meta.experts = 2;
  d.meta.top_k = 1;
  r.domains = pick(1, 4);
  const int sequences = r.domains * pick(1, 6);
  for (int g = 0; g < r.domains; ++g) d.meta.domains.push_back("d" + std::to_string(g));
  for (int s = 0; s < sequences; ++s) {
    const int prompt = static_cast<int>(rng.below(20)), decode = 1 + static_cast<int>(rng.below(20));
    d.meta.sequence_domain.push_back(s % r.domains);
    for (int i = 0; i < prompt + decode; ++i) {
      d.sequence_id.push_back(s);
      d.position.push_back(i);
      if (phases) d.phase.push_back(i >= prompt);
      r.sequence.push_back(s);
      r.domain.push_back(s % r.domains);
      r.first.push_back(i == (phases ? prompt : 0));
      r.last.push_back(i + 1 == prompt + decode);
    }
  }
  d.meta.tokens = static_cast<std::int64_t>(d.sequence_id.size());
  d.ids.assign(1, std::vector<std::uint16_t>(d.sequence_id.size(), 0));
  r.trace = make_trace(std::move(d));
  return r;
}

WindowOptions random_options(Mode mode, Mix mix) {
  WindowOptions o;
  o.mode = mode;
  o.mix = mix;
  o.size = pick(1, 70);
  o.warmup = pick(0, 4);
  o.scored = pick(1, 20);
  o.seed = static_cast<std::uint64_t>(pick(0, 1 << 20));
  return o;
}

}  // namespace

TEST_CASE("prefill windows hold exactly `size` tokens and follow each request token by token") {
  CHECK(rc::check("prefill", [] {
    const Requests r = random_requests(false);
    const WindowOptions o = random_options(Mode::prefill, Mix::mixed);
    const WindowPlan plan = plan_windows(*r.trace, o);
    RC_ASSERT(static_cast<int>(plan.windows.size()) == o.warmup + o.scored);
    std::int64_t before = -1;
    for (const Window& w : plan.windows) {
      RC_ASSERT(static_cast<int>(w.tokens.size()) == o.size);
      RC_ASSERT(w.context >= 1);
      int finished = 0;
      for (const std::uint32_t t : w.tokens) {
        if (before >= 0 && !r.last[before])
          RC_ASSERT(static_cast<std::int64_t>(t) == before + 1);
        else
          RC_ASSERT(r.first[t]);
        finished += r.last[t];
        before = t;
      }
      RC_ASSERT(w.finished == finished);
    }
    // Without replacement: no request starts twice before all have started.
    std::map<int, int> starts;
    for (const Window& w : plan.windows)
      for (const std::uint32_t t : w.tokens)
        if (r.first[t]) ++starts[r.sequence[t]];
    int least = 1 << 30, most = 0;
    for (int s = 0; s < plan.requests; ++s) {
      least = std::min(least, starts[s]);
      most = std::max(most, starts[s]);
    }
    RC_ASSERT(most - least <= 1);
    RC_ASSERT(plan.reuse_mean >= 1);
    const WindowPlan again = plan_windows(*r.trace, o);
    for (std::size_t w = 0; w < plan.windows.size(); ++w) RC_ASSERT(again.windows[w].tokens == plan.windows[w].tokens);
  }));
}

TEST_CASE("decode windows advance every sequence by one token; a finished one is replaced from its start") {
  CHECK(rc::check("decode", [] {
    const bool phases = pick(0, 1);
    const Requests r = random_requests(phases);
    const WindowOptions o = random_options(Mode::decode, pick(0, 1) ? Mix::mixed : Mix::drift);
    const WindowPlan plan = plan_windows(*r.trace, o);
    for (std::size_t w = 0; w < plan.windows.size(); ++w) {
      const auto& now = plan.windows[w].tokens;
      RC_ASSERT(static_cast<int>(now.size()) == o.size);
      if (phases)
        for (const std::uint32_t t : now) RC_ASSERT(r.trace->phase()[t] == 1);
      if (w == 0) continue;
      const auto& before = plan.windows[w - 1].tokens;
      for (std::size_t i = 0; i < now.size(); ++i) {
        if (r.last[before[i]])
          RC_ASSERT(r.first[now[i]]);
        else
          RC_ASSERT(now[i] == before[i] + 1);
      }
    }
  }));
}

TEST_CASE("by-domain windows hold one domain each, and every domain has its turn") {
  CHECK(rc::check("by domain", [] {
    const Requests r = random_requests(false);
    WindowOptions o = random_options(pick(0, 1) ? Mode::prefill : Mode::decode, Mix::by_domain);
    o.scored = 2 * r.domains * pick(1, 4);
    o.warmup = 0;
    const WindowPlan plan = plan_windows(*r.trace, o);
    std::set<int> all;
    for (const Window& w : plan.windows) {
      std::set<int> here;
      for (const std::uint32_t t : w.tokens) here.insert(r.domain[t]);
      RC_ASSERT(here.size() == 1u);
      all.insert(here.begin(), here.end());
    }
    RC_ASSERT(static_cast<int>(all.size()) == r.domains);
  }));
}

TEST_CASE("drift visits every domain, and its windows mix at most neighbours and leftovers") {
  CHECK(rc::check("drift", [] {
    const Requests r = random_requests(false);
    WindowOptions o = random_options(Mode::prefill, Mix::drift);
    o.size = 400;  // many requests a window
    o.scored = 8 * r.domains;
    o.warmup = 0;
    const WindowPlan plan = plan_windows(*r.trace, o);
    std::set<int> all;
    for (const Window& w : plan.windows) {
      std::set<int> here;
      for (const std::uint32_t t : w.tokens) here.insert(r.domain[t]);
      RC_ASSERT(here.size() <= 3u);
      all.insert(here.begin(), here.end());
    }
    RC_ASSERT(static_cast<int>(all.size()) == r.domains);
  }));
}
