// A safe reader of Python pickles: it builds plain values and calls nothing. Admitted names are collections.Counter and
// OrderedDict, NumPy scalars, and PyTorch tensors and storages; any other name is refused by name. Source: the opcode
// table of Python's pickletools.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sojourn/diagnostics.h"

namespace sojourn {

struct PickleValue {
  enum class Kind { none, boolean, integer, real, text, bytes, list, tuple, dict, name, dtype, storage, tensor, mark };
  Kind kind = Kind::none;
  std::int64_t integer = 0;  ///< integer, boolean; tensor: offset in elements
  double real = 0;
  std::string text;                 ///< text, bytes, name ("module.attribute"); dtype ("<i8"); storage: key
  std::vector<PickleValue*> items;  ///< list, tuple; tensor: {storage}
  std::vector<std::pair<PickleValue*, PickleValue*>> members;  ///< dict, Counter
  std::vector<std::int64_t> shape, stride;                     ///< tensor
  std::string type;                                            ///< storage: "FloatStorage"
  [[nodiscard]] bool is(Kind k) const { return kind == k; }
  [[nodiscard]] const PickleValue* get(std::string_view key) const;  ///< member of a dict by text key
};

/// Owns every value; references inside may form any graph.
struct Pickle {
  std::vector<std::unique_ptr<PickleValue>> all;
  PickleValue* root = nullptr;
};

[[nodiscard]] Result<Pickle> read_pickle(std::string_view bytes, const std::string& path);

}  // namespace sojourn
