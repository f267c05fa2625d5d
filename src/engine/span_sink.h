// Where the engine reports busy intervals for a timeline. Null in ordinary runs.
#pragma once
#include <string_view>

#include "sojourn/units.h"

namespace sojourn {

enum class SpanTrack { chiplet, link, bank, migration, layer };

class SpanSink {
 public:
  virtual ~SpanSink() = default;
  /// Resource `index` of kind `track` on package `package` of a pipeline was busy in [start, end).
  virtual void span(int package, SpanTrack track, int index, Ps start, Ps end, std::string_view name) = 0;
};

}  // namespace sojourn
