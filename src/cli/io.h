// What every command needs of the outside world: where presets are, output files, messages, progress, interruption.
#pragma once
#include <cstdio>
#include <fstream>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "report/json_writer.h"
#include "report/text_table.h"
#include "sojourn/diagnostics.h"

namespace sojourn::cli {

enum Exit { kDone = 0, kCheckFailed = 1, kBadInput = 2, kCannot = 3, kInterrupted = 130 };

/// Folders that may hold packages/, models/, traces/ and third_party/: $SOJOURN_HOME, the source directory of this
/// build, the current directory; those that exist, each once.
[[nodiscard]] std::vector<std::string> homes();
/// Folders with presets: study looks for packages, models and traces below or in them.
[[nodiscard]] std::vector<std::string> preset_dirs();
/// homes()/`kind` for every home.
[[nodiscard]] std::vector<std::string> search_dirs(const std::string& kind);

[[nodiscard]] SourceSpan command_line();
/// A mistake on the command line.
[[nodiscard]] tl::unexpected<Failure> usage(const std::string& key, const std::string& message,
                                            const std::string& remedy);

/// Prints the findings to standard error; returns the exit code.
int report(const Failure& failure);
void print_warnings(const Diagnostics& warnings);

/// Colour when `stream` is a terminal and NO_COLOR is unset or empty.
[[nodiscard]] TextStyle style_of(std::FILE* stream);

/// Tables go to standard output, or to standard error when JSON goes there ("--json -"); nowhere when quiet.
class TextOutput {
 public:
  TextOutput(const std::string& json_path, bool quiet)
      : stream_(quiet              ? nullptr
                : json_path == "-" ? stderr
                                   : stdout) {}
  [[nodiscard]] TextStyle style() const { return stream_ == nullptr ? TextStyle{} : style_of(stream_); }
  void write(std::string_view text) const;

 private:
  std::FILE* stream_;
};

/// Tries the path before long work begins: makes parent directories, creates and removes a temporary file beside it.
/// "" and "-" are always fine. Exit code 3.
[[nodiscard]] Result<bool> check_writable(const std::string& path, const std::string& option);
/// No output may overwrite an input or another output. outputs: (path, option).
[[nodiscard]] Result<bool> check_distinct(const std::vector<std::pair<std::string, std::string>>& outputs,
                                          const std::vector<std::string>& inputs);

/// Through a temporary file and a rename, so that a reader never sees half a file. "-" is standard output; "" nothing.
[[nodiscard]] Result<bool> write_output(const std::string& path, const std::string& option, std::string_view text);

/// A file written over time that gets its name only when complete.
class AtomicFile {
 public:
  AtomicFile() = default;
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  [[nodiscard]] Result<bool> open(const std::string& path, const std::string& option);
  [[nodiscard]] std::ostream& stream() { return out_; }
  [[nodiscard]] Result<bool> commit();

 private:
  std::string path_, temporary_, option_;
  std::ofstream out_;
};

/// {"schema", ..., "manifest": {"version", "command"}}: what a command without a run of its own writes.
void begin_document(JsonWriter& w, const std::string& schema);
void end_document(JsonWriter& w, const std::string& command);

/// From now on ctrl-C sets a flag; a second one ends the process at once.
void catch_interrupt();
[[nodiscard]] bool interrupted();

/// One line on standard error that is renewed, when that is a terminal; otherwise silent.
class TerminalProgress : public ProgressSink {
 public:
  explicit TerminalProgress(bool quiet);
  ~TerminalProgress() override { clear(); }
  void step(int done, int total, std::string_view what) override;
  [[nodiscard]] bool interrupted() const override { return cli::interrupted(); }
  void clear();

 private:
  std::mutex mutex_;
  bool enabled_, drawn_ = false;
};

}  // namespace sojourn::cli
