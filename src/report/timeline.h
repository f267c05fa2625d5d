// A timeline in the Trace Event format (JSON), which ui.perfetto.dev and chrome://tracing open: one process a package
// of a run, one thread a resource. Written as it comes, so that a long run needs no memory for it.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <ostream>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "engine/span_sink.h"
#include "sojourn/package.h"
#include "sojourn/units.h"

namespace sojourn {

/// Microseconds with every picosecond kept: 1234567 ps -> "1.234567".
[[nodiscard]] std::string trace_microseconds(Ps time);

class TimelineWriter : public SpanSink {
 public:
  /// `out` must outlive the writer. Writes the head at once.
  explicit TimelineWriter(std::ostream& out);
  ~TimelineWriter() override { finish(); }
  TimelineWriter(const TimelineWriter&) = delete;
  TimelineWriter& operator=(const TimelineWriter&) = delete;

  /// Starts the processes of a run: later spans of package p belong to process "<label>, package p". `package` gives
  /// chiplets, links and bank sets their names; it may be null.
  void begin_run(const std::string& label, const Package* package);

  /// A busy interval. Spans of one resource that overlap in time are put side by side on further threads ("lane 2").
  /// An interval of negative length is an engine bug and is dropped and counted.
  void span(int package, SpanTrack track, int index, Ps start, Ps end, std::string_view name) override;
  /// A value over time, drawn as a graph of the package's process.
  void counter(int package, std::string_view name, Ps at, double value);

  /// Writes the tail; later calls do nothing. False when the stream failed.
  bool finish();
  [[nodiscard]] std::int64_t events() const { return events_; }
  [[nodiscard]] std::int64_t dropped() const { return dropped_; }

 private:
  struct Lane {
    int thread = 0;
    Ps busy_until = 0;
  };
  struct Process {
    int id = 0;
    int threads = 0;
    std::map<std::pair<SpanTrack, int>, std::vector<Lane>> lanes;
  };
  Process& process(int package);
  int lane_for(Process& p, SpanTrack track, int index, Ps start, Ps end);
  [[nodiscard]] std::string resource_name(SpanTrack track, int index) const;
  void metadata(int pid, int tid, std::string_view kind, std::string_view name);
  void sort_index(int pid, int tid, std::string_view kind, std::int64_t index);
  void separator();

  std::ostream& out_;
  std::mutex mutex_;
  std::string label_;
  const Package* package_ = nullptr;
  std::map<int, Process> processes_;  ///< of the current run, by package
  int next_process_ = 1;
  bool first_ = true, finished_ = false;
  std::int64_t events_ = 0, dropped_ = 0;
};

}  // namespace sojourn
