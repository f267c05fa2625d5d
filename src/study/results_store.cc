// SQLite behind ResultsStore; see results_store.h.
#include "study/results_store.h"

#include <fmt/format.h>
#include <sqlite3.h>

namespace sojourn {
namespace {

constexpr int kFormat = 1;                // PRAGMA user_version of our files
constexpr int kApplication = 0x536a7231;  // "Sjr1"

struct Statement {
  sqlite3_stmt* s = nullptr;
  ~Statement() { sqlite3_finalize(s); }
};

int whole(sqlite3* db, const char* sql, int& value) {
  Statement st;
  int rc = sqlite3_prepare_v2(db, sql, -1, &st.s, nullptr);
  if (rc != SQLITE_OK) return rc;
  rc = sqlite3_step(st.s);
  if (rc != SQLITE_ROW) return rc;
  value = sqlite3_column_int(st.s, 0);
  return SQLITE_OK;
}

}  // namespace

tl::unexpected<Failure> ResultsStore::problem(const std::string& doing, int exit_code) const {
  return fail({path_, 0, 0}, "--resume", fmt::format("{}: {}", doing, db_ ? sqlite3_errmsg(db_) : "out of memory"),
              "give another file, or remove this one to start afresh", exit_code);
}

Result<std::unique_ptr<ResultsStore>> ResultsStore::open(const std::string& path) {
  std::unique_ptr<ResultsStore> store(new ResultsStore(path));
  const char* name = path.empty() ? ":memory:" : path.c_str();
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX;
  if (sqlite3_open_v2(name, &store->db_, flags, nullptr) != SQLITE_OK) return store->problem("cannot be opened");
  sqlite3_busy_timeout(store->db_, 30000);
  int application = 0, tables = 0, format = 0;
  const int rc = whole(store->db_, "PRAGMA application_id", application);
  if (rc == SQLITE_NOTADB) return store->problem("holds no study state", 2);
  if (rc != SQLITE_OK || whole(store->db_, "SELECT count(*) FROM sqlite_master", tables) != SQLITE_OK ||
      whole(store->db_, "PRAGMA user_version", format) != SQLITE_OK)
    return store->problem("cannot be read", sqlite3_errcode(store->db_) == SQLITE_NOTADB ? 2 : 3);
  if (tables > 0 && (application != kApplication || format != kFormat))
    return fail({path, 0, 0}, "--resume", "is a database, but not the state of a study of this version",
                "give another file");
  const std::string setup = fmt::format(
      "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA application_id={}; PRAGMA user_version={};"
      "CREATE TABLE IF NOT EXISTS runs(key TEXT PRIMARY KEY, what TEXT NOT NULL, result TEXT NOT NULL, wall_s REAL);",
      kApplication, kFormat);
  if (sqlite3_exec(store->db_, setup.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
    return store->problem("cannot be written");
  return store;
}

ResultsStore::~ResultsStore() { sqlite3_close_v2(db_); }

Result<std::optional<std::string>> ResultsStore::get(const std::string& key) {
  const std::lock_guard<std::mutex> guard(mutex_);
  Statement st;
  if (sqlite3_prepare_v2(db_, "SELECT result FROM runs WHERE key=?1", -1, &st.s, nullptr) != SQLITE_OK)
    return problem("cannot be read");
  sqlite3_bind_text(st.s, 1, key.data(), static_cast<int>(key.size()), SQLITE_STATIC);
  const int rc = sqlite3_step(st.s);
  if (rc == SQLITE_DONE) return std::optional<std::string>();
  if (rc != SQLITE_ROW) return problem("cannot be read");
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(st.s, 0));
  return std::optional<std::string>(
      std::string(text ? text : "", static_cast<std::size_t>(sqlite3_column_bytes(st.s, 0))));
}

Result<bool> ResultsStore::put(const std::string& key, const std::string& what, const std::string& text,
                               double wall_s) {
  const std::lock_guard<std::mutex> guard(mutex_);
  Statement st;
  const char* sql = "INSERT OR REPLACE INTO runs(key, what, result, wall_s) VALUES(?1, ?2, ?3, ?4)";
  if (sqlite3_prepare_v2(db_, sql, -1, &st.s, nullptr) != SQLITE_OK) return problem("cannot be written");
  sqlite3_bind_text(st.s, 1, key.data(), static_cast<int>(key.size()), SQLITE_STATIC);
  sqlite3_bind_text(st.s, 2, what.data(), static_cast<int>(what.size()), SQLITE_STATIC);
  sqlite3_bind_text(st.s, 3, text.data(), static_cast<int>(text.size()), SQLITE_STATIC);
  sqlite3_bind_double(st.s, 4, wall_s);
  if (sqlite3_step(st.s) != SQLITE_DONE) return problem("cannot be written");
  return true;
}

Result<std::int64_t> ResultsStore::count() {
  const std::lock_guard<std::mutex> guard(mutex_);
  int n = 0;
  if (whole(db_, "SELECT count(*) FROM runs", n) != SQLITE_OK) return problem("cannot be read");
  return n;
}

}  // namespace sojourn
