// Sizes the flit network's data layout is made for.
#pragma once

namespace sojourn::flit {

inline constexpr int kMostPortVcs = 128;  ///< ports x VCs of a router: one or two machine words of request bits
inline constexpr int kMostVcs = 32;
inline constexpr int kDeepestBuffer = 16384;
inline constexpr int kLongestLatency = 4000;  ///< cycles; the calendar has a slot a cycle
inline constexpr int kFullRate = 1024;        ///< interval of a link that takes a flit every cycle

}  // namespace sojourn::flit
