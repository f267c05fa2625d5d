// Serving windows made of requests, not of a shuffled token stream: hotness lives in requests and domains.
//
//   prefill: requests are packed in arrival order into windows of `size` prompt tokens; a request that does not fit is
//            cut and goes on in the next window (chunked prefill).
//   decode:  `size` sequences advance by one token a window; a finished one is replaced by the next request. At the
//            start every slot stands at a random place of its request, as in steady state.
//   mix:     mixed     - the next request comes from all domains together, without replacement until all were used
//            by-domain - one domain at a time, in blocks of windows; requests under way when the domain changes are
//                        dropped, so that a window holds one domain
//            drift     - the domain shares turn slowly from one domain to the next over the run
// Trace tokens are re-sampled by request when the trace is short; the reuse is reported.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "sojourn/model.h"
#include "sojourn/trace.h"

namespace sojourn {

enum class Mix { mixed, by_domain, drift };
inline constexpr const char* kMixNames[] = {"mixed", "by-domain", "drift"};

struct Window {
  std::vector<std::uint32_t> tokens;  ///< indices into the trace; token i sits on chiplet i mod |C|
  double context = 0;                 ///< mean number of tokens each one attends to
  int finished = 0;                   ///< sequences whose last prompt token is here (prefill) or all (decode)
};

struct WindowPlan {
  Mode mode = Mode::prefill;
  int warmup = 0;               ///< the first windows: profile only
  std::vector<Window> windows;  ///< warm-up, then scored
  double reuse_mean = 0;        ///< scored tokens over distinct trace tokens among them
  int requests = 0;             ///< requests of the trace
};

struct WindowOptions {
  Mode mode = Mode::prefill;
  Mix mix = Mix::mixed;
  int size = 2048;
  int warmup = 8, scored = 32;
  int decode_context = 1024;  ///< tokens each decoding sequence attends to
  std::uint64_t seed = 1;
};

[[nodiscard]] WindowPlan plan_windows(const Trace& trace, const WindowOptions& options);

}  // namespace sojourn
