// Trace Event JSON, one event a line.
#include "report/timeline.h"

#include <fmt/format.h>

#include "report/json_writer.h"

namespace sojourn {
namespace {

const char* track_name(SpanTrack track) {
  switch (track) {
    case SpanTrack::chiplet:
      return "cores";
    case SpanTrack::link:
      return "link";
    case SpanTrack::bank:
      return "banks";
    case SpanTrack::migration:
      return "migration";
    case SpanTrack::layer:
      return "layers";
  }
  return "?";
}

/// Layers first, then cores, links, banks, migration.
int track_order(SpanTrack track) {
  switch (track) {
    case SpanTrack::layer:
      return 0;
    case SpanTrack::chiplet:
      return 1;
    case SpanTrack::link:
      return 2;
    case SpanTrack::bank:
      return 3;
    case SpanTrack::migration:
      return 4;
  }
  return 5;
}

std::string quoted(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

}  // namespace

std::string trace_microseconds(Ps time) {
  const bool negative = time < 0;
  const std::uint64_t ps = negative ? 0 - static_cast<std::uint64_t>(time) : static_cast<std::uint64_t>(time);
  std::string text = fmt::format("{}{}.{:06}", negative ? "-" : "", ps / 1'000'000, ps % 1'000'000);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text;
}

TimelineWriter::TimelineWriter(std::ostream& out) : out_(out) {
  out_ << "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
}

void TimelineWriter::separator() {
  out_ << (first_ ? "\n" : ",\n");
  first_ = false;
}

void TimelineWriter::metadata(int pid, int tid, std::string_view kind, std::string_view name) {
  separator();
  out_ << fmt::format("{{\"ph\":\"M\",\"pid\":{},\"tid\":{},\"name\":\"{}\",\"args\":{{\"name\":{}}}}}", pid, tid, kind,
                      quoted(name));
}

void TimelineWriter::sort_index(int pid, int tid, std::string_view kind, std::int64_t index) {
  separator();
  out_ << fmt::format("{{\"ph\":\"M\",\"pid\":{},\"tid\":{},\"name\":\"{}\",\"args\":{{\"sort_index\":{}}}}}", pid, tid,
                      kind, index);
}

void TimelineWriter::begin_run(const std::string& label, const Package* package) {
  const std::lock_guard lock(mutex_);
  label_ = label;
  package_ = package;
  processes_.clear();
}

TimelineWriter::Process& TimelineWriter::process(int package) {
  const auto [it, fresh] = processes_.try_emplace(package);
  if (fresh) {
    it->second.id = next_process_++;
    metadata(it->second.id, 0, "process_name",
             label_.empty() ? fmt::format("package {}", package) : fmt::format("{}, package {}", label_, package));
    sort_index(it->second.id, 0, "process_sort_index", it->second.id);
  }
  return it->second;
}

std::string TimelineWriter::resource_name(SpanTrack track, int index) const {
  const size_t i = static_cast<size_t>(index);
  if (package_ != nullptr && index >= 0) {
    if (track == SpanTrack::chiplet && i < package_->chiplets.size()) return package_->chiplets[i].name + " cores";
    if (track == SpanTrack::link && i < package_->links.size()) return "link " + package_->links[i].name;
    if (track == SpanTrack::bank && i < package_->bank_sets.size()) {
      const BankSet& set = package_->bank_sets[i];
      return fmt::format("{} {} banks", package_->chiplets[static_cast<size_t>(set.owner)].name, tier_name(set.tier));
    }
  }
  if (track == SpanTrack::layer) return "layers";
  return fmt::format("{} {}", track_name(track), index);
}

int TimelineWriter::lane_for(Process& p, SpanTrack track, int index, Ps start, Ps end) {
  std::vector<Lane>& lanes = p.lanes[{track, index}];
  for (Lane& lane : lanes) {
    if (lane.busy_until <= start) {
      lane.busy_until = end;
      return lane.thread;
    }
  }
  const int thread = ++p.threads;
  lanes.push_back({thread, end});
  std::string name = resource_name(track, index);
  if (lanes.size() > 1) name += fmt::format(" (lane {})", lanes.size());
  metadata(p.id, thread, "thread_name", name);
  sort_index(p.id, thread, "thread_sort_index",
             track_order(track) * 10'000'000LL + index * 100LL + static_cast<std::int64_t>(lanes.size()));
  return thread;
}

void TimelineWriter::span(int package, SpanTrack track, int index, Ps start, Ps end, std::string_view name) {
  const std::lock_guard lock(mutex_);
  if (finished_) return;
  if (end < start) {
    ++dropped_;
    return;
  }
  Process& p = process(package);
  const int thread = lane_for(p, track, index, start, end);
  separator();
  out_ << fmt::format("{{\"ph\":\"X\",\"pid\":{},\"tid\":{},\"ts\":{},\"dur\":{},\"cat\":\"{}\",\"name\":{}}}", p.id,
                      thread, trace_microseconds(start), trace_microseconds(end - start), track_name(track),
                      quoted(name));
  ++events_;
}

void TimelineWriter::counter(int package, std::string_view name, Ps at, double value) {
  const std::lock_guard lock(mutex_);
  if (finished_) return;
  Process& p = process(package);
  separator();
  out_ << fmt::format("{{\"ph\":\"C\",\"pid\":{},\"tid\":0,\"ts\":{},\"name\":{},\"args\":{{\"value\":{}}}}}", p.id,
                      trace_microseconds(at), quoted(name), json_double(value));
  ++events_;
}

bool TimelineWriter::finish() {
  const std::lock_guard lock(mutex_);
  if (!finished_) {
    finished_ = true;
    out_ << "\n]}\n";
    out_.flush();
  }
  return static_cast<bool>(out_);
}

}  // namespace sojourn
