// A JSON writer with a stable order and shortest round-trip numbers. Invalid UTF-8 becomes U+FFFD.
#pragma once
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace sojourn {

[[nodiscard]] std::string json_quote(std::string_view s);
[[nodiscard]] std::string json_number(double v);  ///< null when not finite

class JsonText {
 public:
  void open(char bracket) {
    comma();
    out_ += bracket;
    first_ = true;
  }
  void close(char bracket) {
    out_ += bracket;
    first_ = false;
  }
  void key(std::string_view k) {
    comma();
    out_ += json_quote(k) + ": ";
    first_ = true;
  }
  template <class T>
  void value(const T& v) {
    comma();
    if constexpr (std::is_same_v<T, bool>)
      out_ += v ? "true" : "false";
    else if constexpr (std::is_integral_v<T>)
      out_ += std::to_string(v);
    else if constexpr (std::is_floating_point_v<T>)
      out_ += json_number(v);
    else
      out_ += json_quote(v);
    first_ = false;
  }
  template <class T>
  void member(std::string_view k, const T& v) {
    key(k);
    value(v);
  }
  void raw(std::string_view k, std::string_view json) {
    key(k);
    comma();
    out_ += json;
    first_ = false;
  }
  template <class T>
  void list(std::string_view k, const std::vector<T>& items) {
    key(k);
    open('[');
    for (const T& v : items) value(v);
    close(']');
  }
  [[nodiscard]] const std::string& text() const { return out_; }

 private:
  void comma() {
    if (!first_) out_ += ", ";
    first_ = true;
  }
  std::string out_;
  bool first_ = true;
};

}  // namespace sojourn
