// Progress of long work. The library reports to a sink; the CLI draws it on a terminal and asks for interruption.
#pragma once
#include <string_view>

namespace sojourn {

class ProgressSink {
 public:
  virtual ~ProgressSink() = default;
  /// done of total steps; `what` names the step just finished. May be called from any worker thread.
  virtual void step(int done, int total, std::string_view what) = 0;
  /// True once the user asked to stop: finished results are kept, unfinished work is abandoned.
  [[nodiscard]] virtual bool interrupted() const { return false; }
};

class SilentProgress : public ProgressSink {
 public:
  void step(int, int, std::string_view) override {}
};

}  // namespace sojourn
