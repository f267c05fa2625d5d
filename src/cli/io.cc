// Files, messages, progress and interruption.
#include "cli/io.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/output_target.h"

namespace sojourn::cli {
namespace fs = std::filesystem;
namespace {

// The one thing a signal handler can reach.
volatile std::sig_atomic_t interrupt_count = 0;

extern "C" void on_interrupt(int) {
  interrupt_count = interrupt_count + 1;
  if (interrupt_count > 1) _exit(kInterrupted);
}

tl::unexpected<Failure> cannot_write(const std::string& path, const std::string& option, const std::string& why) {
  return fail(command_line(), option, fmt::format("cannot write {}: {}", path, why),
              "give a path in a folder you may write to", kCannot);
}

std::string temporary_name(const std::string& path) { return fmt::format("{}.tmp.{}", path, getpid()); }

}  // namespace

std::vector<std::string> homes() {
  std::vector<std::string> out;
  const auto add = [&](const std::string& dir) {
    std::error_code error;
    if (dir.empty() || !fs::is_directory(dir, error)) return;
    for (const std::string& known : out)
      if (fs::equivalent(known, dir, error)) return;
    out.push_back(dir);
  };
  if (const char* home = std::getenv("SOJOURN_HOME")) add(home);
  add(SOJOURN_SOURCE_DIR);
  add(".");
  return out;
}

std::vector<std::string> search_dirs(const std::string& kind) {
  std::vector<std::string> out;
  for (const std::string& home : homes()) out.push_back(home + "/" + kind);
  return out;
}

SourceSpan command_line() { return {"<command line>", 0, 0}; }

tl::unexpected<Failure> usage(const std::string& key, const std::string& message, const std::string& remedy) {
  return fail(command_line(), key, message, remedy, kBadInput);
}

int report(const Failure& failure) {
  for (const Diagnostic& d : failure.diagnostics.items()) std::fputs((printable(d.text()) + "\n").c_str(), stderr);
  return failure.exit_code;
}

void print_warnings(const Diagnostics& warnings) {
  for (const Diagnostic& d : warnings.items()) std::fputs((printable(d.text()) + "\n").c_str(), stderr);
}

TextStyle style_of(std::FILE* stream) {
  const char* no_color = std::getenv("NO_COLOR");
  return {isatty(fileno(stream)) != 0 && (no_color == nullptr || *no_color == '\0')};
}

void TextOutput::write(std::string_view text) const {
  if (stream_ == nullptr) return;
  std::fwrite(text.data(), 1, text.size(), stream_);
  std::fflush(stream_);
}

Result<bool> check_writable(const std::string& path, const std::string& option) {
  if (path.empty() || path == "-") return true;
  std::error_code error;
  const fs::path file(real_target(path));
  if (fs::is_directory(file, error)) return cannot_write(path, option, "it is a folder");
  if (is_special(file.string())) {
    if (access(file.c_str(), W_OK) != 0) return cannot_write(path, option, std::strerror(errno));
    return true;
  }
  if (file.has_parent_path()) {
    fs::create_directories(file.parent_path(), error);
    if (error) return cannot_write(path, option, error.message());
  }
  const std::string temporary = temporary_name(file.string());
  errno = 0;
  std::FILE* f = std::fopen(temporary.c_str(), "wb");
  if (f == nullptr) return cannot_write(path, option, std::strerror(errno));
  std::fclose(f);
  std::remove(temporary.c_str());
  return true;
}

Result<bool> check_distinct(const std::vector<std::pair<std::string, std::string>>& outputs,
                            const std::vector<std::string>& inputs) {
  const auto same = [](const std::string& a, const std::string& b) {
    std::error_code error;
    return fs::weakly_canonical(real_target(a), error) == fs::weakly_canonical(real_target(b), error);
  };
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto& [path, option] = outputs[i];
    if (path.empty() || path == "-" || is_special(real_target(path))) continue;
    for (const std::string& input : inputs)
      if (!input.empty() && fs::exists(input) && same(path, input))
        return fail(command_line(), option, fmt::format("{} is also an input", path), "write to another file");
    for (size_t j = 0; j < i; ++j)
      if (!outputs[j].first.empty() && outputs[j].first != "-" && same(path, outputs[j].first))
        return fail(command_line(), option, fmt::format("{} is also the target of {}", path, outputs[j].second),
                    "write to another file");
  }
  return true;
}

Result<bool> write_output(const std::string& path, const std::string& option, std::string_view text) {
  if (path.empty()) return true;
  if (path == "-") {
    const bool good = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
    if (!good) return cannot_write("standard output", option, std::strerror(errno));
    return true;
  }
  AtomicFile file;
  if (auto opened = file.open(path, option); !opened) return opened;
  file.stream().write(text.data(), static_cast<std::streamsize>(text.size()));
  return file.commit();
}

AtomicFile::~AtomicFile() {
  if (temporary_.empty()) return;
  out_.close();
  std::remove(temporary_.c_str());
}

Result<bool> AtomicFile::open(const std::string& path, const std::string& option) {
  if (auto checked = check_writable(path, option); !checked) return checked;
  path_ = real_target(path);
  option_ = option;
  if (!is_special(path_)) temporary_ = temporary_name(path_);
  errno = 0;
  out_.open(temporary_.empty() ? path_ : temporary_, std::ios::binary | std::ios::trunc);
  if (!out_) return cannot_write(path_, option_, std::strerror(errno));
  return true;
}

Result<bool> AtomicFile::commit() {
  errno = 0;
  out_.close();
  if (!out_) return cannot_write(path_, option_, errno != 0 ? std::strerror(errno) : "write failed");
  if (temporary_.empty()) return true;
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) return cannot_write(path_, option_, std::strerror(errno));
  temporary_.clear();
  return true;
}

void begin_document(JsonWriter& w, const std::string& schema) {
  w.begin_object();
  w.field("schema", schema);
}

void end_document(JsonWriter& w, const std::string& command) {
  w.key("manifest").begin_object();
  w.field("schema", "sojourn.manifest/1").field("version", SOJOURN_VERSION).field("command", command).end_object();
  w.end_object();
}

void catch_interrupt() {
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() { return interrupt_count > 0; }

TerminalProgress::TerminalProgress(bool quiet) : enabled_(!quiet && isatty(STDERR_FILENO) != 0) {}

void TerminalProgress::step(int done, int total, std::string_view what) {
  const std::lock_guard lock(mutex_);
  if (!enabled_ || total <= 0) return;
  constexpr int kWidth = 24;
  const int full = kWidth * std::clamp(done, 0, total) / total;
  std::string text(what);
  if (text.size() > 44) text.resize(44);
  std::fputs(fmt::format("\r[{}{}] {}/{} {}\033[K", std::string(static_cast<size_t>(full), '#'),
                         std::string(static_cast<size_t>(kWidth - full), '.'), done, total, printable(text))
                 .c_str(),
             stderr);
  std::fflush(stderr);
  drawn_ = true;
}

void TerminalProgress::clear() {
  const std::lock_guard lock(mutex_);
  if (drawn_) std::fputs("\r\033[K", stderr);
  drawn_ = false;
}

std::vector<std::string> preset_dirs() {
  std::vector<std::string> out = homes();
  for (const char* kind : {"packages", "models"})
    for (std::string& dir : search_dirs(kind)) out.push_back(std::move(dir));
  return out;
}

}  // namespace sojourn::cli
