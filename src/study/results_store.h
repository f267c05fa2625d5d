// Finished runs of a study on disk, so that an interrupted or killed study goes on where it stopped. One SQLite file in
// write-ahead mode; every run is one transaction, so a kill at any moment leaves whole runs only.
#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "sojourn/diagnostics.h"

struct sqlite3;

namespace sojourn {

/// Key -> text. Safe to use from several threads, and from several processes on one file.
class ResultsStore {
 public:
  /// Opens or creates the file; "" keeps everything in memory. Errors: not a database of ours (exit 2), cannot be
  /// opened or written (exit 3).
  [[nodiscard]] static Result<std::unique_ptr<ResultsStore>> open(const std::string& path);
  ~ResultsStore();
  ResultsStore(const ResultsStore&) = delete;
  ResultsStore& operator=(const ResultsStore&) = delete;

  [[nodiscard]] Result<std::optional<std::string>> get(const std::string& key);
  /// Durable when it returns. `what` is for people who look into the file; `wall_s` never leaves it.
  [[nodiscard]] Result<bool> put(const std::string& key, const std::string& what, const std::string& text,
                                 double wall_s);
  [[nodiscard]] Result<std::int64_t> count();

 private:
  explicit ResultsStore(std::string path) : path_(std::move(path)) {}
  [[nodiscard]] tl::unexpected<Failure> problem(const std::string& doing, int exit_code = 3) const;

  std::string path_;
  sqlite3* db_ = nullptr;
  std::mutex mutex_;
};

}  // namespace sojourn
