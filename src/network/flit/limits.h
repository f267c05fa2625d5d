// Sizes the flit network's data layout is made for.
#pragma once

namespace sojourn::flit {

inline constexpr int kMostPortVcs = 64;  ///< ports x VCs of a router: one machine word of request bits
inline constexpr int kMostVcs = 32;
inline constexpr int kDeepestBuffer = 255;
inline constexpr int kLongestLatency = 4000;  ///< cycles; the calendar has a slot a cycle

}  // namespace sojourn::flit
