// The parsed file as plain values with positions: what reader.cc walks and parse.cc builds. Private to src/config.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sojourn {

struct ConfigNode {
  enum class Kind : std::uint8_t { boolean, integer, number, text, date, array, table };
  struct Entry;
  Kind kind = Kind::table;
  bool boolean = false;
  std::int32_t line = 0, column = 0;  ///< 1-based, where the value starts
  std::int64_t integer = 0;
  double number = 0;
  std::string text;
  std::vector<ConfigNode> items;  ///< of an array
  std::vector<Entry> entries;     ///< of a table, in file order
};

struct ConfigNode::Entry {
  std::string key;
  std::int32_t line = 0, column = 0;  ///< where the key starts
  ConfigNode value;
};

/// "a string", "an integer": for messages.
[[nodiscard]] const char* kind_name(ConfigNode::Kind kind);

}  // namespace sojourn
