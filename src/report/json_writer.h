// Writes JSON text in the order of the calls: integers as they are, doubles in the shortest form that reads back to the
// same value, strings escaped so that the text is also safe inside an HTML script element.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sojourn {

/// Appends `text` as a JSON string with quotes. '<', '>' and '&' are written as \u escapes; bytes that are not UTF-8
/// become U+FFFD.
void append_json_string(std::string& out, std::string_view text);
/// Shortest round-trip form; "null" for NaN and infinities.
[[nodiscard]] std::string json_double(double value);

class JsonWriter {
 public:
  /// indent < 0: no line breaks.
  explicit JsonWriter(int indent = 1) : indent_(indent) {}

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(const std::string& text) { return value(std::string_view(text)); }
  JsonWriter& value(double number);
  JsonWriter& value(std::int64_t number);
  JsonWriter& value(int number) { return value(static_cast<std::int64_t>(number)); }
  JsonWriter& value(bool flag);
  JsonWriter& null();
  /// Text that already is JSON; its inner layout is kept.
  JsonWriter& raw(std::string_view json);

  template <class T>
  JsonWriter& field(std::string_view name, const T& v) {
    return key(name).value(v);
  }

  [[nodiscard]] const std::string& text() const { return out_; }
  [[nodiscard]] std::string take() { return std::move(out_); }

 private:
  JsonWriter& open(char c);
  JsonWriter& close(char c);
  void before_value();
  void new_line();

  std::string out_;
  std::vector<bool> has_items_;  ///< one a nesting level
  bool after_key_ = false;
  int indent_;
};

}  // namespace sojourn
