// A pull parser for JSON (RFC 8259, and Python's NaN/Infinity) over mapped text: nothing but the values asked for is
// kept, so a file of any size costs no memory. Depth is bounded. The first error stops everything and carries
// file:line:column and the path of keys ("layers[3].experts").
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sojourn/diagnostics.h"

namespace sojourn {

class JsonReader {
 public:
  enum class Kind { object, array, string, number, boolean, null, end, bad };

  JsonReader(std::string_view text, std::string file, int first_line = 1)
      : text_(text), file_(std::move(file)), first_line_(first_line) {}
  JsonReader(const JsonReader&) = delete;
  JsonReader& operator=(const JsonReader&) = delete;

  [[nodiscard]] Kind peek();
  /// Calls member(key) for each member; it must consume the value and return true.
  template <class F>
  bool object(F&& member) {
    if (!open('{', "an object")) return false;
    bool first = true;
    std::string key;
    while (more('}', first)) {
      if (!read_string(key) || !expect(':')) return false;
      path_.back().key = &key;
      if (!member(static_cast<const std::string&>(key))) return stopped();
    }
    return close();
  }
  template <class F>
  bool array(F&& item) {
    if (!open('[', "a list")) return false;
    bool first = true;
    path_.back().index = -1;
    while (more(']', first)) {
      ++path_.back().index;
      if (!item()) return stopped();
    }
    return close();
  }
  bool string(std::string& out);
  bool integer(std::int64_t& out);
  bool number(double& out);
  bool boolean(bool& out);
  /// Consumes a null if that is next.
  bool null();
  bool skip();
  /// The text of the next value, whatever it is.
  bool raw(std::string& out);
  /// Only white space may follow.
  bool finish();
  /// A list of expert ids in [-1, 65534]; -1 marks padding.
  bool ids(std::vector<int>& out);
  bool floats(std::vector<float>& out);
  bool index(int& out, int most);

  /// Records the first error; always false.
  bool error(std::string message, std::string remedy = {});
  [[nodiscard]] bool ok() const { return !failed_; }
  [[nodiscard]] Failure failure() const;
  [[nodiscard]] SourceSpan here() const;
  [[nodiscard]] std::string path() const;

 private:
  struct Step {
    const std::string* key = nullptr;
    std::int64_t index = 0;
  };
  void space();
  bool open(char bracket, const char* wanted);
  bool more(char bracket, bool& first);
  bool close();
  bool stopped();
  bool expect(char c);
  bool read_string(std::string& out);
  bool escape(std::string& out);
  bool token(std::string_view& out);

  std::string_view text_;
  std::string file_;
  int first_line_;
  std::size_t at_ = 0;
  std::vector<Step> path_;
  bool failed_ = false;
  Diagnostic diagnostic_;
};

}  // namespace sojourn
