// Builds serving windows from a trace's requests; see windows.h.
#include "moe/windows.h"

#include <algorithm>
#include <cmath>

#include "base/rng.h"

namespace sojourn {
namespace {

struct Request {
  std::uint32_t first = 0, count = 0;
  int domain = 0;
};

/// Requests in file order; in decode mode only their decode part where phases are recorded.
std::vector<Request> requests_of(const Trace& trace, Mode mode) {
  const auto sequence = trace.sequence_id();
  const auto phase = trace.phase();
  const std::vector<int>& domains = trace.meta().sequence_domain;
  std::vector<Request> out;
  for (std::uint32_t i = 0; i < sequence.size();) {
    std::uint32_t end = i;
    while (end < sequence.size() && sequence[end] == sequence[i]) ++end;
    std::uint32_t first = i;
    if (mode == Mode::decode && !phase.empty())
      while (first < end && phase[first] == 0) ++first;
    if (first == end) first = i;  // a prompt-only request: replay it as generated text
    const auto s = static_cast<std::size_t>(std::max(0, sequence[i]));
    out.push_back({first, end - first, s < domains.size() ? domains[s] : 0});
    i = end;
  }
  return out;
}

/// Draws requests: without replacement inside a domain (or over all), reshuffled when used up.
class Arrivals {
 public:
  Arrivals(const std::vector<Request>& requests, const WindowOptions& o, int windows)
      : mix_(o.mix), windows_(std::max(1, windows)), rng_(o.seed, "arrivals", o.mode == Mode::prefill ? 0 : 1) {
    int domains = 1;
    for (const Request& r : requests) domains = std::max(domains, r.domain + 1);
    bags_.resize(static_cast<std::size_t>(mix_ == Mix::mixed ? 1 : domains));
    for (std::size_t i = 0; i < requests.size(); ++i)
      bags_[mix_ == Mix::mixed ? 0 : static_cast<std::size_t>(requests[i].domain)].all.push_back(static_cast<int>(i));
    std::erase_if(bags_, [](const Bag& b) { return b.all.empty(); });
    order_.resize(bags_.size());
    for (std::size_t i = 0; i < order_.size(); ++i) order_[i] = i;
    rng_.shuffle(order_);
  }
  int next(int window) { return draw(bags_[order_[domain_of(window)]]); }
  /// by-domain: another domain begins with this window, so requests of the one before do not go on in it.
  bool turns(int window) { return mix_ == Mix::by_domain && window > 0 && domain_of(window) != domain_of(window - 1); }

 private:
  struct Bag {
    std::vector<int> all, left;
  };
  std::size_t domain_of(int window) {
    const std::size_t n = bags_.size();
    if (n == 1) return 0;
    if (mix_ == Mix::by_domain) {
      // Two rounds over the domains, so that a policy meets each of them twice.
      const int block = std::max(1, windows_ / static_cast<int>(2 * n));
      return static_cast<std::size_t>(window / block) % n;
    }
    // drift: the share moves linearly from one domain to the next, once round over the run.
    const double at = static_cast<double>(window) * static_cast<double>(n) / windows_;
    const auto base = static_cast<std::size_t>(at);
    return (rng_.uniform() < at - std::floor(at) ? base + 1 : base) % n;
  }
  int draw(Bag& bag) {
    if (bag.left.empty()) {
      bag.left = bag.all;
      rng_.shuffle(bag.left);
    }
    const int r = bag.left.back();
    bag.left.pop_back();
    return r;
  }
  Mix mix_;
  int windows_;
  Rng rng_;
  std::vector<Bag> bags_;
  std::vector<std::size_t> order_;
};

}  // namespace

WindowPlan plan_windows(const Trace& trace, const WindowOptions& o) {
  WindowPlan plan;
  plan.mode = o.mode;
  plan.warmup = o.warmup;
  const std::vector<Request> requests = requests_of(trace, o.mode);
  plan.requests = static_cast<int>(requests.size());
  const int total = o.warmup + o.scored;
  Arrivals arrivals(requests, o, total);
  Rng rng(o.seed, "offsets");
  struct Cursor {
    int request = -1;
    std::uint32_t at = 0;
  };
  std::vector<Cursor> slots(static_cast<std::size_t>(o.mode == Mode::decode ? o.size : 1));
  for (int w = 0; w < total; ++w) {
    Window window;
    window.tokens.reserve(static_cast<std::size_t>(o.size));
    const bool fresh = w == 0 || arrivals.turns(w);
    if (fresh)
      for (Cursor& c : slots) c.request = -1;
    auto refill = [&](Cursor& c) {
      if (c.request >= 0 && c.at < requests[static_cast<std::size_t>(c.request)].count) return;
      c.request = arrivals.next(w);
      c.at = fresh && o.mode == Mode::decode
                 ? static_cast<std::uint32_t>(rng.below(requests[static_cast<std::size_t>(c.request)].count))
                 : 0;
    };
    double context = 0;
    if (o.mode == Mode::prefill) {
      Cursor& c = slots[0];
      while (static_cast<int>(window.tokens.size()) < o.size) {
        refill(c);
        const Request& r = requests[static_cast<std::size_t>(c.request)];
        while (c.at < r.count && static_cast<int>(window.tokens.size()) < o.size) {
          window.tokens.push_back(r.first + c.at);
          context += ++c.at;
        }
        window.finished += c.at == r.count;
      }
      window.context = context / o.size;
    } else {
      for (Cursor& c : slots) {
        refill(c);
        window.tokens.push_back(requests[static_cast<std::size_t>(c.request)].first + c.at);
        ++c.at;
      }
      window.context = o.decode_context;
      window.finished = o.size;
    }
    plan.windows.push_back(std::move(window));
  }
  std::vector<std::uint32_t> used;
  for (std::size_t w = static_cast<std::size_t>(o.warmup); w < plan.windows.size(); ++w)
    used.insert(used.end(), plan.windows[w].tokens.begin(), plan.windows[w].tokens.end());
  const auto count = static_cast<double>(used.size());
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  plan.reuse_mean = used.empty() ? 0 : count / static_cast<double>(used.size());
  return plan;
}

}  // namespace sojourn
